// SPDX-License-Identifier: Apache-2.0

package console

import (
	"strconv"
	"time"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

var reviewRoutes = []route{
	{pattern: "GET review", least: Reviewer, handle: (*Console).review, rail: entry{place: 20, word: "Review", icon: "review", key: "r"}},
	{pattern: "POST review", least: Reviewer, handle: (*Console).decideSelection},
	{pattern: "GET review/{id}", least: Reviewer, handle: (*Console).item},
	{pattern: "POST review/{id}", least: Reviewer, handle: (*Console).decideHeld},
	{pattern: "POST exceptions", least: Admin, handle: (*Console).grantException},
	{pattern: "POST exceptions/{id}", least: Admin, handle: (*Console).changeException},
}

// groupPage is the number of groups or items on a page of the queue.
const groupPage = 50

type reviewView struct {
	Told    *toldView
	N       Own // items
	Of      Own // groups; "": they are not grouped
	Until   Own // the time back to which items were counted; "": all were
	Groups  []choiceView
	States  []choiceView
	Sorts   []choiceView
	Chips   []chipView
	Filter  marked.Plain
	Bad     bool        // the filter cannot be read
	Wrong   marked.Text // why
	Note    Own         // why nothing is asked; "": nothing to say
	Hidden  []inputView // of the form of the filter
	Same    marked.Plain
	AsOf    Own
	Newer   Own // "": nothing is newer
	NewerTo Path
	Keep    []inputView // of the form of a selection
	Rows    []reviewRow
	Older   Path
	Range   Own
	Empty   bool // nothing waits at all
	None    bool // nothing fits
	Clear   Path
	Ask     *askView
	Held    bool // rows can be decided
	Granted []grantedView
	Full    []fullView
	Flagged []flaggedView
}

// A flaggedView is what classifiers have flagged of one server on one day, held or not.
type flaggedView struct {
	Day, N, Score Own
	Server        marked.Name
	Sentence      marked.Text // the worst
	To            Path        // of the decision, where it is known
}

// listFlagged fills in what classifiers have flagged of the servers that the person sees.
func (c *Console) listFlagged(q *request, v *reviewView) {
	if c.opt.Flagged == nil {
		return
	}
	for _, f := range c.opt.Flagged() {
		if !q.who.Sees(f.Server) || len(v.Flagged) == groupPage {
			continue
		}
		row := flaggedView{Day: own(f.Day), N: things(f.N, "text"), Score: own(strconv.FormatFloat(f.Classified.Score, 'f', 2, 64)), Server: *nameOf(f.Server), Sentence: marked.Of(f.Sentence)}
		if id, err := ledger.ParseID(f.Of); err == nil && c.opt.Ledger != nil {
			row.To = recordPath(id)
		}
		v.Flagged = append(v.Flagged, row)
	}
}

// A fullView is a share of the queue that has no room.
type fullView struct {
	Of   Own
	Name *marked.Name
	N    Own
}

// listFullShares fills in the shares of the queue that are full, as far as the person may know of them.
func (c *Console) listFullShares(q *request, v *reviewView) error {
	list, err := c.opt.Queue.FullShares(q.Context())
	for _, t := range list {
		if t.Of == hold.OfServer && q.who.Sees(t.Name) || t.Of == hold.OfPrincipal && q.who.AllServers || t.Of == hold.OfAll {
			v.Full = append(v.Full, fullView{own(string(t.Of)), nameOf(t.Name), things(t.Items, "item")})
		}
	}
	return err
}

func (reviewView) template() string { return "review" }

type choiceView struct {
	To   Path
	Word Own
	Here bool
}

type chipView struct {
	Name  Own
	Value marked.Name
	To    Path // without it
}

type inputView struct {
	Name  Own
	Value marked.Plain
}

type reviewRow struct {
	Key     marked.Plain // of the selection
	Picked  bool
	N       Own
	To      Path
	Server  marked.Name
	Tool    *marked.Name
	Codes   []Own
	Said    *marked.Text // decoded message; nil: none
	Note    Own          // said in place of an empty list
	Ribbon  ribbonView
	Who     *marked.Name
	Many    Own // principals, where they are several
	Waits   Own
	State   Own // where the list has items of every state
	Left    Own // "": its time is over
	Size    Own
	Deny    Path
	Release Path
}

// An askView is what is about to be decided.
type askView struct {
	Verb       Own // "Deny" or "Release"
	Do         Own
	Key        Own
	N          Own
	Many       bool
	Principals Own
	Since      Own
	AsOf       Own
	Fields     []inputView
	Cancel     Path
	Look       Path
}

// review is the queue: groups of what waits, and what is about to be decided about them.
func (c *Console) review(q *request) answer {
	if c.opt.Queue == nil {
		return noQueue()
	}
	form := q.URL.Query()
	s, err := readQueue(form, q.now)
	if err != nil {
		return unreadable(err, firstOf(form.Get("filter"), form.Encode()), q.now)
	}
	if form.Has("filter") {
		return s.filtered(form.Get("filter"), q.now)
	}
	if !s.seen {
		s.f.AsOf, s.seen = q.now.UTC(), true
	}
	f := limited(s.f, q.who)
	v := &reviewView{AsOf: moment(s.f.AsOf), Told: c.told.take(form.Get("told"), q.who.ID), Same: marked.Spelled(s.command()), Held: s.f.State == hold.Held}
	if s.by == "" {
		err = c.reviewItems(q, v, &s, f)
	} else {
		err = c.reviewGroups(q, v, &s, f)
	}
	if err == nil && s.ask != "" && v.Held {
		filters, wrong := s.selected(q.who)
		if wrong != nil {
			return unreadable(wrong, form.Encode(), q.now)
		}
		err = c.askAbout(q, v, &s, filters)
	}
	if err == nil {
		err = c.newer(q, v, &s, f)
	}
	if err == nil {
		err = c.exceptions(q, v)
	}
	if err == nil {
		err = c.listFullShares(q, v)
		c.listFlagged(q, v)
	}
	if err != nil {
		return failed(err)
	}
	s.choices(v)
	return page("Review", v)
}

func noQueue() answer {
	s := missing("Review", "Results are not held here.", "A gateway and pellucid wrap with evidence keep what they withhold, and it is decided about on this page.", "pellucid quarantine list")
	s.stored = true
	return s
}

// reviewGroups fills the page with groups.
func (c *Console) reviewGroups(q *request, v *reviewView, s *queueQuery, f hold.Filter) error {
	f.Limit, f.After = groupPage, ""
	counted, err := c.opt.Queue.Groups(q.Context(), f, s.by, s.sort, s.skip)
	if err != nil {
		return err
	}
	v.N, v.Of = things(counted.N, "item"), things(counted.Total, "group")
	if !counted.Until.IsZero() {
		v.Until = minute(counted.Until)
	}
	for i := range counted.Groups {
		g := &counted.Groups[i]
		r := s.row(&g.Last, groupKey(g, s.by), q.now)
		r.N = count(int64(g.N))
		if g.Principals > 1 {
			r.Who, r.Many = nil, things(g.Principals, "principal")
		}
		r.Waits = lasts(q.now.Sub(g.Oldest))
		v.Rows = append(v.Rows, r)
	}
	if end := s.skip + len(counted.Groups); end < counted.Total {
		v.Older = s.with("skip", strconv.Itoa(end))
	}
	v.Range = rangeOf(s.skip, len(counted.Groups), counted.Total, "group")
	v.none(counted.N, s)
	return nil
}

// reviewItems fills the page with single items.
func (c *Console) reviewItems(q *request, v *reviewView, s *queueQuery, f hold.Filter) error {
	f.Limit = groupPage
	p, err := c.opt.Queue.Page(q.Context(), f)
	if err != nil {
		return err
	}
	for i := range p.Items {
		it := &p.Items[i]
		r := s.row(it, keyOf(&hold.Filter{ID: it.ID}), q.now)
		r.N, r.Waits = "1", lasts(q.now.Sub(it.Held))
		if s.f.State == "" {
			r.State = stateWord(it.State)
		}
		v.Rows = append(v.Rows, r)
	}
	if p.Next != "" {
		v.Older = s.with("after", p.Next)
	}
	v.N = things(len(p.Items), "item")
	v.none(len(p.Items), s)
	return nil
}

// none says why a page has no rows.
func (v *reviewView) none(n int, s *queueQuery) {
	bare := queueQuery{f: hold.Filter{State: hold.Held, AsOf: s.f.AsOf}, by: s.by, sort: s.sort, seen: true}
	plain := s.with("asof", "", "skip", "", "after", "") == bare.with("asof", "")
	v.Empty, v.None, v.Clear = n == 0 && plain, n == 0 && !plain, "/console/review"
}

// newer counts what came after the time of the page.
func (c *Console) newer(q *request, v *reviewView, s *queueQuery, f hold.Filter) error {
	f.Since, f.AsOf, f.After = s.f.AsOf.Add(1), time.Time{}, ""
	if !s.seen || q.now.Sub(s.f.AsOf) < time.Second {
		return nil
	}
	sel, err := c.opt.Queue.Select(q.Context(), &f)
	if err == nil && sel.N > 0 {
		v.Newer, v.NewerTo = things(sel.N, "newer item"), s.with("asof", "", "skip", "", "after", "")
	}
	return err
}
