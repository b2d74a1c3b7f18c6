// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// evidenceVersion is the version of the statement's format.
const evidenceVersion = "guard-evidence/3"

// Evidence is a statement of the guard about one answer: digests, labels and numbers. It is
// canonical JSON (RFC 8785) with these members.
type Evidence struct {
	Act       Act         `json:"act"`
	After     []Call      `json:"after,omitempty"` // calls of the repaired answer
	Audit     bool        `json:"audit"`
	Calls     []Call      `json:"calls,omitempty"` // that needed a decision
	Context   string      `json:"context"`         // digest of the request
	Format    format.Name `json:"format"`
	ID        string      `json:"id"`
	Principal string      `json:"principal"`
	Reason    Reason      `json:"reason"`
	// Repair is the repaired answer, also where it could not be delivered.
	Repair   *Repair             `json:"repair,omitempty"`
	Response delegation.Response `json:"response"`
	// Records are those of searches for the segments that took control.
	Records []json.RawMessage `json:"runs,omitempty"`
	// Sources name the segments that hold values of Calls, in the order of the context.
	Sources []SegmentSource `json:"sources,omitempty"`
	// Task is the digest of the task that the host has declared.
	Task    string `json:"task,omitempty"`
	Version string `json:"version"`

	Runs []*counterfactual.Result `json:"-"` // Records, read
}

// A Call is what was found out about one call, and what follows.
type Call struct {
	delegation.Facts
	Verdict  delegation.Verdict  `json:"verdict"`
	Response delegation.Response `json:"response"`
}

// A SegmentSource says where a segment came from: "server/tool", or "?/tool" where no fence proves
// the server.
type SegmentSource struct {
	Segment int    `json:"segment"` // its place, as in the segments of an argument
	Source  string `json:"source"`
}

// segments are those that hold values of the calls.
func (e *Evidence) segments() (out counterfactual.Set) {
	for i := range e.Calls {
		for _, a := range e.Calls[i].Arguments {
			out = out.Union(a.Segments)
		}
	}
	return out
}

// sourcesFollow reports whether the sources are those of the segments, where there are any.
func (e *Evidence) sourcesFollow() bool {
	var places []int
	for _, s := range e.Sources {
		server, what, ok := strings.Cut(s.Source, "/")
		if !ok || server != "?" && !frame.IsLabel(server) || !frame.IsLabel(what) {
			return false
		}
		places = append(places, s.Segment)
	}
	return len(places) == 0 || slices.Equal(places, e.segments().List())
}

// Questions is the number of questions to the model that the statement holds. Attempts that were
// repeated, and questions that an earlier decision has asked, do not count.
func (e *Evidence) Questions() (n int) {
	asked := map[string]bool{}
	add := func(x *delegation.Exchange) {
		if x.Request != "" && !x.Cached && !asked[x.Request] {
			asked[x.Request] = true
			n++
		}
	}
	for _, list := range [][]Call{e.Calls, e.After} {
		for i := range list {
			c := &list[i]
			if c.Plan != nil {
				add(&c.Plan.Exchange)
			}
			if c.Need != nil {
				add(&c.Need.Exchange)
			}
			for k := range c.Rivals {
				add(&c.Rivals[k].Exchange)
			}
		}
	}
	if e.Repair != nil {
		add(&e.Repair.Exchange)
	}
	for _, r := range e.Runs {
		n += r.Spent.Calls
	}
	return n
}

// Held reports whether the answer was not passed on as it came, or under audit would not have been.
func (e *Evidence) Held() bool { return e.Act != forwarded }

// Repaired reports whether the client got another answer of the model, or under audit would have.
func (e *Evidence) Repaired() bool { return e.Act == repaired }

// Waits reports whether the call was put before a reviewer.
func (e *Evidence) Waits() bool { return e.Act == waiting }

// Released reports whether the answer passed because a reviewer had released its calls.
func (e *Evidence) Released() bool { return e.Reason == reasonReleased }

// Undecided reports whether the reason is another one than what was found out about the calls.
func (e *Evidence) Undecided() bool { return e.Reason != reasonFound }

func callsOf(found []delegation.Result) (out []Call) {
	for _, f := range found {
		out = append(out, Call{f.Facts, f.Verdict, f.Response})
	}
	return out
}

// statement is what is recorded of a decision.
func (d *decider) statement() ([]byte, error) {
	e := Evidence{Act: d.out.act, After: callsOf(d.after), Audit: d.audit, Calls: callsOf(d.found), Context: digestOf(d.x.body), Format: d.x.f.Name(),
		ID: d.x.id, Principal: d.x.principal, Reason: d.out.reason, Repair: d.fix, Response: d.out.response, Version: evidenceVersion}
	if d.x.task != "" {
		e.Task = digestOf([]byte(d.x.task))
	}
	for i := range e.segments().Places() {
		e.Sources = append(e.Sources, SegmentSource{i, d.assembly.Segments[i].Source.Label()})
	}
	if len(d.found) == 0 {
		for i := range d.targets {
			e.Calls = append(e.Calls, Call{Facts: delegation.Facts{Digest: d.targets[i].Digest(), Unread: true, Tool: frame.Label(d.targets[i].Tool)},
				Verdict: delegation.Unknown, Response: d.out.response})
		}
	}
	for _, r := range d.runs {
		record, err := r.Record()
		if err != nil {
			return nil, err
		}
		e.Records = append(e.Records, record)
	}
	return e.text()
}

func (e *Evidence) text() ([]byte, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return strictjson.Canonical(nil, b, strictjson.Limits{})
}

// IsEvidence reports whether a text says that it is such a statement.
func IsEvidence(b []byte) bool {
	version, ok := statementVersion(b)
	return ok && strings.HasPrefix(version, "guard-evidence/")
}

// statementVersion is what a text says of its version. ok is false if it is no strict JSON.
func statementVersion(b []byte) (version string, ok bool) {
	var doc strictjson.Doc
	if doc.Reset(b, strictjson.Limits{}) != nil {
		return "", false
	}
	return doc.Root().Get("version").Text(), true
}

// errStatement begins what is wrong with a statement.
var errStatement = errors.New("guard: replay")

// ErrVersion says that a statement is of another version of the format.
var ErrVersion = errors.New("not a statement of " + evidenceVersion)

// Replay reads a statement and derives it again: each verdict from the facts, the attributions
// from the answers that its runs hold, what became of the calls from both, and from all that
// the bytes, which have to be the same. No model is asked. Members that follow from nothing in
// the statement are taken as they are: the principal, the digests of request and task, whether it
// was an audit, and what the policy makes of a verdict. The digest in the ledger holds these.
func Replay(text []byte) (*Evidence, error) {
	var e Evidence
	if version, ok := statementVersion(text); ok && version != evidenceVersion {
		return nil, fmt.Errorf("%w: %w", errStatement, ErrVersion)
	}
	if err := strictjson.Unmarshal(text, &e, strictjson.Limits{}); err != nil {
		return nil, fmt.Errorf("%w: %w", errStatement, err)
	}
	for i, record := range e.Records {
		r, err := counterfactual.Replay(record)
		if err != nil {
			return nil, fmt.Errorf("%w: run %d: %w", errStatement, i+1, err)
		}
		e.Runs = append(e.Runs, r)
	}
	if again, err := e.text(); err != nil || !bytes.Equal(again, text) {
		return nil, fmt.Errorf("%w: not its canonical form", errStatement)
	}
	if !e.follows() {
		return nil, fmt.Errorf("%w: what became of the calls does not follow from what was found out", errStatement)
	}
	return &e, nil
}

// follows reports whether the members agree with each other.
func (e *Evidence) follows() bool {
	if id, err := hex.DecodeString(e.ID); err != nil || len(id) != 16 {
		return false
	}
	if !e.sourcesFollow() || !slices.Contains(delegation.Responses, e.Response) || e.Audit && e.Act == waiting || (e.Act == repaired) && e.Repair == nil {
		return false
	}
	switch e.Act {
	case forwarded:
		if !e.Response.Passes() {
			return false
		}
	case repaired:
		if e.Response != delegation.Repair || e.Reason != reasonFound {
			return false
		}
	case refused, waiting:
		if e.Response.Passes() && e.Reason != reasonUnrecorded {
			return false
		}
	default:
		return false
	}
	if e.Reason != reasonFound {
		return true
	}
	worst := delegation.Pass
	for i := range e.Calls {
		c := &e.Calls[i]
		if c.Facts.Verdict() != c.Verdict || !c.Follows(c.Response) {
			return false
		}
		worst = delegation.Worse(worst, c.Response)
	}
	passes := !slices.ContainsFunc(e.After, func(c Call) bool {
		return c.Facts.Verdict() != c.Verdict || !c.Follows(c.Response) || !c.Response.Passes()
	})
	return len(e.Calls) > 0 && worst == e.Response && (passes || e.Act != repaired)
}
