// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// Evidence says how decisions are recorded in the ledger.
type Evidence struct {
	Mode   Recording
	Origin string // the log's name, if it is yet to begin; "": one is made up
	Key    Value  // the log's private key, PRIVATE+KEY+…; "": one of the state directory

	signer *ledger.Signer // of Key
}

// Signer is the key that was given, nil if none was.
func (e *Evidence) Signer() *ledger.Signer { return e.signer }

// A Recording says what becomes of a result that there can be no record of.
type Recording uint8

// The modes.
const (
	BestEffort Recording = iota // it is delivered, and the loss is counted and recorded
	Required                    // it is withheld, if its tool is privileged
	NoEvidence                  // there is no ledger: decisions are lines of a file
)

var (
	// Recordings are the ways to record decisions.
	Recordings = Words[Recording]{[]string{"best-effort", "required", "off"}, []Recording{BestEffort, Required, NoEvidence}}
)

func (m Recording) String() string { return Recordings.words[m] }

func (e *Evidence) members() []member {
	return []member{
		{"mode", live, word(&e.Mode, BestEffort, Recordings.words, Recordings.values), "how decisions are recorded: `best-effort` counts what cannot be written, `required` withholds results then, `off` appends lines to decisions.jsonl ([Evidence](#evidence))"},
		{"origin", live, checked(&e.Origin, "", "a label without +, such as example.com/log", ledger.ValidOrigin),
			"the log's name, for ever; default: one is made up at the first start"},
		{"key", live, reference(&e.Key), "the log's private key, `PRIVATE+KEY+…`; default: one of the state directory"},
	}
}

// evidence reads the key, once the whole section has been read.
func (c *compiler) evidence(p place) {
	e := &c.out.Evidence
	if e.Key.text == "" {
		return
	}
	s, err := ledger.ParseSigner(strings.TrimSpace(e.Key.text))
	switch key := p.at("key"); {
	case err != nil:
		c.report(key, "does not hold a log's private key, PRIVATE+KEY+NAME+HASH+…")
	case e.Origin != "" && s.Name() != e.Origin:
		c.report(key, "is a key of another log than origin names")
	}
	e.signer = s
}
