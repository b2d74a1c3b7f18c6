// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/boundary/pinview"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/sequence"
)

var serverRoutes = []route{
	{pattern: "GET servers", least: Viewer, handle: (*Console).servers, rail: entry{40, "Servers", "server", "s"}},
	{pattern: "GET servers/{server}", least: Viewer, handle: (*Console).server},
	{pattern: "POST servers/{server}/decide", least: Reviewer, handle: (*Console).decideItem},
}

// Pins are what is pinned of servers.
type Pins interface {
	List(ctx context.Context) ([]string, error)
	Get(ctx context.Context, server string) (surface.Pin, error)
	Approve(ctx context.Context, server string, k surface.Key, d surface.Digest, by string) error
	Block(ctx context.Context, server string, k surface.Key, d surface.Digest, by string) error
}

// maxServers bounds the servers of a page.
const maxServers = 500

type serversView struct {
	None    bool
	Servers []serverRow
	More    Own // "": all are there
	Health  []healthRow
}

// healthRow is how a server does now.
type healthRow struct {
	Name                marked.Name
	State               Own
	Up, Down            bool
	Since               Own
	Connections, Failed Own
	Why                 marked.Text // the error of a server that is down or rejected
}

// healthRows are the servers of this gateway that the person may see.
func (c *Console) healthRows(q *request) (out []healthRow) {
	if c.opt.Health == nil {
		return nil
	}
	for _, h := range c.opt.Health() {
		if q.who.Sees(h.Name) {
			out = append(out, healthRow{Name: marked.Identifier(h.Name), State: own(string(h.State)), Up: h.State == fleet.Up, Down: h.State == fleet.Down || h.State == fleet.Rejected,
				Since: minute(h.Since), Connections: count(int64(h.Connections)), Failed: count(int64(h.Failures)), Why: marked.Of(h.Why)})
		}
	}
	return out
}

func (serversView) template() string { return "servers" }

type serverRow struct {
	Name           marked.Name
	To             Path
	Since          Own
	Live           Own
	Pending        Own
	Blocked        Own
	Waits, Refuses bool
	Rejected       marked.Text
}

// seesPin reports whether a person may see a server that was seen under these names.
func (p Person) seesPin(pin *surface.Pin) bool {
	return p.Sees(pin.Server) || slices.ContainsFunc(pin.Names, p.Sees)
}

// seen returns the names that the person may see: servers with one command have one pin.
func (p Person) seen(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !p.Sees(name) })
}

// decidesPin reports whether the person may decide about it: about every server that has this pin, since the decision counts
// for all of them. It has to be asked before names are left out.
func (p Person) decidesPin(pin *surface.Pin) bool {
	switch n := len(pin.Names); {
	case n == 0:
		return p.Decides(pin.Server)
	case n >= surface.MaxNames: // there may be names that it does not list
		return p.AllServers && p.Decides(pin.Server)
	}
	return !slices.ContainsFunc(pin.Names, func(name string) bool { return !p.Decides(name) })
}

// pinsSeen returns the pins that the person may see.
func (c *Console) pinsSeen(q *request) (pins []surface.Pin, err error) {
	for _, place := range c.opt.Pins {
		names, err := place.List(q.Context())
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			pin, err := place.Get(q.Context(), name)
			if errors.Is(err, surface.ErrNotPinned) {
				continue // dropped meanwhile
			} else if err != nil {
				return nil, err
			}
			if q.who.seesPin(&pin) {
				pin.Names = q.who.seen(pin.Names)
				pins = append(pins, pin)
			}
		}
	}
	return pins, nil
}

// servers lists what is pinned.
func (c *Console) servers(q *request) answer {
	if len(c.opt.Pins) == 0 {
		return missing("Servers", "Nothing is pinned here.", "A server is pinned when a client first uses it through the program.", "")
	}
	v := serversView{Health: c.healthRows(q)}
	pins, err := c.pinsSeen(q)
	if err != nil {
		return failed(err)
	}
	slices.SortStableFunc(pins, func(a, b surface.Pin) int { return cmp.Compare(a.Name(), b.Name()) })
	for i := range pins {
		if i == maxServers {
			v.More = count(int64(len(pins) - i))
			break
		}
		r := pinview.NewRow("", &pins[i])
		v.Servers = append(v.Servers, serverRow{Name: marked.Identifier(pins[i].Name()), To: pathTo("servers/" + segment(pins[i].Server)), Since: minute(r.Since),
			Live: count(int64(r.Live)), Pending: count(int64(r.Pending)), Blocked: count(int64(r.Blocked)), Waits: r.Pending > 0, Refuses: r.Rejected != "", Rejected: marked.Of(r.Rejected)})
	}
	v.None = len(v.Servers) == 0
	return page("Servers", v)
}

// A pinOfPath is the pin that a path names, with the names that the person may see.
type pinOfPath struct {
	surface.Pin
	place   Pins
	decides bool // the person may decide about it
}

// pinOf finds the pin that a path names, where the person may see it.
func (c *Console) pinOf(q *request) (x pinOfPath, no answer) {
	if !utf8.ValidString(q.PathValue("server")) { // a store refuses such a key
		return x, notFound()
	}
	for _, place := range c.opt.Pins {
		pin, err := place.Get(q.Context(), q.PathValue("server"))
		if errors.Is(err, surface.ErrNotPinned) {
			continue
		} else if err != nil {
			return x, failed(err)
		}
		if !q.who.seesPin(&pin) {
			return x, notYours()
		}
		x = pinOfPath{pin, place, q.who.decidesPin(&pin)}
		x.Names = q.who.seen(x.Names)
		return x, nil
	}
	return c.pinNamed(q)
}

// pinNamed finds the pin of a server by its name, as records and meters call it. Where nothing is pinned of it, its records are
// what there is to see.
func (c *Console) pinNamed(q *request) (x pinOfPath, no answer) {
	name := q.PathValue("server")
	if !q.who.Sees(name) {
		return x, notFound()
	}
	for _, place := range c.opt.Pins {
		keys, err := place.List(q.Context())
		if err != nil {
			return x, failed(err)
		}
		for _, key := range keys {
			pin, err := place.Get(q.Context(), key)
			if err == nil && slices.Contains(pin.Names, name) {
				return x, seeOther(pathTo("servers/" + segment(pin.Server)))
			}
		}
	}
	if q.Method == http.MethodGet && c.opt.Ledger != nil && len(name) <= 256 && name != "" {
		n, err := c.opt.Ledger.List(q.Context(), sequence.Filter{Server: name, Limit: 1})
		if err != nil && !errors.Is(err, sequence.ErrNoLog) {
			return x, failed(err)
		}
		if len(n) > 0 {
			return x, seeOther(recordsPath(index.Filter{Servers: []string{name}}))
		}
	}
	return x, notFound()
}

type serverView struct {
	Name      marked.Name
	Identity  marked.Name
	Others    []marked.Name // names under which it was seen beside the first
	Since     Own
	Refuses   bool
	Rejected  marked.Text
	Refused   Own
	MayDecide bool
	Decide    Path
	Changes   []changeView
	From      Own  // where the page of changes begins
	Range     Own  // "": all are on the page
	Back      Path // "": no such page
	Next      Path
	Waiting   Own
	Items     []itemGroup
	Records   []namedLink // where the records of each name are listed
}

func (serverView) template() string { return "server" }

type namedLink struct {
	Name marked.Name
	To   Path
}

// A changeView is an item that differs from what was approved.
type changeView struct {
	Kind    Own
	KindOf  marked.Plain // for the form
	NameOf  marked.Plain
	Name    marked.Name
	Was     marked.Name
	Renamed bool
	Verdict Own
	Blocked bool
	Waits   bool // a decision is open
	Digest  marked.Plain
	Short   marked.Name
	Fields  []fieldView
	More    Own
	Hidden  []marked.Text
	Fits    bool // the name fits the form whole
}

type fieldView struct {
	Path     marked.Text
	Old, New marked.Text
	HasOld   bool
	HasNew   bool
}

type itemGroup struct {
	Kind  Own
	N     Own
	Items []approvedView
	More  Own
}

type approvedView struct {
	Name  marked.Name
	State Own
	Text  marked.Text
}

// maxItems bounds the items of one kind on a page.
const maxItems = 200

func (c *Console) server(q *request) answer {
	pin, no := c.pinOf(q)
	if no != nil {
		return no
	}
	v := serverView{Name: marked.Identifier(pin.Name()), Identity: marked.Identifier(pin.Server), Since: minute(pin.Since), Refuses: pin.Rejected != "",
		Rejected: marked.Of(pin.Rejected), Refused: minute(pin.RejectedAt), MayDecide: pin.decides, Decide: pathTo("servers/" + segment(pin.Server) + "/decide")}
	for _, name := range pin.Names[min(1, len(pin.Names)):] {
		v.Others = append(v.Others, marked.Identifier(name))
	}
	v.changes(q, &pin.Pin)
	v.Items = itemGroups(&pin.Pin)
	if c.opt.Ledger != nil {
		for _, name := range pin.Names {
			v.Records = append(v.Records, namedLink{Name: marked.Identifier(name), To: recordsPath(index.Filter{Servers: []string{name}})})
		}
	}
	return page("Server", v)
}

// changes fills a page of what changed.
func (v *serverView) changes(q *request, pin *surface.Pin) {
	all, waiting := 0, 0
	for i := range pin.Items {
		if it := &pin.Items[i]; it.Pending != "" {
			if all++; it.State() == surface.Pending {
				waiting++
			}
		}
	}
	v.Waiting = count(int64(waiting))
	from := changesFrom(q.URL.Query().Get("from"))
	if from >= all {
		from = 0
	}
	v.From = plainNumber(from)
	for _, ch := range pin.ChangesFrom(from, perPage) {
		if it := pin.Item(ch.Key); it != nil {
			change := pinview.NewChange(ch, it.State(), surface.Field.Raw)
			v.Changes = append(v.Changes, newChange(&change))
		}
	}
	if all > perPage {
		v.Range = rangeOf(from, min(perPage, all-from), all, "change")
	}
	if from > 0 {
		v.Back = serverPath(pin.Server, max(0, from-perPage))
	}
	if from+perPage < all {
		v.Next = serverPath(pin.Server, from+perPage)
	}
}

// changesFrom reads where a page of changes begins.
func changesFrom(s string) int {
	n, _ := strconv.Atoi(s)
	return max(0, n)
}

func serverPath(server string, from int) Path {
	if from == 0 {
		return pathTo("servers/" + segment(server))
	}
	return pathTo("servers/"+segment(server), "from", strconv.Itoa(from))
}

func newChange(ch *pinview.Change) changeView {
	x := changeView{Kind: itemKind(ch.Kind), KindOf: marked.Spelled(ch.Kind.String()), NameOf: marked.Spelled(ch.Item), Name: marked.Identifier(ch.Item),
		Was: marked.Identifier(ch.Was), Renamed: ch.Was != "", Verdict: differenceName(ch.Verdict), Blocked: ch.State == surface.Blocked,
		Waits: ch.State == surface.Pending}
	if ch.Digest != nil {
		x.Digest, x.Short = marked.Spelled(ch.Digest.String()), marked.Identifier(ch.Digest.String()[:19])
	}
	for _, f := range ch.Fields {
		x.Fields = append(x.Fields, fieldView{marked.Of(f.Path), marked.Of(f.Old), marked.Of(f.New), f.Verdict != surface.Added, f.Verdict != surface.Removed})
	}
	if ch.MoreFields > 0 {
		x.More = count(int64(ch.MoreFields))
	}
	for _, h := range ch.Hidden {
		x.Hidden = append(x.Hidden, marked.Of(h))
	}
	return x
}

// itemKind and differenceName are words of ours.
func itemKind(k surface.Kind) Own { return own(k.String()) }

func differenceName(d surface.Difference) Own {
	switch d {
	case surface.Changed, surface.Added, surface.Removed:
		return own(string(d))
	}
	return "unchanged"
}

// itemGroups are the items by kind.
func itemGroups(pin *surface.Pin) (out []itemGroup) {
	for i := range pin.Items {
		it := &pin.Items[i]
		kind := itemKind(it.Kind)
		if len(out) == 0 || out[len(out)-1].Kind != kind {
			out = append(out, itemGroup{Kind: kind})
		}
		g := &out[len(out)-1]
		if len(g.Items) == maxItems {
			g.More = "and more"
			continue
		}
		g.Items = append(g.Items, approvedView{marked.Identifier(it.Name), own(string(it.State())), marked.Of(it.Approved)})
		g.N = count(int64(len(g.Items)))
	}
	return out
}

// decideItem approves or blocks the version of an item that the page showed.
func (c *Console) decideItem(q *request) answer {
	pin, no := c.pinOf(q)
	if no != nil {
		return no
	}
	if !pin.decides {
		return notYourPin()
	}
	if err := q.ParseForm(); err != nil {
		return failed(err)
	}
	// The digest names the version: what the server says by now may be another.
	digest, do := q.PostForm.Get("digest"), pin.place.Approve
	if q.PostForm.Get("verb") == "block" {
		do = pin.place.Block
	} else if q.PostForm.Get("verb") != "approve" {
		return notFound()
	}
	for i := range pin.Items {
		it := &pin.Items[i]
		if it.Pending == "" || it.PendingDigest().String() != digest {
			continue
		}
		err := do(q.Context(), pin.Server, it.Key, it.PendingDigest(), q.who.ID)
		if errors.Is(err, surface.ErrMoved) || errors.Is(err, surface.ErrNotPinned) {
			return moved(pin.Server)
		} else if err != nil {
			return failed(err)
		}
		return seeOther(serverPath(pin.Server, changesFrom(q.PostForm.Get("from"))))
	}
	return moved(pin.Server)
}

// notYourPin is the state of a decision about servers of which the person does not review each.
func notYourPin() state {
	return state{status: http.StatusForbidden, title: "No right", says: "This decision counts for every server that is run by this command or URL, and you do not review all of them.",
		why: "An operator says in the configuration, under console, which servers a reviewer decides about."}
}

// moved is the state of a decision about a version that the server no longer shows.
func moved(server string) state {
	return state{status: http.StatusConflict, title: "Changed meanwhile", says: "The server says something else by now, or another reviewer decided first. Nothing was approved or blocked.",
		kind: "held", to: pathTo("servers/" + segment(server)), toWord: "See what it says now"}
}
