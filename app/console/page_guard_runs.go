// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// inLog compares a statement with the digest that its record in the ledger has. checked is false where the
// ledger has no record, or its opening is erased.
func (c *Console) inLog(ctx context.Context, id ledger.ID, statement []byte) (checked, matches bool) {
	if c.opt.Ledger == nil {
		return false, false
	}
	entry, err := c.opt.Ledger.Get(ctx, id)
	if err != nil || len(entry.Opening) == 0 {
		return false, false
	}
	st, err := ledger.UnverifiedStatement(entry.Envelope)
	if err != nil {
		return false, false
	}
	o, err := ledger.ParseOpening(entry.Opening)
	return true, err == nil && o.Check(st) == nil && slices.Contains(o.Subjects, ledger.Subject{Role: ledger.Output, Digest: sha256.Sum256(statement)})
}

// segmentName is the place of a segment with its source.
func segmentName(n int, sources map[int]string) marked.Name {
	if s := sources[n]; s != "" {
		return marked.Identifier(fmt.Sprintf("s%d %s", n, s))
	}
	return marked.Identifier(fmt.Sprintf("s%d", n))
}

// newCall shows one call that the guard decided about.
func newCall(x *guard.Call, sources map[int]string) callView {
	v := callView{Tool: marked.Identifier(x.Tool), Verdict: labelWord(string(x.Verdict)), Response: labelWord(string(x.Response)), Unread: x.Unread, Own: x.Own}
	for i := range x.Arguments {
		a := &x.Arguments[i]
		out := argumentView{Label: marked.Identifier(a.Label), Form: labelWord(string(a.Form)), From: "nowhere in the context"}
		switch {
		case a.Trusted:
			out.From = "the user or the operator"
		case a.Composed:
			out.From = "third-party text holds only the host"
		case a.Segments != "":
			out.From = "third-party text"
		}
		for n := range a.Segments.Places() {
			out.Segments = append(out.Segments, segmentName(n, sources))
		}
		v.Arguments = append(v.Arguments, out)
	}
	for _, r := range x.Rulings {
		v.Rules = append(v.Rules, marked.Identifier(r.Rule))
	}
	return v
}

// newRun shows a search: what it concluded, what it cost and how much each segment moved the model.
func newRun(r *counterfactual.Result, sources map[int]string) runView {
	v := runView{Calls: count(int64(r.Spent.Calls)), Tokens: count(r.Spent.Tokens), Took: lasts(time.Duration(r.Spent.Millis) * time.Millisecond)}
	for i := range r.Attributions {
		a := &r.Attributions[i]
		x := classView{Class: labelWord(string(a.Class)), Response: labelWord(string(a.Response)), Severity: own(fmt.Sprintf("%.3f", float64(a.Severity)/1000)), Band: labelWord(string(a.Band))}
		var causes []string
		for n := range a.Withheld.Places() {
			causes = append(causes, fmt.Sprintf("s%d", n))
		}
		x.Causes = own(strings.Join(causes, ", "))
		v.Classes = append(v.Classes, x)
	}
	for n, f := range r.Influence {
		if f.Shown+f.Hidden == 0 {
			continue
		}
		s := segmentView{N: own(fmt.Sprintf("s%d", n)), Source: marked.Identifier(sources[n]), Known: sources[n] != "", Effect: effect(f.Effect), Pushes: f.Effect > 0,
			Shown: own(fmt.Sprintf("%d of %d", f.ShownRecurs, f.Shown)), Hidden: own(fmt.Sprintf("%d of %d", f.HiddenRecurs, f.Hidden))}
		s.Hint = influenceClass(f.Effect)
		w := float64(min(max(f.Effect, -1000), 1000)) * 48 / 1000
		s.X, s.W = own(fmt.Sprintf("%.1f", 48+min(w, 0))), own(fmt.Sprintf("%.1f", max(w, -w)))
		v.Segments = append(v.Segments, s)
	}
	v.Probes, v.More = newProbes(r.Observations(), len(r.Influence))
	return v
}

// influenceClass is the class of a row by an effect in thousandths.
func influenceClass(n int) Own {
	switch {
	case n < -50:
		return "m1"
	case n < 50:
		return "m0"
	case n < 200:
		return "p1"
	case n < 400:
		return "p2"
	}
	return "p3"
}
