// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

var overviewRoutes = []route{
	{pattern: "GET overview", least: Viewer, handle: (*Console).overview, rail: entry{place: 10, word: "Overview", icon: "overview", key: "o"}},
}

// A span is a length of time that the overview counts. It begins and ends at a multiple of step, so that the
// index answers from its sums.
type span struct {
	name         Own
	length, step time.Duration
}

var spans = []span{{"1 h", time.Hour, 5 * time.Minute}, {"24 h", 24 * time.Hour, 30 * time.Minute}, {"7 d", 7 * 24 * time.Hour, 3 * time.Hour}, {"30 d", 30 * 24 * time.Hour, 24 * time.Hour}}

// upTo selects the span that ends with the step in which now is.
func (s *span) upTo(now time.Time) index.Filter {
	until := now.UTC().Truncate(s.step).Add(s.step)
	return index.Filter{Since: until.Add(-s.length), Until: until}
}

type overviewView struct {
	Spans   []spanView
	From    Own
	Until   Own
	Waits   []waitView
	HasLog  bool
	Journal bool // decisions of this time stand in the journal, which these numbers leave out
	Behind  Own
	Blind   bool      // the person may see no server
	Sums    otherView // of messages
	Heat    heatView
	Servers []serverSum
	Others  []otherView
	Log     []factView
	Trust   trustView
	Meters  bool // latencies are known
	Latency []latencyRow
	Faster  Own // servers that are left out; "": all are there
}

func (overviewView) template() string { return "overview" }

type spanView struct {
	Name Own
	To   Path
	Here bool
}

// A waitView is a number of things that wait for a person.
type waitView struct {
	N    Own // "–": not known
	To   Path
	Word Own
	Note Own
}

type cellView struct {
	N    Own
	To   Path
	Heat int // 0 to 5
	None bool
}

type heatView struct {
	Servers []facetRow
	Rows    []heatRow
	Sums    []cellView // of each server, then of all
}

type heatRow struct {
	Code  Own
	To    Path
	Cells []cellView
	All   cellView
}

type serverSum struct {
	Name  marked.Name
	To    Path
	Cells []cellView
}

func (c *Console) overview(q *request) answer {
	at := slices.IndexFunc(spans, func(s span) bool { return string(s.name) == q.URL.Query().Get("span") })
	if at < 0 {
		at = 1
	}
	v := overviewView{HasLog: c.opt.Ledger != nil}
	for i, s := range spans {
		v.Spans = append(v.Spans, spanView{s.name, pathTo("overview", "span", string(s.name)), i == at})
	}
	w := spans[at].upTo(q.now)
	v.From, v.Until = minute(w.Since), minute(q.now)
	if err := v.waiting(c, q); err != nil {
		return failed(err)
	}
	if c.opt.Journal != nil && q.who.AllServers {
		last, err := c.opt.Journal()
		if err != nil {
			return failed(err)
		}
		v.Journal = last.After(w.Since)
	}
	v.Trust, v.Meters, v.Latency = c.fallen(q.who), c.opt.Latencies != nil, c.latencies(q.who)
	if n := len(v.Latency) - mostServers; n > 0 {
		v.Latency, v.Faster = v.Latency[:mostServers], things(n, "more server")
	}
	if c.opt.Ledger == nil {
		return page("Overview", v)
	}
	err := c.opt.Ledger.View(q.Context(), func(x *storage.View) error { return v.read(c, x, q.who, w) })
	if err == nil && q.who.AllServers { // a decision of the guard is about no server
		err = v.cost(q.Context(), c.opt.Ledger, w)
	}
	if err == nil {
		err = v.log(q.Context(), c.opt.Ledger, q.now)
	}
	if err != nil {
		return failed(err)
	}
	return page("Overview", v)
}

// waiting says what waits for a person, and since when.
func (v *overviewView) waiting(c *Console, q *request) error {
	for _, w := range []struct {
		read             func(context.Context) ([]Waiting, error)
		word, none, path Own
	}{{c.opt.Held, "results held", "No result waits.", "review"}, {c.opt.Blocked, "sources blocked by a verdict", "No source is blocked.", ""}} {
		out := waitView{N: unknown, Word: w.word, Note: "This console does not know them."}
		if w.read != nil {
			list, err := w.read(q.Context())
			if err != nil {
				return err
			}
			n, since := 0, time.Time{}
			for _, x := range list {
				if q.who.Sees(x.Server) {
					if n += x.N; since.IsZero() || x.Since.Before(since) {
						since = x.Since
					}
				}
			}
			out.N, out.Note = count(int64(n)), w.none
			if n > 0 {
				out.Note = "the oldest for " + lasts(q.now.Sub(since))
			}
			if w.path != "" && c.opens(q.who, string(w.path)) {
				out.To = pathTo(string(w.path))
			}
		}
		v.Waits = append(v.Waits, out)
	}
	return nil
}

// opens reports whether there is a page at the path below Base, and the person has the role for it.
func (c *Console) opens(who Person, path string) bool {
	return slices.ContainsFunc(c.routes, func(r route) bool { return r.pattern == "GET "+path && who.Role >= r.least })
}

// verdictOrder is the order in which verdicts are listed; others follow by name.
var verdictOrder = []string{"passed", "changed", "withheld", "dropped"}

func orderVerdicts(a, b string) int {
	place := func(s string) int {
		if i := slices.Index(verdictOrder, s); i >= 0 {
			return i
		}
		return len(verdictOrder)
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
}

// read fills what the index knows. Every number is the length of the list to which it leads.
func (v *overviewView) read(c *Console, x *storage.View, who Person, all index.Filter) error {
	if n := x.Status.Behind(); n > 0 {
		v.Behind = counted(n, "record")
	}
	if v.Blind, _ = who.within(&all); v.Blind {
		return nil
	}
	messages := all
	messages.Kinds = []ledger.Kind{ledger.Message}
	var err error
	if v.Sums, _, err = verdictSums(x, messages, "Messages by verdict", "No message has passed in this time."); err == nil {
		err = v.heat(x, messages)
	}
	if err == nil {
		err = v.servers(c, x, messages)
	}
	if err == nil {
		err = v.others(x, all)
	}
	return err
}

func newCell(n int64, f index.Filter, most int64) cellView {
	out := cellView{N: count(n), To: recordsPath(f), None: n == 0}
	for step := most / 16; n > 0 && out.Heat < 5 && (out.Heat == 0 || n > step); step = max(step, 1) * 2 {
		out.Heat++
	}
	return out
}

// mostCodes and mostServers bound the table of what was found.
const (
	mostCodes   = 20
	mostServers = 12
)

// heat is what was found by code and server.
func (v *overviewView) heat(x *storage.View, f index.Filter) error {
	sums, err := x.Sums(&f, storage.By{Server: true, Code: true})
	if err != nil {
		return err
	}
	type place struct {
		code   finding.Code
		server string
	}
	cells, codes, servers, most := map[place]int64{}, map[finding.Code]int64{}, map[string]int64{}, int64(0)
	for _, s := range sums {
		cells[place{s.Code, s.Server}] += s.N
		codes[s.Code] += s.N
		servers[s.Server] += s.N
		most = max(most, s.N)
	}
	for _, server := range largest(servers, mostServers) {
		to := f
		to.Servers = []string{server}
		head := facetRow{Name: marked.Identifier(cmp.Or(server, "no server"))}
		if server != "" {
			head.To = recordsPath(to)
		}
		v.Heat.Servers = append(v.Heat.Servers, head)
	}
	for _, code := range largest(codes, mostCodes) {
		to := f
		to.Code = code
		row := heatRow{Code: codeName(code), To: recordsPath(to), All: newCell(codes[code], to, 0)}
		for _, server := range largest(servers, mostServers) {
			one := to
			one.Servers = []string{server}
			cell := newCell(cells[place{code, server}], one, most)
			if server == "" { // no term selects these
				cell.To = ""
			}
			row.Cells = append(row.Cells, cell)
		}
		v.Heat.Rows = append(v.Heat.Rows, row)
	}
	return nil
}

// largest are the keys with the greatest numbers.
func largest[K ~string](m map[K]int64, n int) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b K) int { return cmp.Or(-cmp.Compare(m[a], m[b]), cmp.Compare(a, b)) })
	return keys[:min(n, len(keys))]
}

// servers are the messages of each server by verdict.
func (v *overviewView) servers(c *Console, x *storage.View, f index.Filter) error {
	sums, err := x.Sums(&f, storage.By{Server: true, Verdict: true})
	if err != nil {
		return err
	}
	all, by := map[string]int64{}, map[string]map[string]int64{}
	for _, s := range sums {
		if by[s.Server] == nil {
			by[s.Server] = map[string]int64{}
		}
		by[s.Server][s.Verdict] += s.N
		all[s.Server] += s.N
	}
	for _, server := range largest(all, mostServers) {
		if server == "" {
			continue
		}
		one := f
		one.Servers = []string{server}
		row := serverSum{Name: marked.Identifier(server), To: recordsPath(one), Cells: []cellView{newCell(all[server], one, 0)}}
		if c.has("servers/{server}") {
			row.To = pathTo("servers/" + segment(server))
		}
		rest := all[server]
		for _, verdict := range verdictOrder {
			of := one
			of.Verdicts = []string{verdict}
			row.Cells = append(row.Cells, newCell(by[server][verdict], of, 0))
			rest -= by[server][verdict]
		}
		row.Cells = append(row.Cells, cellView{N: count(rest), None: rest == 0})
		v.Servers = append(v.Servers, row)
	}
	return nil
}

// log says how the log is.
func (v *overviewView) log(ctx context.Context, l *storage.Ledger, now time.Time) error {
	head, err := l.Head(ctx)
	if errors.Is(err, sequence.ErrNoLog) {
		v.Log = []factView{{Name: "records", Value: marked.Identifier("none yet")}}
		return nil
	} else if err != nil {
		return err
	}
	add := func(name, value Own, to Path) {
		v.Log = append(v.Log, factView{name, marked.Identifier(string(value)), to})
	}
	add("records", count(head.Size), recordsPath(index.Filter{}))
	v.Log = append(v.Log, factView{"name", marked.Identifier(head.Origin), ""})
	waiting, err := l.Waiting(ctx, maxWaiting)
	if err != nil {
		return err
	}
	switch {
	case waiting == 0:
		add("not signed yet", "none", "")
	case waiting == maxWaiting:
		add("not signed yet", "more than "+count(maxWaiting), "")
	default:
		add("not signed yet", count(int64(waiting)), "")
	}
	cosigned, at, err := l.CosignedSize(ctx)
	switch {
	case err != nil:
		return err
	case cosigned == 0:
		add("witnesses", "no checkpoint is cosigned", "")
	default:
		add("witnesses", "cosigned up to record "+count(cosigned)+", "+lasts(now.Sub(at))+" ago", "")
	}
	switch {
	case head.Stop != nil:
		add("state", "stopped: a checkpoint was seen that contradicts it", "")
	case v.Behind != "":
		add("index", "behind by "+v.Behind, "")
	default:
		add("index", "complete", "")
	}
	return nil
}

// maxWaiting bounds the counting of records that wait for their signature.
const maxWaiting = 10_000
