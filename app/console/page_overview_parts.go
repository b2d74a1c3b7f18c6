// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/boundary/meter"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// An otherView is the records of a kind by verdict: messages, or those of classifiers or of the guard.
type otherView struct {
	Title Own
	None  Own // what it says where there are none
	Rows  []facetRow
	All   Own
	To    Path
	Facts []factView
	Note  Own // about the facts; "": nothing to add
}

// others are the records of classifiers and of the guard.
func (v *overviewView) others(x *storage.View, f index.Filter) error {
	for _, kind := range []struct {
		kind        ledger.Kind
		title, none Own
	}{{ledger.Classified, "Classifiers", "No classifier has judged a result in this time."}, {ledger.Counterfactual, "Guard", "The guard has tested no call in this time."}} {
		of := f
		of.Kinds = []ledger.Kind{kind.kind}
		out, sums, err := verdictSums(x, of, kind.title, kind.none)
		if err != nil {
			return err
		}
		if kind.kind == ledger.Counterfactual {
			out.judged(of, sums)
		}
		v.Others = append(v.Others, out)
	}
	return nil
}

// verdictSums counts the records that a filter selects by verdict.
func verdictSums(x *storage.View, f index.Filter, title, none Own) (otherView, []storage.Sum, error) {
	sums, err := x.Sums(&f, storage.By{Verdict: true})
	slices.SortFunc(sums, func(a, b storage.Sum) int { return orderVerdicts(a.Verdict, b.Verdict) })
	out, total := otherView{Title: title, None: none, To: recordsPath(f)}, int64(0)
	for _, s := range sums {
		total += s.N
		row := facetRow{Name: marked.Identifier(cmp.Or(s.Verdict, "none")), N: count(s.N)}
		if s.Verdict != "" { // without a verdict there is no term that selects these
			to := f
			to.Verdicts = []string{s.Verdict}
			row.To = recordsPath(to)
		}
		out.Rows = append(out.Rows, row)
	}
	out.All = count(total)
	return out, sums, err
}

func (o *otherView) fact(name, value Own, to Path) {
	o.Facts = append(o.Facts, factView{name, marked.Identifier(string(value)), to})
}

// judged counts the calls that the guard has decided about, and those that did not pass as they came.
func (o *otherView) judged(f index.Filter, sums []storage.Sum) {
	n, held := int64(0), int64(0)
	all, not := f, f
	for _, act := range guard.Acts {
		all.Verdicts = append(all.Verdicts, string(act))
		if (&guard.Evidence{Act: act}).Held() {
			not.Verdicts = append(not.Verdicts, string(act))
		}
	}
	for _, s := range sums {
		if slices.Contains(all.Verdicts, s.Verdict) {
			n += s.N
		}
		if slices.Contains(not.Verdicts, s.Verdict) {
			held += s.N
		}
	}
	if n > 0 {
		o.fact("calls judged", count(n), recordsPath(all))
		o.fact("held", count(held), recordsPath(not))
	}
}

// latest returns the latest records that a filter selects, the oldest first. The index of the log finds them: it has those
// of up to a second ago.
func latest(ctx context.Context, l *storage.Ledger, f index.Filter, most int) (out []sequence.Entry, err error) {
	var places []int64
	err = l.View(ctx, func(x *storage.View) error {
		list, err := x.List(&f, storage.Page{Limit: most})
		for i := range list.Rows {
			places = append(places, list.Rows[i].Index)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(places)
	return l.These(ctx, places)
}

// maxJudged bounds the decisions of the guard whose cost the overview adds up.
const maxJudged = 400

// cost adds up what the latest decisions of the guard have cost, by their records. A time leads to the decision that took it.
func (v *overviewView) cost(ctx context.Context, l *storage.Ledger, w index.Filter) error {
	at := slices.IndexFunc(v.Others, func(o otherView) bool { return o.Title == "Guard" })
	if at < 0 || len(v.Others[at].Facts) == 0 {
		return nil
	}
	o := &v.Others[at]
	w.Kinds = []ledger.Kind{ledger.Counterfactual}
	list, err := latest(ctx, l, w, maxJudged)
	if err != nil {
		return err
	}
	type wait struct {
		id   ledger.ID
		took int64
	}
	var timed []wait
	calls, tokens, without := int64(0), int64(0), 0
	for i := range list {
		st, err := ledger.UnverifiedStatement(list[i].Envelope)
		if err != nil || !slices.Contains(guard.Acts, guard.Act(st.Verdict)) {
			continue
		}
		took, known := numberOf(st, ledger.TookMillis)
		if !known {
			without++
			continue
		}
		n, _ := numberOf(st, ledger.ModelCalls)
		of, _ := numberOf(st, ledger.ModelTokens)
		calls, tokens = calls+n, tokens+of
		timed = append(timed, wait{st.ID, took})
	}
	if len(timed) == 0 {
		for _, name := range []Own{"model calls", "tokens", "wait, median", "wait, p95"} {
			o.fact(name, unknown, "")
		}
		o.Note = "The records of these decisions do not say what they cost."
		return nil
	}
	slices.SortFunc(timed, func(a, b wait) int { return cmp.Compare(a.took, b.took) })
	o.fact("model calls", count(calls), o.Facts[0].To)
	o.fact("tokens", count(tokens), o.Facts[0].To)
	for _, of := range []struct {
		name    Own
		percent int
	}{{"wait, median", 50}, {"wait, p95", 95}} {
		d := timed[(of.percent*len(timed)+99)/100-1]
		o.fact(of.name, lasts(time.Duration(d.took)*time.Millisecond), recordPath(d.id))
	}
	o.Note = "Cost and wait of " + things(len(timed), "decision")
	if len(list) == maxJudged {
		o.Note += ", the latest"
	}
	o.Note += "; a time leads to the decision that took it."
	if without > 0 {
		o.Note += " " + count(int64(without)) + " more do not say what they cost."
	}
	return nil
}

func numberOf(st *ledger.Statement, name string) (int64, bool) {
	i := slices.IndexFunc(st.Numbers, func(n ledger.Number) bool { return n.Name == name })
	if i < 0 {
		return 0, false
	}
	return st.Numbers[i].N, true
}

// A trustView is the servers whose trust fell and has not risen again.
type trustView struct {
	Known bool // there are scores
	Ready bool // they are computed
	Rows  []fallenRow
	More  Own // "": all are there
}

type fallenRow struct {
	Name marked.Name
	To   Path
	Now  Own
	Rest Own
}

// mostFallen bounds the servers of the part about trust.
const mostFallen = 8

func (c *Console) fallen(who Person) (v trustView) {
	if c.opt.Fallen == nil {
		return v
	}
	list, ok := c.opt.Fallen()
	v.Known, v.Ready = true, ok
	more := 0
	for _, x := range list {
		switch {
		case !who.Sees(x.Server):
		case len(v.Rows) == mostFallen:
			more++
		default:
			v.Rows = append(v.Rows, fallenRow{marked.Identifier(x.Server), pathTo("servers/" + segment(x.Server)), fraction(x.Score.Float()), fraction(x.Rest.Float())})
		}
	}
	if more > 0 {
		v.More = things(more, "more server")
	}
	return v
}

// A latencyRow is how long a server took to answer.
type latencyRow struct {
	Name     marked.Name
	To       Path // "": these are several servers
	Answers  Own
	P50, P99 Own
}

// latencies are those of the servers that the person sees; with names, of these only.
func (c *Console) latencies(who Person, names ...string) (out []latencyRow) {
	if c.opt.Latencies == nil {
		return nil
	}
	for _, l := range slowest(c.opt.Latencies()) {
		if names != nil && !slices.Contains(names, l.Server) || l.Server == frame.Other && !who.AllServers || l.Server != frame.Other && !who.Sees(l.Server) {
			continue
		}
		row := latencyRow{Name: marked.Identifier(l.Server), Answers: count(l.Answers), P50: within(l.P50), P99: within(l.P99)}
		if l.Server != frame.Other {
			row.To = pathTo("servers/" + segment(l.Server))
		}
		out = append(out, row)
	}
	return out
}

// slowest puts the servers in order, the slowest first.
func slowest(list []meter.Latency) []meter.Latency {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b meter.Latency) int { return cmp.Compare(b.P99, a.P99) })
	return list
}
