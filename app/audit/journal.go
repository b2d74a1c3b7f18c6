// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"iter"
	"maps"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// A JournalRow is a decision as decisions.jsonl has it, where no ledger is configured.
type JournalRow struct {
	ID           string           `json:"id"`
	Time         time.Time        `json:"time"`
	Server       string           `json:"server"`
	Tool         string           `json:"tool,omitempty"`
	Method       string           `json:"method"`
	Kind         string           `json:"kind"`
	Verdict      string           `json:"verdict"`
	Inspected    int64            `json:"inspected"`
	Findings     map[string]int64 `json:"findings,omitempty"`
	NotInspected map[string]int64 `json:"not_inspected,omitempty"`
	Withheld     map[string]int64 `json:"withheld,omitempty"`
	Profile      string           `json:"profile,omitempty"`
	Delivered    string           `json:"delivered,omitempty"`
	Repeated     int64            `json:"repeated,omitempty"`
	Fault        string           `json:"fault,omitempty"`
	Released     string           `json:"released,omitempty"`
	Policy       JournalMatch     `json:"policy,omitzero"`
	Would        JournalMatch     `json:"would,omitzero"`
	Validation   struct {
		Verdict string `json:"verdict,omitempty"`
	} `json:"validation,omitzero"`
	Classified []JournalScore `json:"classified,omitempty"`
}

// A JournalMatch is what a rule of the policy asked for.
type JournalMatch struct {
	Action string `json:"action"`
	Rule   string `json:"rule,omitempty"`
	Failed bool   `json:"failed,omitempty"`
}

// A JournalScore is the verdict of a classifier.
type JournalScore struct {
	Score   float64 `json:"score"`
	Name    string  `json:"name"`
	Mode    string  `json:"mode"`
	Outcome string  `json:"outcome"`
}

// believed is the row as far as it is what this program writes: a journal may have been
// changed by hand.
func (r *JournalRow) believed() *JournalRow {
	for _, s := range []*string{&r.Server, &r.Method, &r.Kind, &r.Verdict} {
		*s = frame.Label(*s)
	}
	optional := []*string{&r.Tool, &r.Profile, &r.Delivered, &r.Released, &r.Validation.Verdict,
		&r.Policy.Action, &r.Policy.Rule, &r.Would.Action, &r.Would.Rule}
	r.Classified = r.Classified[:min(len(r.Classified), maxScores)]
	for i := range r.Classified {
		optional = append(optional, &r.Classified[i].Name, &r.Classified[i].Mode, &r.Classified[i].Outcome)
	}
	for _, s := range optional {
		if *s != "" {
			*s = frame.Label(*s)
		}
	}
	for _, m := range []map[string]int64{r.Findings, r.NotInspected, r.Withheld} {
		maps.DeleteFunc(m, func(code string, _ int64) bool { return !frame.IsLabel(code) })
	}
	return r
}

// maxScores bounds the classifiers of one decision.
const maxScores = 64

// Journal yields the decisions that the journal of a state directory has, with the files that were put aside: those whose
// lines contain the text.
func Journal(dir *state.Dir, text string) iter.Seq2[JournalRow, error] {
	return func(yield func(JournalRow, error) bool) {
		for record, err := range dir.Records("decisions.jsonl") {
			var r JournalRow
			if err == nil && (!bytes.Contains(record, []byte(text)) || json.Unmarshal(record, &r) != nil) {
				continue
			}
			if !yield(*r.believed(), err) {
				return
			}
		}
	}
}

// Journaled finds the decision of that id in the journal of this state directory; nil if it has none.
func Journaled(dir *state.Dir, id ledger.ID) (*JournalRow, error) {
	for r, err := range Journal(dir, id.String()) {
		if err != nil || r.ID == id.String() {
			return &r, err
		}
	}
	return nil, nil
}
