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
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Evidence is a statement that a Sink has got, read again.
type Evidence struct {
	ID        string
	Act       Act
	Reason    Reason
	Response  counterfactual.Response
	Audit     bool
	context   string // digest of the request
	format    format.Name
	principal string
	actions   []string // digests of the privileged calls
	Runs      []*counterfactual.Result
}

// A statement has the members of guard-evidence/1, in their order.
type statement struct {
	Act       Act                     `json:"act"`
	Actions   []string                `json:"actions"`
	Audit     bool                    `json:"audit"`
	Context   string                  `json:"context"`
	Format    format.Name             `json:"format"`
	ID        string                  `json:"id"`
	Principal string                  `json:"principal"`
	Reason    Reason                  `json:"reason"`
	Response  counterfactual.Response `json:"response"`
	Runs      []json.RawMessage       `json:"runs"`
	Version   string                  `json:"version"`
}

// IsEvidence reports whether a text says that it is such a statement.
func IsEvidence(b []byte) bool {
	var doc strictjson.Doc
	return doc.Reset(b, strictjson.Limits{}) == nil && strings.HasPrefix(doc.Root().Get("version").Text(), "guard-evidence/")
}

// errStatement begins what is wrong with a statement.
var errStatement = errors.New("guard: replay")

// Replay reads a statement and derives it again: the attributions from the answers that its
// runs hold, what became of the calls from the attributions, and from all that the bytes,
// which have to be the same. No model is asked.
func Replay(text []byte) (*Evidence, error) {
	var s statement
	if err := strictjson.Unmarshal(text, &s, strictjson.Limits{}); err != nil {
		return nil, fmt.Errorf("%w: %w", errStatement, err)
	}
	if s.Version != evidenceVersion {
		return nil, fmt.Errorf("%w: not a statement of %s", errStatement, evidenceVersion)
	}
	e := &Evidence{ID: s.ID, Act: s.Act, Reason: s.Reason, Response: s.Response, Audit: s.Audit, context: s.Context,
		format: s.Format, principal: s.Principal, actions: s.Actions}
	var runs [][]byte
	for i, record := range s.Runs {
		r, err := counterfactual.Replay(record)
		if err != nil {
			return nil, fmt.Errorf("%w: run %d: %w", errStatement, i+1, err)
		}
		e.Runs, runs = append(e.Runs, r), append(runs, record)
	}
	if !bytes.Equal(s.text(runs), text) {
		return nil, fmt.Errorf("%w: not its canonical form", errStatement)
	}
	if !e.follows() {
		return nil, fmt.Errorf("%w: what became of the calls does not follow from the runs", errStatement)
	}
	return e, nil
}

// follows reports whether the members agree with each other and with the runs.
func (e *Evidence) follows() bool {
	if id, err := hex.DecodeString(e.ID); err != nil || len(id) != 16 {
		return false
	}
	acts := map[counterfactual.Response][]Act{
		counterfactual.Allow: {forwarded}, counterfactual.Quarantine: {repaired, refused},
		counterfactual.Ask: {refused, waiting}, counterfactual.Hold: {refused, waiting},
	}[e.Response]
	if !slices.Contains(acts, e.Act) || e.Audit && e.Act == waiting {
		return false
	}
	if e.Reason != reasonRun {
		return e.Act != repaired
	}
	if len(e.Runs) == 0 || e.Runs[0].Response() != e.Response {
		return false
	}
	var targets []string
	for _, t := range e.Runs[0].Problem().Targets {
		targets = append(targets, t.Digest)
	}
	return slices.Equal(targets, e.actions) && (e.Act != repaired || e.Runs[0].Repair != nil)
}

// text is the statement as it is recorded, with the records of its runs.
func (s *statement) text(runs [][]byte) []byte {
	w := &writer{}
	w.raw(`{"act":`)
	w.text(string(s.Act))
	w.raw(`,"actions":[`)
	for i, digest := range s.Actions {
		if i > 0 {
			w.raw(",")
		}
		w.text(digest)
	}
	w.raw(`],"audit":`)
	w.raw(map[bool]string{false: "false", true: "true"}[s.Audit])
	for _, m := range [...][2]string{{"context", s.Context}, {"format", string(s.Format)}, {"id", s.ID}, {"principal", s.Principal},
		{"reason", string(s.Reason)}, {"response", string(s.Response)}} {
		w.raw(`,"` + m[0] + `":`)
		w.text(m[1])
	}
	w.raw(`,"runs":[`)
	for i, record := range runs {
		if i > 0 {
			w.raw(",")
		}
		w.value(record)
	}
	w.raw(`],"version":`)
	w.text(s.Version)
	w.raw("}")
	return w.b
}

// A writer puts canonical JSON together.
type writer struct{ b []byte }

func (w *writer) raw(s string)   { w.b = append(w.b, s...) }
func (w *writer) text(s string)  { w.b = strictjson.AppendQuote(w.b, s) }
func (w *writer) value(v []byte) { w.b = append(w.b, v...) }
