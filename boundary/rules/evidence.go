// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// Evidence says how decisions are recorded in the ledger.
type Evidence struct {
	Mode   EvidenceMode
	Origin string // the log's name, if it is yet to begin; "": one is made up
	Key    Value  // the log's private key, PRIVATE+KEY+…; "": one of the state directory

	signer *ledger.Signer // of Key
}

// Signer is the key that was given, nil if none was.
func (e *Evidence) Signer() *ledger.Signer { return e.signer }

// An EvidenceMode says what becomes of a result that there can be no record of.
type EvidenceMode uint8

// The modes.
const (
	BestEffort EvidenceMode = iota // it is delivered, and the loss is counted and recorded
	Required                       // it is withheld, if its tool is privileged
	NoEvidence                     // there is no ledger: decisions are lines of a file
)

var (
	evidenceWords = []string{"best-effort", "required", "off"}
	evidenceModes = []EvidenceMode{BestEffort, Required, NoEvidence}
)

func (m EvidenceMode) String() string { return evidenceWords[m] }

func (c *compiler) evidence(p place) {
	e := &c.out.Evidence
	var key place
	c.object(p, members{
		"mode": func(p place) { e.Mode = choice(&c.reader, p, evidenceWords, evidenceModes) },
		"origin": func(p place) {
			e.Origin = c.checked(p, "a label without +, such as example.com/log", ledger.ValidOrigin)
		},
		"key": func(p place) { key, e.Key = p, c.reference(p) },
	})
	if e.Key.text == "" {
		return
	}
	c.secret.add(e.Key.text)
	s, err := ledger.ParseSigner(strings.TrimSpace(e.Key.text))
	switch {
	case err != nil:
		c.report(key, "does not hold a log's private key, PRIVATE+KEY+NAME+HASH+…")
	case e.Origin != "" && s.Name() != e.Origin:
		c.report(key, "is a key of another log than origin names")
	}
	e.signer = s
}

func (d *dumper) evidence(e *Evidence) {
	d.object("evidence", func() {
		d.word("mode", e.Mode.String())
		if e.Origin != "" {
			d.quote("origin", e.Origin)
		}
		if e.Key.ref != "" {
			d.quote("key", e.Key.ref)
		}
	})
}

func sameEvidence(a, b *Rules) bool {
	return a.Evidence.Mode == b.Evidence.Mode && a.Evidence.Origin == b.Evidence.Origin && a.Evidence.Key == b.Evidence.Key
}
