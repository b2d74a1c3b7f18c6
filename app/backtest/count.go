// SPDX-License-Identifier: Apache-2.0

package backtest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/policy/expr"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A tried is what the rules say about one call or its answer.
type tried struct {
	action  policy.Action
	by      string
	would   policy.Action // by a rule that only watches, where that is stricter
	lacking []expr.Undecided
	// needsSize: a rule that could be stricter depends on the size.
	needsSize bool
}

// both asks the rules about a call and, if they let it through, about its answer.
func (t *tester) both(w *waiting) tried {
	v := t.try(w, policy.Call)
	if w.st.Shape == "call" || v.action >= policy.Ask {
		return v
	}
	result := t.try(w, policy.Result)
	result.lacking = append(v.lacking, result.lacking...)
	result.would, result.needsSize = max(result.would, v.would), result.needsSize || v.needsSize
	return result
}

// try asks the policy and the codes of hold.
func (t *tester) try(w *waiting, d policy.Direction) (v tried) {
	st, p := w.st, t.o.Trial.Policy
	var found []finding.Code
	in := policy.Input{Direction: d, Server: st.Server, Tool: st.Tool, ServerTrust: w.server.Float(), ToolTrust: w.tool.Float()}
	if d == policy.Result {
		in.Scores = w.scores
		for _, c := range st.Findings {
			found = append(found, c.Code)
			in.Findings = append(in.Findings, policy.Count{Code: c.Code, N: int(min(c.N, 1<<31-1))})
		}
		for _, c := range st.NotInspected {
			in.NotInspected += int(min(c.N, 1<<31-1))
		}
	}
	if p != nil {
		lacks := unknown
		if in.Privileged = p.Privileged(st.Server, st.Tool); in.Privileged {
			lacks = acting
		}
		if in.Size = w.params; d == policy.Result {
			in.Size = w.received
		}
		if in.Size > 0 {
			lacks = slices.DeleteFunc(slices.Clone(lacks), func(s string) bool { return s == "size" })
		}
		got := p.Try(&in, lacks)
		v.action, v.by, v.lacking, v.would = got.Action, "policy:"+got.Rule, got.Undecided, got.Would.Action
	}
	if d == policy.Result && st.Shape == "result" && v.action < policy.Hold {
		if code := t.o.Trial.Hold(st.Server, st.Tool, found); code != "" {
			v.action, v.by = policy.Hold, "hold:"+string(code)
		}
	}
	v.lacking = slices.DeleteFunc(v.lacking, func(u expr.Undecided) bool { return u.Action < policy.Ask || u.Action <= v.action })
	v.needsSize = slices.ContainsFunc(v.lacking, func(u expr.Undecided) bool { return u.Lacks == "size" })
	v.lacking = slices.DeleteFunc(v.lacking, func(u expr.Undecided) bool { return u.Audit })
	return v
}

const (
	rowsHeld = iota
	rowsPassing
	rowsUnknown
)

// count adds what the rules say about one decision.
func (t *tester) count(w *waiting, v *tried) {
	st := w.st
	stopped := st.Verdict == "withheld" || st.Verdict == "dropped"
	add := func(table int, key rowKey) {
		row := t.row(table, key)
		if row == nil {
			t.r.More++
			return
		}
		if row.N++; !stopped {
			row.Only++
		}
		if len(row.Examples) < t.o.Examples {
			row.Examples = append(row.Examples, st.ID.String())
		}
	}
	if v.would > v.action {
		t.r.Watched++
	}
	switch {
	case v.action == policy.Deny:
		tally(&t.r.Denied, stopped)
	case v.action >= policy.Ask:
		tally(&t.r.Held, stopped)
	}
	if v.action >= policy.Ask {
		add(rowsHeld, rowKey{server: st.Server, tool: st.Tool, by: v.by, action: v.action.String()})
	}
	if len(v.lacking) > 0 {
		t.r.NotEvaluable++
		u := v.lacking[0]
		add(rowsUnknown, rowKey{server: st.Server, tool: st.Tool, by: "policy:" + u.Rule, action: u.Action.String(), lacks: u.Lacks})
	} else if by := loosened(st.Rule, st.Reason); stopped && by != "" && v.action < policy.Ask {
		t.r.Passes++
		add(rowsPassing, rowKey{server: st.Server, tool: st.Tool, by: by})
	}
}

// loosened is what had stopped a message, where that is for the tried rules to decide; else "".
func loosened(rule, reason string) string {
	switch {
	case strings.HasPrefix(rule, "policy:quarantine-"), rule == "schema":
		return ""
	case strings.HasPrefix(rule, "policy:"):
		return rule
	}
	switch code := finding.Code(reason); code {
	case finding.ShapeInvalid, finding.SchemaInvalid, finding.SchemaBroken, finding.SchemaUnverifiable, finding.NotStructured, finding.Misshapen, finding.CaseVariant, finding.Violation,
		finding.TooLong, finding.NoRoom, finding.QueueFull, finding.RefusedName, finding.Denied, finding.Held, finding.Unapproved, finding.Suspected, finding.Unjudged, finding.Unsolicited:
		return "" // not by hold
	default:
		if code.Known() {
			return "hold:" + reason
		}
	}
	return ""
}

func tally(c *Count, stopped bool) {
	if c.N++; !stopped {
		c.Only++
	}
}

// row is the row of a key; nil where there are too many.
func (t *tester) row(table int, key rowKey) *Row {
	row := t.tables[table][key]
	if row == nil && len(t.tables[table]) < maxRows {
		row = &Row{Server: key.server, Tool: key.tool, By: key.by, Action: key.action, Lacks: key.lacks, Examples: []string{}}
		t.tables[table][key] = row
	}
	return row
}

// finish sorts the rows: the most frequent first.
func (t *tester) finish() *Report {
	for i, to := range []*[]Row{&t.r.Rows, &t.r.Passing, &t.r.Unknown} {
		for _, row := range t.tables[i] {
			*to = append(*to, *row)
		}
		slices.SortFunc(*to, func(a, b Row) int {
			return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.By, b.By), cmp.Compare(a.Lacks, b.Lacks), cmp.Compare(a.Action, b.Action))
		})
	}
	return t.r
}
