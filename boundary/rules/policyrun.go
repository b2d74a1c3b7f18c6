// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A CaseResult is what a policy decided of a case.
type CaseResult struct {
	Name   string       `json:"name"`
	Line   int          `json:"line"`
	Passed bool         `json:"passed"`
	Want   string       `json:"want"`
	Got    policy.Match `json:"got"`
	Would  policy.Match `json:"would,omitzero"`
}

// LoadPolicyTest reads a file of cases. Names of files in it are relative to its directory.
func LoadPolicyTest(name string) (*PolicyTest, error) {
	src, err := os.ReadFile(name)
	if err == nil && len(src) > maxFile {
		err = fmt.Errorf("longer than %d bytes", maxFile)
	}
	if err != nil {
		return nil, fmt.Errorf("policy: read %s: %w", finding.Quote(name), terminal.WithoutPath(err))
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	t, err := parsePolicyTest(src, Options{Dir: filepath.Dir(abs)})
	if err != nil {
		return nil, fmt.Errorf("policy: %s:\n%w", finding.Quote(name), err)
	}
	return t, nil
}

// Results decides every case, in their order.
func (t *PolicyTest) Results() iter.Seq[*CaseResult] {
	return func(yield func(*CaseResult) bool) {
		for i := range t.Cases {
			x := &t.Cases[i]
			d, passed := x.check(t.policy)
			r := &CaseResult{Name: x.name, Line: x.line, Passed: passed, Want: x.wanted(), Got: d.Match, Would: d.Would}
			if !yield(r) {
				return
			}
		}
	}
}

// wanted is what a case wants, for a person.
func (x *PolicyCase) wanted() string {
	w := x.Want.String()
	switch {
	case x.rule == nil:
	case *x.rule == "":
		w += ", no rule"
	default:
		w += ", rule " + *x.rule
	}
	if x.Would != nil {
		w += ", would " + x.Would.String()
	}
	return w
}

// Write prints a result for a person.
func (r *CaseResult) Write(w io.Writer) error {
	if r.Passed {
		_, err := fmt.Fprintf(w, "ok    %s\n", terminal.Inline(r.Name))
		return err
	}
	got := r.Got.String()
	if r.Would.Rule != "" {
		got += "; would " + r.Would.String()
	}
	_, err := fmt.Fprintf(w, "FAIL  %s (line %d)\n      want %s\n      got  %s\n", terminal.Inline(r.Name), r.Line, terminal.Printable(r.Want), got)
	return err
}
