// SPDX-License-Identifier: Apache-2.0

// Package guardreport adds up what the guard has decided in some time: how many privileged calls
// it has held, or would have held under audit, and which ones.
package guardreport

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/model/analysis"
	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/model/interval"
)

const (
	maxTools    = 200 // that are counted by name
	maxReasons  = 32  // the same
	maxAsked    = 64  // questions of one decision that are told apart
	otherTools  = "(other tools)"
	unreadTool  = "(not read)" // of an answer in which no call could be read
	otherReason = "other"
)

// A Report is what the decisions of some time come to. Its size does not depend on how many there
// are.
type Report struct {
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until"`
	Decisions int       `json:"decisions"` // answers that were decided on
	Audit     int       `json:"audit"`     // of them under audit, where nothing is held
	Calls     Share     `json:"calls"`
	// Readers are those of Calls whose tool only reads. They are decided because they go to an
	// address that is not the user's.
	Readers  Share          `json:"readers"`
	Repaired int            `json:"repaired"`         // of the calls held: the model answered again
	Beside   int            `json:"beside"`           // of the calls held: only for another call of the same answer
	Marked   int            `json:"marked"`           // of the calls that passed
	Approved int            `json:"approved"`         // the same
	Open     int            `json:"open"`             // the same, although they could not be decided on
	Released int            `json:"released"`         // answers that a reviewer had released, which no other figure counts
	Reasons  map[string]int `json:"reasons"`          // of the calls held that could not be decided on
	Asked    Questions      `json:"questions"`        // extra calls of the model
	Verdicts []Row          `json:"by_verdict"`       //
	Tools    []Row          `json:"by_tool"`          //
	Missing  Missing        `json:"not_in_the_count"` // decisions of which the statement cannot be used
	Held     []HeldCall     `json:"held"`             // the newest first
	More     int            `json:"held_not_listed"`

	limit    int
	verdicts map[string]*Row
	tools    map[string]*Row
	asked    [maxAsked + 1]int // decisions with so many questions, and in the last one those with more
}

// A Share is how many of some calls were held, with the interval of 95 % after Wilson.
type Share struct {
	N     int     `json:"n"`
	Held  int     `json:"held"`
	Share float64 `json:"share"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

func (s *Share) add(held bool) {
	s.N++
	if held {
		s.Held++
	}
}

func (s *Share) finish() {
	if s.N > 0 {
		s.Share = float64(s.Held) / float64(s.N)
	}
	s.Low, s.High = interval.Wilson(s.Held, s.N)
}

// A Row is the calls with one verdict, or of one tool.
type Row struct {
	Name string `json:"name"`
	Share
}

// Questions counts the questions that the guard has asked the model. A question that an earlier
// decision had asked, and a repeated attempt, does not count.
type Questions struct {
	Total int     `json:"total"`
	Mean  float64 `json:"mean"` // for each decision
	P95   int     `json:"p95"`
	Most  int     `json:"most"`
}

// Missing counts decisions that the ledger has, and whose statement cannot be used.
type Missing struct {
	Absent  int `json:"absent"`        // its file is not in the state directory
	Version int `json:"other_version"` // of the format of statements
	Changed int `json:"changed"`       // it does not replay, or is not what the ledger has recorded
	Unread  int `json:"unreadable"`    // its file cannot be read
	Held    int `json:"held"`          // of these, those that were held, as the ledger says
	// Waiting are records, of any kind, that the log does not have yet.
	Waiting int `json:"waiting"`
}

// A HeldCall is a call that was held, or would have been.
type HeldCall struct {
	Time     time.Time           `json:"time"`
	ID       string              `json:"id"`
	Tool     string              `json:"tool"`
	Reader   bool                `json:"reader"`
	Verdict  delegation.Verdict  `json:"verdict"`
	Response delegation.Response `json:"response"`
	Act      guard.Act           `json:"act"`
	Audit    bool                `json:"audit"`
	// Reason is why the call could not be decided on; "": it was.
	Reason guard.Reason `json:"reason,omitzero"`
	// Beside: it would have passed, and is held for another call of the same answer.
	Beside    bool     `json:"beside"`
	Rules     []string `json:"rules,omitzero"` // of the operator, that say this response
	Arguments []Value  `json:"arguments,omitzero"`
	Show      []string `json:"show"` // commands
	waits     bool
}

// A Value is one value of a call: the label of its argument, and where the value stands.
type Value struct {
	Argument string   `json:"argument"`
	Form     string   `json:"form"`
	From     string   `json:"from"`              // user, data, composed or nowhere, as in rules about values
	Segments []string `json:"segments,omitzero"` // with their sources
}

func valueOf(a *delegation.Argument, sources []guard.SegmentSource) Value {
	v := Value{Argument: a.Label, Form: string(a.Form), From: "nowhere", Segments: analysis.Places(a.Segments, sources)}
	switch {
	case a.Trusted:
		v.From = "user"
	case a.Composed:
		v.From = "composed"
	case a.Segments != "":
		v.From = "data"
	}
	return v
}

func newReport(since, until time.Time, limit int) *Report {
	return &Report{Since: since.UTC(), Until: until.UTC(), limit: limit, Reasons: map[string]int{}, Held: []HeldCall{},
		verdicts: map[string]*Row{}, tools: map[string]*Row{}}
}

// add counts one decision.
func (r *Report) add(at time.Time, e *guard.Evidence) {
	if e.Released() {
		r.Released++
		return
	}
	r.Decisions++
	if e.Audit {
		r.Audit++
	}
	n := e.Questions()
	r.Asked.Total += n
	r.Asked.Most = max(r.Asked.Most, n)
	r.asked[min(n, maxAsked)]++
	calls := e.Calls
	if len(calls) == 0 {
		calls = []guard.Call{{Verdict: delegation.Unknown, Response: e.Response}}
		calls[0].Tool = unreadTool
	}
	for i := range calls {
		r.call(at, e, &calls[i])
	}
}

func (r *Report) call(at time.Time, e *guard.Evidence, c *guard.Call) {
	held := e.Held()
	r.Calls.add(held)
	if c.Reader {
		r.Readers.add(held)
	}
	counted(r.verdicts, string(c.Verdict), maxTools, otherReason).add(held)
	counted(r.tools, c.Tool, maxTools, otherTools).add(held)
	if !held {
		if c.Response == delegation.Mark {
			r.Marked++
		}
		if c.Approval != "" {
			r.Approved++
		}
		if e.Undecided() {
			r.Open++
		}
		return
	}
	x := HeldCall{Time: at.UTC(), ID: e.ID, Tool: c.Tool, Reader: c.Reader, Verdict: c.Verdict, Response: c.Response, Act: e.Act, Audit: e.Audit,
		waits: e.Waits()}
	if e.Undecided() {
		x.Reason = e.Reason
		reason := string(e.Reason)
		if _, known := r.Reasons[reason]; !known && len(r.Reasons) >= maxReasons {
			reason = otherReason
		}
		r.Reasons[reason]++
	} else {
		x.Beside = c.Response.Passes()
	}
	if x.Beside {
		r.Beside++
	}
	if e.Repaired() {
		r.Repaired++
	}
	if len(r.Held) >= r.limit {
		r.More++
		return
	}
	for _, rule := range c.Rulings {
		if rule.Says == c.Response {
			x.Rules = append(x.Rules, rule.Rule)
		}
	}
	for i := range c.Arguments {
		x.Arguments = append(x.Arguments, valueOf(&c.Arguments[i], e.Sources))
	}
	r.Held = append(r.Held, x)
}

// counted is the row of a name. Names beyond most share one.
func counted(rows map[string]*Row, name string, most int, rest string) *Row {
	if rows[name] == nil && len(rows) >= most {
		name = rest
	}
	if rows[name] == nil {
		rows[name] = &Row{Name: name}
	}
	return rows[name]
}

// finish fills in what follows from the counts.
func (r *Report) finish() {
	r.Calls.finish()
	r.Readers.finish()
	r.Verdicts, r.Tools = sorted(r.verdicts), sorted(r.tools)
	if r.Decisions == 0 {
		return
	}
	r.Asked.Mean = float64(r.Asked.Total) / float64(r.Decisions)
	for n, seen := 0, 0; n < len(r.asked); n++ {
		if seen += r.asked[n]; 100*seen >= 95*r.Decisions {
			r.Asked.P95 = n
			break
		}
	}
}

// sorted are the rows, those with the most calls held first.
func sorted(rows map[string]*Row) []Row {
	out := make([]Row, 0, len(rows))
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		rows[name].finish()
		out = append(out, *rows[name])
	}
	slices.SortStableFunc(out, func(a, b Row) int { return cmp.Or(b.Held-a.Held, b.N-a.N) })
	return out
}
