// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
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
	May      bool // the person may decide
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
	Index Own // "": it is not in the log yet
	To    Path
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
	list, err := listOf(q)
	if err != nil {
		return unreadable(err, "", q.now)
	}
	v := newItemView(it, q.now)
	v.Told, v.May = c.told.take(q.URL.Query().Get("told"), q.who.ID), q.who.Decides(it.Server)
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
	if err == nil && v.Held && v.May {
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

// texts fills the page with the texts of the body, as they came and as they would be delivered.
func (v *itemView) texts(it *hold.Item, s *scrub.Scrubber) {
	switch {
	case it.Sealed():
		v.Sealed = true
		return
	case it.Body == nil:
		v.Gone = map[hold.State]Own{hold.Taken: "it was delivered", hold.Denied: "the item was denied, and its content destroyed", hold.Expired: "the item expired, and its content was destroyed"}[it.State]
		if v.Gone == "" {
			v.Gone = "it is not in the store any more"
		}
		return
	}
	left, more := maxItemText, 0
	for place, text := range review.Texts(it.Body) {
		if len(v.Texts) == maxTexts || left <= 0 {
			more++
			continue
		}
		left -= len(text)
		for _, h := range scrub.Reveal(text) {
			if h.Message != "" && len(v.Hidden) < 20 {
				v.Hidden = append(v.Hidden, hiddenView{marked.Of(h.Message), kindWord(h.Kind), marked.Identifier(place), bytesBetween(h.Start, h.End)})
			}
		}
		v.Texts = append(v.Texts, v.text(s, place, text))
	}
	slices.SortStableFunc(v.Texts, func(a, b textView) int { // what was found comes first
		return cmp.Compare(min(len(b.Ribbon.Marks), 1), min(len(a.Ribbon.Marks), 1))
	})
	if more > 0 {
		v.More = things(more, "text")
	}
}

func (v *itemView) text(s *scrub.Scrubber, place, text string) textView {
	out := textView{Place: marked.Identifier(place)}
	if v.Bytes {
		out.Received = marked.Of(hex.Dump([]byte(text[:min(len(text), maxBytes)])))
		return out
	}
	var r scrub.Result
	s.Scrub(text, &r)
	out.Ribbon = ribbonOf(r.Edits, len(text))
	if v.Read {
		out.Received = marked.Unfolded(text, r.Edits)
	} else {
		out.Received = marked.Received(text, r.Edits)
	}
	delivered := marked.Delivered(r.Clean.String(), r.Edits)
	out.Delivered = &delivered
	return out
}

// asked fills the page with the question, or with why it is not there.
func (v *itemView) asked(a review.Asked) {
	if a.Question == nil {
		v.AskedNo = own(a.Why)
		return
	}
	v.Context = len(a.Context) > 0
	body := []byte(a.Arguments)
	if v.Context {
		body = a.Context
	} else if a.Arguments == "" && a.Bytes > 0 {
		v.AskedLen = size(int64(a.Bytes))
		return
	}
	for place, text := range review.Texts(body) {
		if len(v.Asked) < maxTexts {
			v.Asked = append(v.Asked, textView{Place: marked.Identifier(place), Received: marked.Of(text)})
		}
	}
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
		if c.opt.Exceptions == nil || !hold.Exceptable(it.Code) || it.IsCall() || !q.who.Administers(it.Server) {
			return nil
		}
		seen, err := c.opt.Queue.Foresee(q.Context(), hold.Exception{Server: it.Server, Tool: it.Tool, Code: it.Code})
		if err != nil {
			return err
		}
		v.Except = &exceptView{N: things(seen.N, "item"), Digests: things(seen.Digests, "different result"), Principals: things(seen.Principals, "principal"),
			Waiting: count(int64(seen.Waiting)), Mixed: count(int64(seen.Mixed)), Looked: count(int64(seen.Looked)), None: seen.N == 0,
			Action: pathTo("exceptions"), ID: marked.Spelled(it.ID)}
	}
	return nil
}

// decideHeld decides about one item, and leads to the next one of the list.
func (c *Console) decideHeld(q *request) answer {
	if c.opt.Queue == nil {
		return noQueue()
	}
	it, err := c.opt.Queue.Get(q.Context(), q.PathValue("id"))
	switch {
	case err != nil:
		return failed(err)
	case !q.who.Decides(it.Server):
		return notYours()
	}
	list, err := listOf(q)
	if err != nil {
		return unreadable(err, "", q.now)
	}
	next, err := c.besideItem(q, &it, list, false)
	if err != nil {
		return failed(err)
	}
	sum, to := hold.Decided{Done: 1}, hold.Denied
	switch q.PostFormValue("do") {
	case "deny":
		err = c.opt.Queue.Deny(q.Context(), it.ID, q.who.ID)
	case "release":
		to = hold.Released
		if err = c.opt.Queue.Release(q.Context(), it.ID, q.who.ID); err == nil && it.People > 1 && it.Proposer == "" {
			sum = hold.Decided{Proposed: 1}
		}
	default:
		return notFound()
	}
	switch {
	case errors.Is(err, hold.ErrDecided), errors.Is(err, hold.ErrSecond), errors.Is(err, hold.ErrSealed):
		return c.notDecided(q, it.ID, err)
	case err != nil:
		return failed(err)
	}
	told := c.told.put(q.who.ID, toldOf(to, &sum))
	if next == "" {
		list.Set("told", told)
		return seeOther(queuePath("review", list))
	}
	return seeOther(pathTo("review/"+segment(next), "list", list.Encode(), "told", told))
}

// notDecided is the page of an item about which the person could not decide: it says by whom it was decided.
func (c *Console) notDecided(q *request, id string, why error) answer {
	it, err := c.opt.Queue.Get(q.Context(), id)
	if err != nil {
		return failed(err)
	}
	list, err := listOf(q)
	if err != nil {
		return unreadable(err, "", q.now)
	}
	t := toldView{Refused: true, First: errors.Is(why, hold.ErrDecided), Second: errors.Is(why, hold.ErrSecond), Sealed: errors.Is(why, hold.ErrSealed)}
	q.URL.RawQuery = url.Values{"told": {c.told.put(q.who.ID, t)}, "list": {list.Encode()}}.Encode()
	return c.itemPage(q, &it, http.StatusConflict)
}

// grantException grants an exception for what has held an item.
func (c *Console) grantException(q *request) answer {
	if c.opt.Queue == nil || c.opt.Exceptions == nil {
		return noQueue()
	}
	it, err := c.opt.Queue.Get(q.Context(), q.PostFormValue("id"))
	if err != nil {
		return failed(err)
	}
	if !q.who.Administers(it.Server) {
		return notYours()
	}
	keep, known := map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "30d": 30 * 24 * time.Hour, "90d": 90 * 24 * time.Hour}[q.PostFormValue("for")]
	x := hold.Exception{Server: it.Server, Tool: it.Tool, Code: it.Code, By: q.who.ID, Why: cutWhy(q.PostFormValue("why"))}
	if q.PostFormValue("this") != "" {
		x.Digest = it.Digest
	}
	if !known || it.IsCall() || !hold.Exceptable(it.Code) {
		return state{status: http.StatusBadRequest, title: "Nothing was granted", says: "No exception can be granted for what has held this item.", why: "Change the rule in the configuration."}
	}
	if _, err := c.opt.Exceptions.Grant(q.Context(), x, keep); err != nil {
		return failed(err)
	}
	return seeOther(pathTo("review/"+segment(it.ID), "told", c.told.put(q.who.ID, toldView{Granted: true, Until: minute(q.now.Add(keep))})))
}

func cutWhy(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), hold.MaxWhy)], "")
}

// revokeException ends an exception.
func (c *Console) revokeException(q *request) answer {
	if c.opt.Exceptions == nil {
		return noQueue()
	}
	x, err := c.opt.Exceptions.Get(q.Context(), q.PathValue("id"))
	switch {
	case err != nil:
		return failed(err)
	case !q.who.Administers(x.Server):
		return notYours()
	}
	if err := c.opt.Exceptions.Revoke(q.Context(), x.ID, q.who.ID); err != nil {
		return failed(err)
	}
	return seeOther(pathTo("review"))
}
