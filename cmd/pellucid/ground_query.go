// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type groundQueryCmd struct {
	groundDB
	groundRules
	Domain     string   `placeholder:"DOMAIN" help:"Only what was said in this consensus domain."`
	Profile    string   `placeholder:"FILE" completion:"files" help:"Consensus profile (CPML) to compose the verdict by; every domain alike if absent."`
	Validators string   `placeholder:"FILE" help:"Reputation of validators, and trust in them; all alike if absent."`
	Limit      int      `default:"20" help:"Greatest number of attestations that are shown, up to 100."`
	JSON       bool     `name:"json" help:"Print the response envelope that a model's host would get."`
	Text       []string `arg:"" help:"What to ask: words, topic:PATH, the hash of a claim, or the URN of a group."`
}

func (groundQueryCmd) Help() string {
	return `Searches the store, composes a verdict and prints it with the attestations that it
rests on. All that validators wrote is theirs: it is cleaned, indented, and what a
terminal would not show is spelled out. Where there is no store, a demonstration set
is asked. Exit codes: 0 answered, even if nothing is known of it, 1 failed, 2 wrong
usage, 3 bad configuration, 4 the store cannot be reached.`
}

func (c *groundQueryCmd) Run(e *env) error {
	ctx, stop := exit.UntilSignal()
	defer stop()
	dir, err := install.Open()
	if err != nil {
		return err
	}
	setup := c.setup()
	setup.Validators = c.Validators
	if err := compiled(setup, e.references()); err != nil {
		return err
	}
	r := ground.Request{Query: strings.Join(c.Text, " "), Domain: c.Domain, Limit: c.Limit}
	if c.Profile != "" {
		if r.Document, err = terminal.ReadInput(c.Profile, strings.NewReader("")); err != nil {
			return exit.With(exit.Config, fmt.Errorf("ground: --profile: %w", err))
		}
	}
	g, err := app.OpenGroundQuery(ctx, dir, app.GroundPlan{Rules: setup, DB: c.DB, Absent: app.ShowDemo, Notice: e.Stderr})
	if err != nil {
		return err
	}
	defer g.Close()
	answer, err := g.Ground(ctx, r)
	if err != nil {
		return queryError(err)
	}
	if c.JSON {
		_, err = e.Stdout.Write(append(terminal.EscapeJSON(answer), '\n'))
		return err
	}
	return printAnswer(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv), answer)
}

// queryError gives a ground.Problem its exit code.
func queryError(err error) error {
	var p ground.Problem
	switch {
	case !errors.As(err, &p):
		return err
	case p == ground.Unavailable:
		return exit.With(exit.Unreachable, err)
	case p == ground.ProfileRefused, p == ground.ScoresUnknown:
		return exit.With(exit.Config, err)
	}
	return exit.With(exit.Usage, err)
}

// answerAt is the column behind the labels of an answer.
const answerAt = 20

// printAnswer writes an answer for a person.
func printAnswer(w io.Writer, p terminal.Palette, envelope []byte) error {
	a, err := ground.ParseAnswer(envelope)
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

// An answerReport writes an answer. Whatever is printed passes printable, and third-party
// text stands behind the labels' column, so that none of it can pass for ours.
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

func (r *answerReport) verdict(a *ground.Answer) {
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

func (r *answerReport) attestation(a *ground.Answer, i int) {
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

func (r *answerReport) rest(a *ground.Answer) {
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
