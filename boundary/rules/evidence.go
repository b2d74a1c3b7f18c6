// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/egress"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/witness"
)

// Evidence says how decisions are recorded in the ledger.
type Evidence struct {
	Mode   Recording
	Origin string // the log's name, if it is yet to begin; "": one is made up
	Key    Value  // the log's private key, PRIVATE+KEY+…; "": one of the state directory

	Standby   Standby    // what happens while no synchronous standby of the database is left
	Witnesses *Witnesses // cosign checkpoints; nil: none do

	signer *ledger.Signer // of Key
}

// A Standby says what happens while a Postgres database has no synchronous standby.
type Standby uint8

// The settings.
const (
	StandbyWaits   Standby = iota // a record waits for one, and a call whose record must be durable fails
	StandbyMissing                // records are durable in the primary alone, and that is told
)

// Witnesses cosign the checkpoints of the log.
type Witnesses struct {
	Policy string // policy file (C2SP tlog-policy), absolute; "": List and Quorum
	List   []Witness
	Quorum int // of List; 0: all
	Every  time.Duration

	policy *witness.Policy
}

// A Witness is one of the list.
type Witness struct{ Key, URL string }

// Parsed is the policy.
func (w *Witnesses) Parsed() *witness.Policy { return w.policy }

func (w *Witnesses) members() []member {
	return []member{
		{"policy", restart, parsed(&w.Policy, "PATH or `file:PATH`", (*compiler).file), "a policy file (C2SP tlog-policy), in place of list and quorum"},
		{"list", restart, objects(&w.List, 32, (*Witness).members, nil), "the witnesses"},
		{"quorum", restart, integer(&w.Quorum, 0, 0, 32), "how many of the list are enough; default: all"},
		{"every", restart, duration(&w.Every, 5*time.Second, time.Second, time.Hour), "the least time between two checkpoints that are sent"},
	}
}

func (w *Witness) members() []member {
	return []member{
		{"key", restart | needed, checked(&w.Key, "", "a witness's verifier key, NAME+HASH+…", func(s string) bool { _, err := ledger.ParseWitness(s); return err == nil }), "verifier key of the witness"},
		{"url", restart | needed, parsed(&w.URL, "an https URL, or an http URL of this machine", (*compiler).serviceURL), "submission prefix of the witness"},
	}
}

// witnesses makes the policy.
func (c *compiler) witnesses(p place, w *Witnesses, sound bool) bool {
	if !sound {
		return false
	}
	var err error
	if w.Policy != "" {
		if len(w.List) > 0 || w.Quorum > 0 {
			c.report(p, "has policy and list: the policy file says it all")
			return false
		}
		var text []byte
		if text, err = c.opt.ReadFile(w.Policy); err != nil {
			c.report(p.at("policy"), "cannot be read")
			return false
		}
		w.policy, err = witness.ParsePolicy(text)
	} else {
		var list []witness.Witness
		for _, x := range w.List {
			key, _ := ledger.ParseWitness(x.Key) // was checked
			list = append(list, witness.Witness{Key: key, URL: x.URL})
		}
		w.policy, err = witness.NewPolicy(list, w.Quorum)
	}
	if err == nil {
		_, err = witness.NewSender(witness.Options{Policy: w.policy}) // names what it lacks
	}
	if err != nil {
		c.report(p, "%s", err.Error())
		return false
	}
	return true
}

// serviceURL reads the URL of a service: https, or http on this machine.
func (c *compiler) serviceURL(p place) string {
	s := c.text(p, 2048)
	if s == "" {
		return ""
	}
	base, _, err := egress.Base(s, false)
	if err != nil {
		c.report(p, "%s", err.Error())
		return ""
	}
	return base
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
	// recordings are the ways to record decisions.
	recordings = choices[Recording]{[]string{"best-effort", "required", "off"}, []Recording{BestEffort, Required, NoEvidence}}
)

func (m Recording) String() string { return recordings.words[m] }

func (e *Evidence) members() []member {
	return []member{
		{"mode", live, word(&e.Mode, BestEffort, recordings.words, recordings.values), "how decisions are recorded: `best-effort` counts what cannot be written, `required` withholds results then, `off` appends lines to decisions.jsonl ([Evidence](#evidence))"},
		{"origin", live, checked(&e.Origin, "", "a label without +, such as example.com/log", ledger.ValidOrigin),
			"the log's name, for ever; default: one is made up at the first start"},
		{"key", live, reference(&e.Key), "the log's private key, `PRIVATE+KEY+…`; default: one of the state directory"},
		{"standby", restart, word(&e.Standby, StandbyWaits, []string{"wait", "go-on"}, []Standby{StandbyWaits, StandbyMissing}), "with mode `required` on Postgres, while no synchronous standby is left: `wait` fails the calls whose records cannot be durable, `go-on` records in the primary alone and says so"},
		{"witnesses", restart, optional(&e.Witnesses, (*Witnesses).members, (*compiler).witnesses), "witnesses that cosign the checkpoints of the log"},
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
