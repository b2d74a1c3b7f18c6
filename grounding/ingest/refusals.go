// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"encoding/json"

	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/state"
)

// RefusalsName is the name of the journal in the state directory.
const RefusalsName = "refusals.jsonl"

// Refusals keeps what an adapter has not accepted, as lines of a journal.
type Refusals struct {
	journal *state.Journal
	fail    func(error) // is told of every line that could not be written
}

// OpenRefusals opens the journal of the state directory. fail is told of every refusal
// that could not be recorded.
func OpenRefusals(dir *state.Dir, fail func(error)) (*Refusals, error) {
	j, err := dir.Journal(RefusalsName, nil)
	if err != nil {
		return nil, err
	}
	return &Refusals{j, fail}, nil
}

// Record appends a refusal. It is made for ground.Options.Refused.
func (r *Refusals) Record(x ground.Refused) {
	line, err := json.Marshal(struct {
		At        string `json:"at"`
		Submitter string `json:"submitter,omitempty"`
		Digest    string `json:"digest"`
		ground.Receipt
	}{x.At.UTC().Format("2006-01-02T15:04:05.000Z"), x.Submitter, x.Digest, x.Receipt})
	if err == nil {
		err = r.journal.Append(line)
	}
	if err != nil {
		r.fail(err)
	}
}

// Close closes the journal; nil is closed already.
func (r *Refusals) Close() error {
	if r == nil {
		return nil
	}
	return r.journal.Close()
}
