// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/review"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// Bounds of what an item's page shows.
const (
	maxTexts    = 100
	maxItemText = 256 << 10 // bytes of all texts
	maxBytes    = 4 << 10   // of one text as bytes
)

type itemView struct {
	Told     *toldView
	List     Path
	ID       marked.Name
	Server   marked.Name
	Tool     *marked.Name
	State    Own
	Held     bool
	IsCall   bool
	Code     Own
	Rule     marked.Name
	When     Own
	Waits    Own
	Left     Own
	Size     Own
	Who      *marked.Name
	By       *marked.Name
	Decided  Own
	Digest   Own
	Call     Own
	Two      bool
	Proposer *marked.Name
	Proposed Own
	CanGrant bool // the person can grant an exception
	NoGrant  Own  // why an exception is not offered; "": nothing to say
	Except   *exceptView
	Ask      *askView
	Deny     Path
	Release  Path
	AskE     Path
	Next     Path // "": it is the last
	Back     Path // "": it is the first
	Profile  Own  // by which the delivered texts are made
	Default  bool // the rules in force are not known here
	Kept     *keptView
	Trust    Path // "": the page of the server is not there
	Same     Path
	Hidden   []hiddenView
	Asked    []textView
	AskedNo  Own
	AskedLen Own
	Context  bool
	Sealed   bool
	Gone     Own // why there is no content; "": there is
	Command  marked.Plain
	Views    []choiceView
	Bytes    bool
	Read     bool
	Texts    []textView
	More     Own // texts that are not shown
	Findings []findingView
	Scores   []scoreView
	Before   []choiceView
	Record   marked.Plain
	Path     Path
}

func (itemView) template() string { return "item" }

// A keptView is the record of an item.
type keptView struct {
	Index  Own // "": it is not in the log yet
	To     Path
	Export Path // "": the person may not have the case
}

type hiddenView struct {
	Said  marked.Text
	Kind  Own
	Place marked.Name
	At    Own
}

type textView struct {
	Place     marked.Name
	Received  marked.Text
	Delivered *marked.Text
	Ribbon    ribbonView
}

type findingView struct {
	Code     Own
	Severity Own
	Count    Own
	Place    marked.Name
	Spans    Own
	Held     bool
}

type scoreView struct {
	Name    marked.Name
	Mode    marked.Name
	P       Own
	Outcome marked.Name
	Why     *marked.Name
}

// exceptView is the form of an exception.
type exceptView struct {
	N, Digests, Principals, Waiting, Mixed, Looked Own
	None                                           bool
	Two                                            bool // another person has to confirm it
	Action                                         Path
	ID                                             marked.Plain
}

// A ribbonView is a text as a strip, with a mark where something was found.
type ribbonView struct{ Marks []ribbonMark }

type ribbonMark struct {
	At, Width Own
	Class     Own
}

// item is one item of the queue with all that is known of it.
func (c *Console) item(q *request) answer {
	if c.opt.Queue == nil {
		return noQueue()
	}
	it, err := c.opt.Queue.Get(q.Context(), q.PathValue("id"))
	switch {
	case errors.Is(err, hold.ErrNotFound) && c.opt.Captures != nil && c.opt.Sealer != nil && hold.ValidID(q.PathValue("id")):
		return c.captured(q, q.PathValue("id"))
	case errors.Is(err, hold.ErrNotFound):
		return state{status: http.StatusNotFound, title: "Not found", says: "There is no such item.", why: "Items are listed for 30 days after the decision about them. The record of a decision stays in the log.",
			to: pathTo("review"), toWord: "To the queue"}
	case err != nil:
		return failed(err)
	case !q.who.Decides(it.Server):
		return notYours()
	}
	return c.itemPage(q, &it, http.StatusOK)
}

func (c *Console) itemPage(q *request, it *hold.Item, status int) answer {
	if no := c.waitForText(q, len(it.Body)); no != nil {
		return no
	}
	list, err := listOf(q)
	if err != nil {
		return unreadable(err, "", q.now)
	}
	v := newItemView(it, q.now)
	v.Told = c.told.take(q.URL.Query().Get("told"), q.who.ID)
	v.CanGrant, v.NoGrant = c.grantable(q, it)
	v.List, v.Path = queuePath("review", list), pathTo("review/"+segment(it.ID), "list", list.Encode())
	at := func(pairs ...string) Path {
		return pathTo("review/"+segment(it.ID), append([]string{"list", list.Encode()}, pairs...)...)
	}
	v.Deny, v.Release, v.AskE = at("ask", "deny"), at("ask", "release"), at("ask", "except")
	v.Same = pathTo("review", "state", "all", "digest", it.Digest.String(), "group", "none")
	v.Views = []choiceView{{at("view", "marked"), "marked", false}, {at("view", "read"), "as read", false}, {at("view", "bytes"), "bytes", false}}
	shown := map[string]int{"read": 1, "bytes": 2}[q.URL.Query().Get("view")]
	v.Views[shown].Here, v.Read, v.Bytes = true, shown == 1, shown == 2
	s, err := c.scrubber(it, v)
	if err != nil {
		return failed(err)
	}
	v.texts(it, s)
	if c.opt.Sealer != nil {
		v.asked(review.Ask(it, c.opt.Sealer, ""))
	}
	err = c.around(q, it, list, v)
	if err == nil {
		err = c.kept(q, it, v)
	}
	if err == nil && v.Held {
		err = c.askItem(q, it, list, v)
	}
	if err != nil {
		return failed(err)
	}
	return pageAnswer{status, "Item", v}
}

// scrubber makes texts as the rules in force have them delivered. A console of no gateway does not know the rules:
// it has the profile that applies where no rule says another.
func (c *Console) scrubber(it *hold.Item, v *itemView) (*scrub.Scrubber, error) {
	p := scrub.Policy{Profile: scrub.Faithful}
	v.Default = true
	if c.opt.Rules != nil {
		all := c.opt.Rules()
		if server := all.Server(it.Server); server != nil {
			rule := server.Rule(it.Tool)
			p.MaxChars, p.Tokens, v.Default = rule.MaxChars, all.Tokens, false
			if rule.Profile == gateway.MCP {
				p.Profile = scrub.MCP
			}
		}
	}
	v.Profile = own(p.Profile.String())
	return scrub.Compile(p)
}

// kept finds the record of the item, and the page that has the trust of its server.
func (c *Console) kept(q *request, it *hold.Item, v *itemView) error {
	for _, place := range c.opt.Pins {
		if pin, err := place.Get(q.Context(), it.Server); err == nil && q.who.seesPin(&pin) {
			v.Trust = pathTo("servers/" + segment(pin.Server))
			break
		}
	}
	id, err := ledger.ParseID(it.ID)
	if c.opt.Ledger == nil || err != nil {
		return nil
	}
	v.Kept = &keptView{To: recordPath(id)}
	e, err := c.opt.Ledger.Get(q.Context(), id)
	switch {
	case errors.Is(err, ledger.ErrNotFound), errors.Is(err, sequence.ErrNoLog):
		return nil
	case err != nil:
		return err
	}
	v.Kept.Index = count(e.Index)
	if c.opt.Case != nil && q.who.Decides(it.Server) {
		v.Kept.Export = pathTo(findPath + "/" + id.String() + "/case")
	}
	return nil
}

// newItemView is what the item itself says.
func newItemView(it *hold.Item, now time.Time) *itemView {
	v := &itemView{ID: marked.Identifier(it.ID), Server: marked.Identifier(it.Server), State: stateWord(it.State), Held: it.State == hold.Held, IsCall: it.IsCall(), Code: codeName(it.Code),
		Rule: marked.Identifier(it.Rule), When: moment(it.Held), Waits: lasts(now.Sub(it.Held)), Left: lasts(it.Until.Sub(now)), Size: size(int64(it.Bytes)),
		Digest: own(it.Digest.String()), Call: own(it.Call.String()), Decided: moment(it.Decided), Two: it.People > 1, Proposed: moment(it.Proposed),
		Command: marked.Spelled("pellucid quarantine show --identity file:KEY " + it.ID), Record: marked.Spelled("pellucid explain " + it.ID)}
	v.Tool, v.Who, v.By, v.Proposer = nameOf(it.Tool), nameOf(it.Principal), nameOf(it.By), nameOf(it.Proposer)
	for _, f := range review.Findings(&it.Found) {
		v.Findings = append(v.Findings, findingView{codeName(ledgerCode(f.Code)), severityWord(f.Severity), count(int64(f.Count)), marked.Identifier(f.Place), spansWord(f.Spans), f.Code == string(it.Code)})
	}
	for _, s := range review.Scores(&it.Found) {
		p := fraction(s.P)
		if s.Reason != "" { // it has not judged: there is no score
			p = "\u2013"
		}
		v.Scores = append(v.Scores, scoreView{marked.Identifier(s.Name), marked.Identifier(s.Mode), p, marked.Identifier(s.Outcome), nameOf(firstOf(s.Reason, s.Code))})
	}
	return v
}

func nameOf(s string) *marked.Name {
	if s == "" {
		return nil
	}
	n := marked.Identifier(s)
	return &n
}

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

// around finds what the digest was before, and the next item of the list.
func (c *Console) around(q *request, it *hold.Item, list url.Values, v *itemView) error {
	for _, st := range []struct {
		state hold.State
		word  Own
	}{{hold.Held, "waiting"}, {hold.Released, "released"}, {hold.Taken, "delivered"}, {hold.Denied, "denied"}, {hold.Expired, "expired"}} {
		f := limited(hold.Filter{State: st.state, Digest: it.Digest}, q.who)
		sel, err := c.opt.Queue.Select(q.Context(), &f)
		if err != nil {
			return err
		}
		if sel.N > 0 {
			v.Before = append(v.Before, choiceView{pathTo("review", "state", string(st.state), "digest", it.Digest.String(), "group", "none"), things(sel.N, "time") + ", " + st.word, false})
		}
	}
	for _, to := range []struct {
		back bool
		path *Path
	}{{false, &v.Next}, {true, &v.Back}} {
		id, err := c.besideItem(q, it, list, to.back)
		if err != nil {
			return err
		}
		if id != "" {
			*to.path = pathTo("review/"+segment(id), "list", list.Encode())
		}
	}
	return nil
}

// besideItem is the id of the waiting item behind it, or in front of it, in the list that the person came from;
// "" where the list ends.
func (c *Console) besideItem(q *request, it *hold.Item, list url.Values, back bool) (string, error) {
	s, err := readQueue(list, q.now)
	if err != nil {
		return "", err
	}
	f := limited(s.f, q.who)
	f.State, f.Limit, f.After, f.Oldest = hold.Held, 1, it.ID, f.Oldest != back
	items, _, err := c.opt.Queue.Pages(q.Context(), f)
	if errors.Is(err, hold.ErrNotFound) {
		return "", nil
	}
	if err != nil || len(items) == 0 {
		return "", err
	}
	return items[0].ID, nil
}

// listOf is the list that the person came from.
func listOf(q *request) (url.Values, error) {
	v, err := url.ParseQuery(firstOf(q.PostFormValue("list"), q.URL.Query().Get("list")))
	if err != nil {
		return nil, errors.New("list: it is not the address of a list")
	}
	s, err := readQueue(v, q.now)
	return s.values(), err
}

// askItem fills the page with what is about to be decided.
func (c *Console) askItem(q *request, it *hold.Item, list url.Values, v *itemView) error {
	ask := q.URL.Query().Get("ask")
	fields := []inputView{{"list", marked.Spelled(list.Encode())}}
	switch ask {
	case "deny":
		v.Ask = &askView{Verb: "Deny", Do: "deny", Key: "d", N: "1", Fields: fields, Cancel: v.Path}
	case "release":
		v.Ask = &askView{Verb: "Release", Do: "release", Key: "r", N: "1", Fields: fields, Cancel: v.Path}
	case "except":
		if !v.CanGrant {
			return nil
		}
		seen, err := c.opt.Queue.Foresee(q.Context(), hold.Exception{Server: it.Server, Tool: it.Tool, Code: it.Code})
		if err != nil {
			return err
		}
		v.Except = &exceptView{N: things(seen.N, "item"), Digests: things(seen.Digests, "different result"), Principals: things(seen.Principals, "principal"),
			Waiting: count(int64(seen.Waiting)), Mixed: count(int64(seen.Mixed)), Looked: count(int64(seen.Looked)), None: seen.N == 0, Two: it.People > 1,
			Action: pathTo("exceptions"), ID: marked.Spelled(it.ID)}
	}
	return nil
}
