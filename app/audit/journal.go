// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"maps"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// A journalRow is a decision as decisions.jsonl has it, where no ledger is configured.
type journalRow struct {
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
}

// believed is the row as far as it is what this program writes: a journal may have been
// changed by hand.
func (r *journalRow) believed() *journalRow {
	for _, s := range []*string{&r.Server, &r.Method, &r.Kind, &r.Verdict} {
		if !frame.IsLabel(*s) {
			*s = frame.Other
		}
	}
	if r.Tool != "" && !frame.IsLabel(r.Tool) {
		r.Tool = frame.Other
	}
	for _, m := range []map[string]int64{r.Findings, r.NotInspected, r.Withheld} {
		maps.DeleteFunc(m, func(code string, _ int64) bool { return !frame.IsLabel(code) })
	}
	return r
}

// journaled finds the decision of that id in the journal of this state directory, with the
// files that were put aside; nil if it has none.
func journaled(dir *state.Dir, id ledger.ID) (*journalRow, error) {
	for record, err := range dir.Records("decisions.jsonl") {
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(record, []byte(id.String())) {
			continue
		}
		var r journalRow
		if json.Unmarshal(record, &r) == nil && r.ID == id.String() {
			return r.believed(), nil
		}
	}
	return nil, nil
}
