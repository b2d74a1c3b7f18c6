// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// answerAt is the column behind the labels of an answer.
const answerAt = 20

// WriteAnswer writes a response envelope for a person.
func WriteAnswer(w io.Writer, p terminal.Palette, envelope []byte) error {
	a, err := ParseAnswer(envelope)
	if err != nil {
		return err
	}
	out := &answerReport{w: bufio.NewWriter(w), p: p}
	out.verdict(a)
	for i := range a.Attestations {
		out.attestation(a, i)
	}
	out.rest(a)
	return out.w.Flush()
}

// An answerReport writes an answer. All that it prints passes terminal.Printable, and
// third-party text stands behind the column of the labels, so that none of it can be taken
// for a line of the program's own.
type answerReport struct {
	w *bufio.Writer
	p terminal.Palette
}

func (r *answerReport) field(label, text string) {
	if text != "" {
		terminal.Field(r.w, answerAt, label, terminal.Printable(text), nil)
	}
}

func (r *answerReport) head(s string) {
	fmt.Fprintf(r.w, "%s\n", r.p.Bold(terminal.Printable(strings.Join(strings.Fields(s), " "))))
}

func (r *answerReport) verdict(a *Answer) {
	s := a.Summary
	what := string(s.Verdict) + ": " + terminal.Plural(s.Validators, "validator")
	if s.Disagreement {
		what += ", who disagree"
	}
	r.head(what)
	if c := a.Meta.Claim; c != nil {
		r.field("claim", c.Text.Claim)
		r.field("claim hash", c.Hash)
	} else {
		r.field("claim", "none is known that matches")
	}
	r.field("believed", a.Domain)
	if x := a.Meta.Explanation; x != nil {
		r.field("outcome", string(x.Outcome))
		for _, t := range x.Tallies {
			r.field("votes", fmt.Sprintf("%s by %s", t.Verdict, terminal.Plural(t.Validators, "validator")))
		}
	}
}

func (r *answerReport) attestation(a *Answer, i int) {
	t := &a.Attestations[i]
	fmt.Fprintln(r.w)
	r.head(string(t.Verdict))
	r.field("validator", t.Validator)
	r.field("domain", t.Domain)
	if i < len(a.Meta.Provenance) {
		r.field("issued", a.Meta.Provenance[i].Issued.Format(time.RFC3339Nano))
		r.field("hash", a.Meta.Provenance[i].Hash)
	}
	r.field("rationale", t.Text.Rationale)
	r.field("qualifications", t.Text.Qualifications)
	for _, q := range t.Text.Evidence {
		r.field("quote", q.Quote.Quote)
		r.field("source", q.Quote.Source)
	}
}

func (r *answerReport) rest(a *Answer) {
	m := &a.Meta
	if len(m.Withheld)+len(m.Others) > 0 || m.Cut.Claims || m.Cut.Attestations || m.Cut.Votes {
		fmt.Fprintln(r.w)
		r.head("Besides")
	}
	for _, x := range m.Withheld {
		r.field("withheld", x.Hash+" "+x.Reason)
	}
	for _, c := range m.Others {
		r.field("other claim", c.Text.Claim)
		r.field("", c.Hash)
	}
	if m.Cut.Attestations {
		r.field("not shown", "attestations that counted as well: --limit shows more")
	}
	if m.Cut.Votes {
		r.field("not composed", "votes beyond the greatest number that is looked at")
	}
	if m.Cut.Claims {
		r.field("not searched", "claims beyond the greatest number that is looked at")
	}
}
