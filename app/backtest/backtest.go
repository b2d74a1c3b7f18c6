// SPDX-License-Identifier: Apache-2.0

// Package backtest tries rules on the records of the ledger before they are in force: what would have been held, what by nothing else, and what cannot be known.
//
// A record has the server, the tool, the codes that were found and the scores of classifiers. Scores of
// trust are computed from the records again. It has no size, no hints of a tool, no arguments, no scopes or claims of
// a principal and no counts of a session: a rule that depends on one of these is counted as not evaluable. A size is known where a
// capture of the call is kept that this machine can read. The same records, captures and rules always
// give the same report. Memory does not grow with the log.
package backtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/record/captures"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
)

// A Log is what is read of the ledger.
type Log interface {
	// Entries returns the envelopes of up to n records from index first on.
	Entries(ctx context.Context, first int64, n int) ([][]byte, error)
}

// Options say what is tried.
type Options struct {
	Trial    *rules.Trial
	Size     int64     // of the log
	Since    time.Time // records of an earlier time make scores, and count nothing; zero: all count
	Examples int       // ids of each row; 0 stands for 3
	// Captures finds what is kept of a call, as captures.Read does; nil: nothing is kept.
	Captures func(ctx context.Context, id string) (*captures.Capture, error)
}

// A Report is what would have been.
type Report struct {
	Records      int64    `json:"records"`        // that were read
	Results      int64    `json:"results"`        // answers of tools that the rules were tried on
	Calls        int64    `json:"calls"`          // calls of tools that the rules were tried on
	First        string   `json:"first,omitzero"` // time of the first of these
	Last         string   `json:"last,omitzero"`
	Held         Count    `json:"held"`          // would have been held for a reviewer
	Denied       Count    `json:"denied"`        // would have been refused
	Watched      int64    `json:"watched"`       // a rule in audit mode would have been stricter
	Passes       int64    `json:"passes"`        // were held or refused by a rule or by hold, and would not be
	NotEvaluable int64    `json:"not_evaluable"` // a rule depends on what is not recorded
	Captured     int64    `json:"captured"`      // calls whose size a rule needs and a capture has
	Sealed       int64    `json:"sealed"`        // calls whose size a rule needs, with a capture that only reviewers can read
	Rows         []Row    `json:"rows"`
	Passing      []Row    `json:"passing"`
	Unknown      []Row    `json:"unknown"`
	More         int64    `json:"more"` // that are in no row, since there are too many rows
	Notes        []string `json:"notes"`
}

// A Count is a number and how many of it nothing else had withheld.
type Count struct {
	N    int64 `json:"n"`
	Only int64 `json:"only"`
}

// A Row counts what is alike. Server and Tool are labels.
type Row struct {
	Server   string   `json:"server"`
	Tool     string   `json:"tool"`
	By       string   `json:"by"`              // "policy:RULE", "hold:CODE"; of Unknown: the rule; of Passing: what had held it
	Action   string   `json:"action,omitzero"` // "hold", "ask", "deny"
	Lacks    string   `json:"lacks,omitzero"`  // of Unknown: the variable
	N        int64    `json:"n"`
	Only     int64    `json:"only"`     // by nothing else
	Examples []string `json:"examples"` // evidence ids, the first in the log
}

const (
	maxRows = 10_000
	window  = 4096 // decisions that wait for the verdicts of their classifiers
	stride  = 256
)

// unknown are the variables of which no record says anything. A score counts where a record has it.
var unknown = []string{"size", "hints.read_only", "hints.destructive", "hints.open_world", "principal.scopes", "principal.claims", "privileged", "scores",
	"args", "session", "session.calls", "session.held"}

// acting is unknown of a tool that the operator's rules call privileged.
var acting = slices.DeleteFunc(slices.Clone(unknown), func(s string) bool { return s == "privileged" })

// A waiting is a decision whose classifiers may yet follow.
type waiting struct {
	st           *ledger.Statement
	server, tool trust.Score
	scores       []policy.Score
	counts       bool
	params       int // bytes of the call's parameters; 0: not known
	received     int // bytes of the answer; 0: not known
}

type tester struct {
	o      Options
	r      *Report
	state  *trust.State
	queue  []*waiting
	byID   map[ledger.ID]*waiting
	tables [3]map[rowKey]*Row
}

type rowKey struct{ server, tool, by, action, lacks string }

// Run tries rules on a log.
func Run(ctx context.Context, log Log, o Options) (*Report, error) {
	if o.Examples <= 0 {
		o.Examples = 3
	}
	options, err := standing.Latest(ctx, log, o.Size)
	if err != nil {
		return nil, fmt.Errorf("backtest: %w", err)
	}
	t := &tester{o: o, r: &Report{Rows: []Row{}, Passing: []Row{}, Unknown: []Row{}, Notes: []string{}}, state: trust.New(options), byID: map[ledger.ID]*waiting{}}
	for i := range t.tables {
		t.tables[i] = map[rowKey]*Row{}
	}
	for at := int64(0); at < o.Size; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		list, err := log.Entries(ctx, at, int(min(stride-at%stride, o.Size-at)))
		if err != nil || len(list) == 0 {
			return nil, fmt.Errorf("backtest: read record %d: %w", at, cmp.Or(err, ledger.ErrNotFound))
		}
		for _, raw := range list[:min(int64(len(list)), o.Size-at)] {
			st, err := ledger.UnverifiedStatement(raw)
			if err != nil {
				return nil, fmt.Errorf("backtest: record %d: %w", at, err)
			}
			if err := t.take(ctx, st); err != nil {
				return nil, err
			}
			at++
		}
	}
	for len(t.queue) > 0 {
		if err := t.decide(ctx); err != nil {
			return nil, err
		}
	}
	return t.finish(), nil
}

// take reads one record in the order of the log.
func (t *tester) take(ctx context.Context, st *ledger.Statement) error {
	t.r.Records++
	switch {
	case st.Kind == ledger.Message && st.Method == "tools/call" && (st.Shape == "result" || st.Shape == "error" || st.Shape == "call"):
		now := st.Time.Unix()
		w := &waiting{st: st, counts: t.o.Since.IsZero() || !st.Time.Before(t.o.Since),
			server: t.state.Score(trust.Origin{Server: st.Server}, now), tool: t.state.Score(trust.Origin{Server: st.Server, Tool: st.Tool}, now)}
		w.scores = joined(st)
		if len(t.queue) >= window {
			if err := t.decide(ctx); err != nil {
				return err
			}
		}
		t.queue, t.byID[st.ID] = append(t.queue, w), w
	case st.Kind == ledger.Classified:
		if w := t.byID[st.Of]; w != nil && len(w.scores) < 64 {
			if name, score, ok := scored(st); ok {
				w.scores = append(w.scores, policy.Score{Name: name, Value: score})
			}
		}
	}
	if e, counts := standing.Of(&st.Event); counts {
		t.state.Apply(e)
	}
	return nil
}

// scored is the score in the record of a classifier.
func scored(st *ledger.Statement) (name string, score float64, ok bool) {
	if len(st.Rule) <= len("classifier:") || st.Verdict == "not-judged" || st.Verdict == "skipped" || st.Verdict == "dropped" {
		return "", 0, false
	}
	for _, n := range st.Numbers {
		if n.Name == "score" {
			return st.Rule[len("classifier:"):], float64(n.N) / 1e6, true
		}
	}
	return "", 0, false
}

// joined are the scores that the record of a message has itself (spec: evidence/1.6).
func joined(st *ledger.Statement) (out []policy.Score) {
	const prefix, suffix = "classifier:", ":score"
	for _, n := range st.Numbers {
		if len(n.Name) > len(prefix)+len(suffix) && n.Name[:len(prefix)] == prefix && n.Name[len(n.Name)-len(suffix):] == suffix {
			out = append(out, policy.Score{Name: n.Name[len(prefix) : len(n.Name)-len(suffix)], Value: float64(n.N) / 1e6})
		}
	}
	return out
}

// decide tries the rules on the oldest decision that waits.
func (t *tester) decide(ctx context.Context) error {
	w := t.queue[0]
	t.queue[0] = nil
	t.queue = t.queue[1:]
	if t.byID[w.st.ID] == w {
		delete(t.byID, w.st.ID)
	}
	if !w.counts {
		return nil
	}
	when := w.st.Time.UTC().Format(time.RFC3339)
	if t.r.First == "" || when < t.r.First {
		t.r.First = when
	}
	t.r.Last = max(t.r.Last, when)
	t.r.Calls++
	if w.st.Shape != "call" {
		t.r.Results++
	}
	v := t.both(w)
	if v.needsSize && t.o.Captures != nil {
		if err := t.captured(ctx, w); err != nil {
			return err
		}
		v = t.both(w)
	}
	t.count(w, &v)
	return nil
}

// captured reads the sizes of a call from its capture, where one is kept.
func (t *tester) captured(ctx context.Context, w *waiting) error {
	c, err := t.o.Captures(ctx, w.st.ID.String())
	switch {
	case errors.Is(err, captures.ErrNotKept), errors.Is(err, capture.ErrForeign), errors.Is(err, captures.ErrDamaged):
	case errors.Is(err, capture.ErrSealed):
		t.r.Sealed++
	case err != nil:
		return fmt.Errorf("backtest: capture of %s: %w", w.st.ID, err)
	default:
		if w.params = c.Params; c.Received != nil {
			w.received = c.Received.Bytes
		}
		if w.params > 0 || w.received > 0 {
			t.r.Captured++
		}
	}
	return nil
}
