// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// Replayed is what a record says once its attribution was derived again.
type Replayed struct {
	Holds        bool                         `json:"holds"`
	Record       string                       `json:"record"` // digest of the bytes
	Assembly     string                       `json:"assembly,omitempty"`
	Response     counterfactual.Response      `json:"response,omitempty"`
	Attributions []counterfactual.Attribution `json:"verdicts,omitempty"`
	Stop         counterfactual.StopReason    `json:"stop,omitempty"`
	Answers      int                          `json:"answers"`
	Problem      string                       `json:"problem,omitempty"`
	Guard        *Guarded                     `json:"guard,omitempty"` // of a decision of pellucid guard
}

// A Guarded is what pellucid guard did with a call.
type Guarded struct {
	ID     string       `json:"id"`
	Act    guard.Act    `json:"act"`
	Reason guard.Reason `json:"reason"`
	Audit  bool         `json:"audit,omitempty"`
	// Response is the worst of Calls; both stand for what was found out about each call.
	Response delegation.Response `json:"response"`
	Calls    []guard.Call        `json:"calls,omitempty"`
	// Sources name the segments that hold values of the calls.
	Sources []guard.SegmentSource `json:"sources,omitempty"`
}

// Replay derives the attribution of a record again. The result is nil where the record does not
// hold, or is that of a decision for which nothing was run.
func Replay(b []byte) (*Replayed, *counterfactual.Result) {
	sum := sha256.Sum256(b)
	out := &Replayed{Record: "sha256:" + hex.EncodeToString(sum[:])}
	if guard.IsEvidence(b) {
		return replayGuard(b, out)
	}
	r, err := counterfactual.Replay(b)
	if err != nil {
		out.Problem = err.Error()
		return out, nil
	}
	out.Holds, out.Assembly, out.Response = true, r.Problem().Assembly, r.Response()
	out.Attributions, out.Stop, out.Answers = r.Attributions, r.Stop, len(r.Observations())
	return out, r
}

// replayGuard is replay of what pellucid guard keeps of a decision.
func replayGuard(b []byte, out *Replayed) (*Replayed, *counterfactual.Result) {
	g, err := guard.Replay(b)
	if err != nil {
		out.Problem = err.Error()
		return out, nil
	}
	out.Holds = true
	out.Guard = &Guarded{g.ID, g.Act, g.Reason, g.Audit, g.Response, g.Calls, g.Sources}
	var first *counterfactual.Result
	for _, r := range g.Runs {
		if first == nil {
			first, out.Assembly, out.Stop = r, r.Problem().Assembly, r.Stop
		}
		out.Attributions = append(out.Attributions, r.Attributions...)
		out.Answers += len(r.Observations())
	}
	return out, first
}

// Print tells a person. r is the result that Replay has returned.
func (out *Replayed) Print(w io.Writer, r *counterfactual.Result) error {
	if g := out.Guard; g != nil {
		fmt.Fprintf(w, "%s  %s, %s\n", g.ID, g.Act, g.Reason)
		for i := range g.Calls {
			printCall(w, &g.Calls[i], g.Sources)
		}
	}
	if r == nil { // nothing was run
		_, err := fmt.Fprintf(w, "%s\n", out.Record)
		return err
	}
	p := r.Problem()
	for i := range r.Attributions {
		v := &r.Attributions[i]
		fmt.Fprintf(w, "%s  %s: %s, evidence %g to 1\n", v.Response, terminal.Inline(p.Targets[v.Target].Tool), v.Class, odds(v.LogE))
		for _, cause := range v.Causes {
			for s := range cause.Segments.Places() {
				u := &p.Segments[s]
				fmt.Fprintf(w, "  caused by %s, %s, %s\n", terminal.Inline(u.ID), terminal.Inline(u.Source), terminal.Inline(u.Digest))
			}
		}
	}
	_, err := fmt.Fprintf(w, "the verdict follows from %s, byte for byte\n%s\n", terminal.Plural(out.Answers, "answer"), out.Record)
	return err
}

// printCall tells what was found out about a call.
func printCall(w io.Writer, c *guard.Call, sources []guard.SegmentSource) {
	fmt.Fprintf(w, "%s  %s: %s\n", c.Response, terminal.Inline(c.Tool), c.Verdict)
	for _, a := range c.Arguments {
		from := "stands nowhere"
		switch {
		case a.Trusted:
			from = "is the user's or the operator's"
		case a.Composed:
			from = "adds to a host of segments " + strings.Join(Places(a.Segments, sources), ", ")
		case a.Segments != "":
			from = "comes from segments " + strings.Join(Places(a.Segments, sources), ", ")
		}
		fmt.Fprintf(w, "  %s (%s) %s\n", terminal.Inline(a.Label), a.Form, from)
	}
}

// Places are the ids of segments, with their sources where a statement of the guard names them:
// "s1 mail/read", "s3".
func Places(s counterfactual.Set, sources []guard.SegmentSource) (out []string) {
	for i := range s.Places() {
		id := "s" + strconv.Itoa(i+1)
		if k := slices.IndexFunc(sources, func(x guard.SegmentSource) bool { return x.Segment == i }); k >= 0 {
			id += " " + terminal.Inline(sources[k].Source)
		}
		out = append(out, id)
	}
	return out
}
