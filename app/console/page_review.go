// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/review"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

var reviewRoutes = []route{
	{pattern: "GET review", least: Reviewer, handle: (*Console).review, rail: entry{place: 20, word: "Review", icon: "review", key: "r"}},
	{pattern: "POST review", least: Reviewer, handle: (*Console).decideSelection},
	{pattern: "GET review/{id}", least: Reviewer, handle: (*Console).item},
	{pattern: "POST review/{id}", least: Reviewer, handle: (*Console).decideHeld},
	{pattern: "POST exceptions", least: Admin, handle: (*Console).grantException},
	{pattern: "POST exceptions/{id}", least: Admin, handle: (*Console).revokeException},
}

// groupPage is the number of groups or items on a page of the queue.
const groupPage = 50

// A queueQuery is what the address of the queue says.
type queueQuery struct {
	f     hold.Filter
	by    hold.GroupBy // "": items
	sort  hold.GroupSort
	skip  int
	since string // as it was written
	ask   string // "deny", "release", "except": what is to be confirmed; "": nothing
	sel   []string
	seen  bool // the address has a time
}

// queueMembers are the filters in the address, in the order of the page.
var queueMembers = []struct {
	name Own
	of   func(*hold.Filter) *string
}{
	{"server", func(f *hold.Filter) *string { return &f.Server }},
	{"tool", func(f *hold.Filter) *string { return &f.Tool }},
	{"code", func(f *hold.Filter) *string { return (*string)(&f.Code) }},
	{"found", func(f *hold.Filter) *string { return (*string)(&f.Found) }},
	{"rule", func(f *hold.Filter) *string { return &f.Rule }},
	{"principal", func(f *hold.Filter) *string { return &f.Principal }},
	{"text", func(f *hold.Filter) *string { return &f.Text }},
}

// readQueue reads an address or a form. What it does not know is left out.
func readQueue(v url.Values, now time.Time) queueQuery {
	q := queueQuery{by: hold.ByDigest, sort: hold.MostFirst, sel: v["sel"], since: v.Get("since")}
	q.f.State = hold.Held
	if s := hold.State(v.Get("state")); s.Known() {
		q.f.State = s
	} else if v.Get("state") == "all" {
		q.f.State = ""
	}
	for _, m := range queueMembers {
		*m.of(&q.f) = v.Get(string(m.name))
	}
	q.f.Digest, _ = parseDigest(v.Get("digest"))
	if since, err := terminal.Moment("since", q.since, now); err == nil {
		q.f.Since = since
	} else {
		q.since = ""
	}
	if by := hold.GroupBy(v.Get("group")); slices.Contains(hold.Groups, by) {
		q.by = by
	} else if by == "none" {
		q.by = ""
	}
	if s := hold.GroupSort(v.Get("sort")); slices.Contains(hold.GroupSorts, s) {
		q.sort = s
	}
	q.f.Oldest = q.by == "" && q.sort == hold.OldestFirst
	if n, err := strconv.Atoi(v.Get("skip")); err == nil && n > 0 {
		q.skip = n
	}
	if ask := v.Get("ask"); len(q.sel) > 0 && len(q.sel) <= groupPage && slices.Contains([]string{"deny", "release"}, ask) {
		q.ask = ask
	}
	q.f.After = v.Get("after")
	if at, err := time.Parse(time.RFC3339Nano, v.Get("asof")); err == nil && !at.After(now) {
		q.f.AsOf, q.seen = at, true
	}
	return q
}

func parseDigest(s string) (d hold.Digest, ok bool) {
	sum, err := hex.DecodeString(strings.TrimPrefix(s, "sha256:"))
	if err != nil || len(sum) != len(d) {
		return d, false
	}
	return hold.Digest(sum), true
}

// values are the address of the queue, without what is selected.
func (q *queueQuery) values() url.Values {
	v := url.Values{}
	set := func(name, value, usual string) {
		if value != usual {
			v.Set(name, value)
		}
	}
	state := string(q.f.State)
	if state == "" {
		state = "all"
	}
	set("state", state, "held")
	for _, m := range queueMembers {
		set(string(m.name), *m.of(&q.f), "")
	}
	if q.f.Digest != (hold.Digest{}) {
		v.Set("digest", q.f.Digest.String())
	}
	set("since", q.since, "")
	by := string(q.by)
	if by == "" {
		by = "none"
	}
	set("group", by, "digest")
	set("sort", string(q.sort), "count")
	if q.skip > 0 {
		v.Set("skip", strconv.Itoa(q.skip))
	}
	set("after", q.f.After, "")
	if q.seen {
		v.Set("asof", q.f.AsOf.Format(time.RFC3339Nano))
	}
	return v
}

// with is the address with other values; "" removes one.
func (q *queueQuery) with(pairs ...string) Path {
	v := q.values()
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Del(pairs[i])
		if pairs[i+1] != "" {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	return queuePath("review", v)
}

// limited narrows the filter to the servers of which the person is a reviewer.
func limited(f hold.Filter, p Person) hold.Filter {
	if p.AllServers && p.Reviews == nil {
		return f
	}
	f.Servers = []string{}
	for _, server := range slices.Concat(p.Servers, p.Reviews) {
		if p.Decides(server) && !slices.Contains(f.Servers, server) {
			f.Servers = append(f.Servers, server)
		}
	}
	return f
}

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
}

// A grantedView is an exception in force.
type grantedView struct {
	Server marked.Name
	Tool   *marked.Name
	Code   Own
	This   bool // it is for one result
	Until  Own
	By     marked.Name
	Why    *marked.Text
	Revoke bool // the person may end it
	End    Path
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
	Note    Own          // where there is none
	Ribbon  ribbonView
	Who     *marked.Name
	Many    Own // principals, where they are several
	Waits   Own
	Left    Own
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
	s := readQueue(q.URL.Query(), q.now)
	if q.URL.Query().Has("filter") {
		return s.filtered(q.URL.Query().Get("filter"), q.now)
	}
	if !s.seen {
		s.f.AsOf, s.seen = q.now.UTC(), true
	}
	f := limited(s.f, q.who)
	v := &reviewView{AsOf: moment(s.f.AsOf), Told: c.told.take(q.URL.Query().Get("told"), q.who.ID), Same: marked.Spelled(s.command()), Held: s.f.State == hold.Held}
	var err error
	if s.by == "" {
		err = c.reviewItems(q, v, &s, f)
	} else {
		err = c.reviewGroups(q, v, &s, f)
	}
	if err == nil && s.ask != "" && v.Held {
		v.Ask, err = c.askAbout(q, &s)
	}
	if err == nil {
		err = c.newer(q, v, &s, f)
	}
	if err == nil {
		err = c.exceptions(q, v)
	}
	if err != nil {
		return failed(err)
	}
	s.choices(v)
	return page("Review", v)
}

// filtered leads to the list that the text of a filter selects, in place of what the address selects.
func (s *queueQuery) filtered(text string, now time.Time) answer {
	f, err := review.Filter(text, now)
	if err != nil {
		v := &reviewView{Bad: true, Wrong: marked.Of(err.Error()), N: things(0, "item"), AsOf: moment(now), Same: marked.Spelled(s.command())}
		s.choices(v)
		v.Filter = marked.Spelled(text)
		return pageAnswer{http.StatusBadRequest, "Review", v}
	}
	s.seen = !f.AsOf.IsZero()
	f.State, f.Oldest, s.since, s.skip = s.f.State, s.f.Oldest, "", 0
	if !f.Since.IsZero() {
		s.since = f.Since.Format(time.RFC3339Nano)
	}
	s.f = f
	return seeOther(s.with())
}

func noQueue() answer {
	s := missing("Review", "Results are not held here.", "A gateway and pellucid wrap --quarantine keep what they withhold, and it is decided about on this page.", "pellucid quarantine list")
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
		r := s.row(it, url.Values{"id": {it.ID}}.Encode(), q.now)
		r.N, r.Waits = "1", lasts(q.now.Sub(it.Held))
		v.Rows = append(v.Rows, r)
	}
	if p.Next != "" {
		v.Older = s.with("after", p.Next)
	}
	v.N = things(len(p.Items), "item")
	v.none(len(p.Items), s)
	return nil
}

// exceptions lists the exceptions in force for servers that the person sees.
func (c *Console) exceptions(q *request, v *reviewView) error {
	if c.opt.Exceptions == nil {
		return nil
	}
	list, err := c.opt.Exceptions.List(q.Context(), false)
	for i := range list {
		e := &list[i]
		if !q.who.Sees(e.Server) || len(v.Granted) == groupPage {
			continue
		}
		g := grantedView{Server: marked.Identifier(e.Server), Tool: nameOf(e.Tool), Code: codeName(e.Code), This: e.Digest != hold.Digest{}, Until: minute(e.Until),
			By: marked.Identifier(e.By), Revoke: q.who.Administers(e.Server), End: pathTo("exceptions/" + segment(e.ID))}
		if e.Why != "" {
			why := marked.Of(e.Why)
			g.Why = &why
		}
		v.Granted = append(v.Granted, g)
	}
	return err
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

// groupKey is the group in a selection: the query that narrows the filter to it.
func groupKey(g *hold.Group, by hold.GroupBy) string {
	f := g.Filter(hold.Filter{}, by)
	v := url.Values{}
	for _, m := range queueMembers {
		if s := *m.of(&f); s != "" {
			v.Set(string(m.name), s)
		}
	}
	if f.Digest != (hold.Digest{}) {
		v.Set("digest", f.Digest.String())
	}
	return v.Encode()
}

// selected are the filters of a selection: each narrows that of the page.
func (s *queueQuery) selected(p Person) (list []hold.Filter) {
	for _, key := range s.sel {
		v, err := url.ParseQuery(key)
		if err != nil || len(v) == 0 {
			continue
		}
		f := limited(s.f, p)
		f.After, f.Limit, f.State = "", 0, hold.Held
		known := 0
		for _, m := range queueMembers {
			if s := v.Get(string(m.name)); s != "" { // an empty value would select everything
				*m.of(&f) = s
				known++
			}
		}
		if d, ok := parseDigest(v.Get("digest")); ok {
			f.Digest = d
			known++
		}
		if known == len(v) { // a selection that is not understood selects nothing, and never more
			list = append(list, f)
		}
	}
	return list
}

// askAbout counts what is selected, before it is decided about.
func (c *Console) askAbout(q *request, s *queueQuery) (*askView, error) {
	sum, people := hold.Selection{}, 0
	var each []inputView
	for _, f := range s.selected(q.who) {
		one, err := c.opt.Queue.Select(q.Context(), &f)
		if err != nil {
			return nil, err
		}
		sum.N += one.N
		each = append(each, inputView{"n", marked.Spelled(strconv.Itoa(one.N))})
		people = max(people, one.Principals)
		if sum.Oldest.IsZero() || !one.Oldest.IsZero() && one.Oldest.Before(sum.Oldest) {
			sum.Oldest = one.Oldest
		}
	}
	a := &askView{Verb: "Deny", Do: "deny", Key: "d", N: count(int64(sum.N)), Many: sum.N != 1, Principals: things(people, "principal"), Since: minute(sum.Oldest), AsOf: moment(s.f.AsOf), Cancel: s.with()}
	if s.ask == "release" {
		a.Verb, a.Do, a.Key = "Release", "release", "r"
	}
	for name, list := range s.values() {
		a.Fields = append(a.Fields, inputView{own(name), marked.Spelled(list[0])})
	}
	slices.SortFunc(a.Fields, func(x, y inputView) int { return strings.Compare(string(x.Name), string(y.Name)) })
	a.Fields = append(a.Fields, each...)
	for _, key := range s.sel {
		a.Fields = append(a.Fields, inputView{"sel", marked.Spelled(key)})
	}
	return a, nil
}

// decideSelection decides about what was selected, and leads back to the queue.
func (c *Console) decideSelection(q *request) answer {
	if c.opt.Queue == nil {
		return noQueue()
	}
	if err := q.ParseForm(); err != nil {
		return failed(err)
	}
	s := readQueue(q.PostForm, q.now)
	to, ok := map[string]hold.State{"deny": hold.Denied, "release": hold.Released}[q.PostForm.Get("do")]
	filters := s.selected(q.who)
	counts := q.PostForm["n"] // how many items the person was told of, of each selection
	if !ok || !s.seen || len(filters) == 0 || len(s.sel) > groupPage || len(counts) != len(filters) {
		return state{status: http.StatusBadRequest, title: "Nothing was decided", says: "Nothing was decided, because nothing was selected.",
			why: "Select groups in the queue, and decide about them there.", to: pathTo("review"), toWord: "To the queue"}
	}
	var sum hold.Decided
	for i, f := range filters {
		n, _ := strconv.Atoi(counts[i]) // what is not a number is 0, and decides nothing
		d, err := c.opt.Queue.DecideAll(q.Context(), f, n, to, q.who.ID, nil)
		sum.Done, sum.Proposed, sum.Second, sum.Sealed = sum.Done+d.Done, sum.Proposed+d.Proposed, sum.Second+d.Second, sum.Sealed+d.Sealed
		sum.Others += d.Others
		if errors.Is(err, hold.ErrMore) && sum == (hold.Decided{}) {
			return s.more(q.PostForm.Get("do"))
		}
		if err != nil && sum == (hold.Decided{}) {
			return failed(err)
		}
		if err != nil {
			c.opt.Log.Error("console: a selection was decided in part", "error", finding.Quote(err.Error()))
			return seeOther(s.with("told", c.told.put(q.who.ID, toldView{To: own(q.PostForm.Get("do")), Done: things(sum.Done, "item"), Rest: true})))
		}
	}
	return seeOther(s.with("told", c.told.put(q.who.ID, toldOf(to, &sum))))
}

// more says that items fit that the person was not told of, and leads to where all are counted and asked about.
func (s *queueQuery) more(do string) answer {
	v := s.values()
	v.Set("ask", do)
	v["sel"] = s.sel
	return state{status: http.StatusConflict, title: "More items fit now", says: "Nothing was decided, because more items fit the selection than the page counted.",
		why: "Count and look at them again, and decide then.", kind: "held", to: queuePath("review", v), toWord: "Count again"}
}

// choices fills the parts of the page that lead to other lists.
func (s *queueQuery) choices(v *reviewView) {
	for _, by := range []Own{"digest", "server", "tool", "code", "principal", "none"} {
		here := string(by) == string(s.by) || by == "none" && s.by == ""
		v.Groups = append(v.Groups, choiceView{s.with("group", string(by), "skip", "", "after", ""), by, here})
	}
	for _, st := range []Own{"held", "released", "taken", "denied", "expired", "all"} {
		here := string(st) == string(s.f.State) || st == "all" && s.f.State == ""
		v.States = append(v.States, choiceView{s.with("state", string(st), "skip", "", "after", ""), st, here})
	}
	for _, o := range []struct{ word, sort Own }{{"most items", "count"}, {"newest", "newest"}, {"oldest", "oldest"}} {
		v.Sorts = append(v.Sorts, choiceView{s.with("sort", string(o.sort), "skip", "", "after", ""), o.word, string(o.sort) == string(s.sort)})
	}
	for _, m := range queueMembers {
		value := *m.of(&s.f)
		if value != "" {
			v.Chips = append(v.Chips, chipView{m.name, marked.Identifier(value), s.with(string(m.name), "", "skip", "", "after", "")})
		}
	}
	if s.f.Digest != (hold.Digest{}) {
		v.Chips = append(v.Chips, chipView{"digest", marked.Identifier(s.f.Digest.String()), s.with("digest", "", "skip", "", "after", "")})
	}
	v.Filter = marked.Spelled(review.FilterText(&s.f))
	if s.since != "" {
		v.Chips = append(v.Chips, chipView{"since", marked.Identifier(s.since), s.with("since", "", "skip", "", "after", "")})
	}
	vals := s.values()
	for _, name := range []Own{"state", "group", "sort"} {
		if vals.Has(string(name)) {
			v.Hidden = append(v.Hidden, inputView{name, marked.Spelled(vals.Get(string(name)))})
		}
	}
	for name, list := range vals {
		v.Keep = append(v.Keep, inputView{own(name), marked.Spelled(list[0])})
	}
	slices.SortFunc(v.Keep, func(a, b inputView) int { return strings.Compare(string(a.Name), string(b.Name)) })
}

// command is the command that prints the same list.
func (s *queueQuery) command() string {
	list := []string{"pellucid quarantine list"}
	add := func(flag, value string) {
		if value != "" {
			list = append(list, "--"+flag, terminal.ShellWord(value))
		}
	}
	if st := string(s.f.State); st != string(hold.Held) {
		if st == "" {
			st = "all"
		}
		add("state", st)
	}
	for _, m := range queueMembers {
		add(string(m.name), *m.of(&s.f))
	}
	if s.f.Digest != (hold.Digest{}) {
		add("digest", s.f.Digest.String())
	}
	add("since", s.since)
	if s.by != "" {
		add("group", string(s.by))
		add("sort", string(s.sort))
	} else if s.f.Oldest {
		add("sort", "oldest")
	}
	return strings.Join(list, " ")
}
