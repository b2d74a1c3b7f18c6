// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
)

var guardRoutes = []route{
	{pattern: "GET guard", least: Viewer, handle: (*Console).guardPage, rail: entry{50, "Guard", "guard", "a"}},
	{pattern: "GET guard/{id}", least: Viewer, handle: (*Console).guarded},
	{pattern: "POST guard/{id}/decide", least: Reviewer, handle: (*Console).decideCall},
}

// Bounds of a page of the guard.
const (
	maxCalls    = 100
	maxGuarded  = 100
	maxCallBody = 64 << 10
)

type guardView struct {
	Waits   []waitsView
	More    bool
	Log     bool
	Behind  Own // how many records the index does not have yet; "": it has all
	Decided []guardedRow
}

func (guardView) template() string { return "guard" }

type waitsView struct {
	To    Path
	Tool  marked.Name
	For   marked.Name
	Since Own
	Until Own
}

type guardedRow struct {
	To     Path
	ID     marked.Name
	At     Own
	Act    Own
	Reason Own
}

// guardPage lists the calls that wait, and the latest decisions.
func (c *Console) guardPage(q *request) answer {
	if c.opt.Queue == nil {
		return missing("Guard", "There is no guard here.", "pellucid guard stands between an agent and the provider of its model, and holds tool calls that third-party text has caused.", "pellucid guard --help")
	}
	v := guardView{Log: c.opt.Ledger != nil}
	if q.who.Sees(guard.DeskServer) {
		items, err := c.opt.Queue.List(q.Context(), hold.Filter{State: hold.Held, Server: guard.DeskServer, Limit: maxCalls})
		if err != nil {
			return failed(err)
		}
		v.More = len(items) == maxCalls
		for i := range items {
			it := &items[i]
			x := waitsView{To: pathTo("guard/" + segment(it.ID)), Tool: marked.Identifier(it.Tool), Since: moment(it.Held), Until: moment(it.Until)}
			if q.who.Decides(guard.DeskServer) { // as in the queue
				x.For = marked.Identifier(it.Principal)
			}
			v.Waits = append(v.Waits, x)
		}
	}
	if c.opt.Ledger == nil {
		return page("Guard", v)
	}
	if !q.who.Sees(guard.DeskServer) {
		return page("Guard", v)
	}
	if err := c.opt.Ledger.View(q.Context(), v.decided); err != nil {
		return failed(err)
	}
	return page("Guard", v)
}

// decided lists the latest decisions.
func (v *guardView) decided(x *storage.View) error {
	f := index.Filter{Kinds: []ledger.Kind{ledger.Counterfactual}}
	for _, act := range guard.Acts {
		f.Verdicts = append(f.Verdicts, string(act))
	}
	list, err := x.List(&f, storage.Page{Limit: maxGuarded})
	if err != nil {
		return err
	}
	if n := x.Status.Behind(); n > 0 {
		v.Behind = counted(n, "record")
	}
	for i := range list.Rows {
		r := &list.Rows[i]
		v.Decided = append(v.Decided, guardedRow{pathTo("guard/" + segment(r.ID.String())), marked.Identifier(r.ID.String()), moment(r.Time), labelWord(r.Verdict), labelWord(r.Reason)})
	}
	return nil
}

type guardedView struct {
	Told   *toldView
	ID     marked.Name
	Tool   marked.Name
	Record Path
	// The held call.
	Held      bool
	Waits     bool
	State     Own
	Since     Own
	Until     Own
	By        marked.Name
	Decided   bool
	MayDecide bool
	Two       bool         // a release needs two persons
	Proposer  *marked.Name // who has proposed it; nil: no person
	Proposed  Own
	Sealed    bool
	Call      marked.Text
	HasCall   bool
	Decide    Path
	Case      Path // "": the person may not have it
	Read      []readView
	ReadMore  bool
	ReadNo    Own // why what the model has read is not here
	// The statement.
	Known   bool
	Why     Own // the reason, if there is nothing to show
	Act     Own
	Reason  Own
	Asked   Own
	Matches bool // the digest of the ledger
	Checked bool // it was compared
	Calls   []callView
	Runs    []runView
	Replay  marked.Plain
}

func (guardedView) template() string { return "guarded" }

type callView struct {
	Tool      marked.Name
	Verdict   Own
	Response  Own
	Unread    bool
	Own       bool
	Arguments []argumentView
	Rules     []marked.Name
}

type argumentView struct {
	Label    marked.Name
	Form     Own
	From     Own
	Segments []marked.Name
}

// A runView is a search for the segments that took control.
type runView struct {
	Classes  []classView
	Calls    Own
	Tokens   Own
	Took     Own
	Segments []segmentView
	Probes   []probeView
	More     bool // probes than are shown
}

type classView struct {
	Class    Own
	Response Own
	Severity Own
	Band     Own
	Causes   Own
}

// A segmentView is a segment of the context by how much it moved the model.
type segmentView struct {
	N      Own
	Source marked.Name
	Known  bool // its source
	Effect Own
	Hint   Own // class of the row: m1, p1, p2, p3
	Shown  Own
	Hidden Own
	X, W   Own // of the meter, in a plot of 96
	Pushes bool
}

// guarded shows one decision of the guard.
func (c *Console) guarded(q *request) answer {
	return c.guardedPage(q, c.told.take(q.URL.Query().Get("told"), q.who.ID), http.StatusOK)
}

func (c *Console) guardedPage(q *request, told *toldView, status int) answer {
	id := q.PathValue("id")
	if c.opt.Queue == nil || !hold.ValidID(id) {
		return notFound()
	}
	if !q.who.Sees(guard.DeskServer) {
		return notYours()
	}
	v := guardedView{Told: told, ID: marked.Identifier(id), Record: pathTo(findPath + "/" + segment(id)), Decide: pathTo("guard/" + segment(id) + "/decide")}
	it, err := c.opt.Queue.Get(q.Context(), id)
	switch {
	case errors.Is(err, hold.ErrNotFound):
	case err != nil:
		return failed(err)
	case it.Rule == hold.GuardCall:
		v.call(q, &it)
		v.context(c, &it)
	}
	if c.opt.Case != nil && c.opt.Ledger != nil && q.who.Decides(guard.DeskServer) {
		v.Case = pathTo(findPath + "/" + segment(id) + "/case")
	}
	if err := c.statement(q, id, &v); err != nil {
		return failed(err)
	}
	if !v.Held && !v.Known && v.Why == "" {
		return notFound()
	}
	return pageAnswer{status, "Decision of the guard", v}
}

// call fills what the queue has.
func (v *guardedView) call(q *request, it *hold.Item) {
	v.Held, v.Waits, v.State, v.Since, v.Until = true, it.State == hold.Held, labelWord(string(it.State)), moment(it.Held), moment(it.Until)
	v.Tool, v.By, v.Decided = marked.Identifier(it.Tool), marked.Identifier(it.By), it.By != ""
	v.MayDecide, v.Sealed = q.who.Decides(guard.DeskServer), it.Sealed()
	v.Two, v.Proposer, v.Proposed = it.People > 1, nameOf(it.Proposer), moment(it.Proposed)
	if !it.Sealed() && it.Body != nil && v.MayDecide {
		v.HasCall, v.Call = true, marked.Of(string(it.Body[:min(len(it.Body), maxCallBody)]))
	}
}

// statement fills what the guard has found out, from its file.
func (c *Console) statement(q *request, id string, v *guardedView) error {
	if c.opt.Statement == nil {
		v.Why = "The statements of the guard are on the machine on which it runs."
		return nil
	}
	parsed, err := ledger.ParseID(id)
	if err != nil {
		return err
	}
	text, err := c.opt.Statement(parsed)
	switch {
	case err != nil:
		return err
	case text == nil && v.Held:
		v.Why = "The statement of this decision is not on this machine."
		return nil
	case text == nil:
		return nil
	}
	e, err := guard.Replay(text)
	if err != nil {
		v.Why = "The statement was changed, or another version of this program wrote it: its verdict does not follow from its answers."
		return nil
	}
	if e.ID != id {
		v.Why = "The statement is that of another decision."
		return nil
	}
	v.Known, v.Act, v.Reason, v.Asked = true, labelWord(string(e.Act)), labelWord(string(e.Reason)), count(int64(e.Questions()))
	v.Replay = marked.Spelled("pellucid ccr replay guard/" + id + ".json")
	v.Checked, v.Matches = c.inLog(q.Context(), parsed, text)
	sources := map[int]string{}
	for _, s := range e.Sources {
		sources[s.Segment] = s.Source
	}
	for i := range e.Calls {
		v.Calls = append(v.Calls, newCall(&e.Calls[i], sources))
	}
	for _, r := range e.Runs {
		v.Runs = append(v.Runs, newRun(r, sources))
	}
	v.weigh(e.Runs)
	if len(e.Calls) > 0 && !v.Held {
		v.Tool = marked.Identifier(e.Calls[0].Tool)
	}
	return nil
}

// decideCall releases or denies a call that waits.
func (c *Console) decideCall(q *request) answer {
	id := q.PathValue("id")
	if c.opt.Queue == nil || !hold.ValidID(id) {
		return notFound()
	}
	if !q.who.Decides(guard.DeskServer) {
		return notYours()
	}
	if err := q.ParseForm(); err != nil {
		return failed(err)
	}
	it, err := c.opt.Queue.Get(q.Context(), id)
	if err == nil && it.Rule != hold.GuardCall {
		err = hold.ErrNotFound
	}
	sum, to := hold.Decided{Done: 1}, hold.Denied
	if err == nil {
		switch q.PostForm.Get("verb") {
		case "release":
			to = hold.Released
			if err = c.opt.Queue.Release(q.Context(), id, q.who.ID); it.People > 1 && it.Proposer == "" {
				sum = hold.Decided{Proposed: 1}
			}
		case "deny":
			err = c.opt.Queue.Deny(q.Context(), id, q.who.ID)
		default:
			return notFound()
		}
	}
	if not := refusedOf(err); not != nil {
		return c.guardedPage(q, not, http.StatusConflict)
	}
	if err != nil {
		return failed(err)
	}
	return seeOther(pathTo("guard/"+segment(id), "told", c.told.put(q.who.ID, toldOf(to, &sum))))
}

// effect is a difference of two rates in thousandths, for a person.
func effect(n int) Own { return own(fmt.Sprintf("%+.2f", float64(n)/1000)) }
