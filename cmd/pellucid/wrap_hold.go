// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// holdFlags say what wrap holds for review.
type holdFlags struct {
	Hold       []string `placeholder:"CODE,…" help:"@defaults.hold See docs/spec/scrub.md; implies --quarantine."`
	Quarantine bool     `help:"Keep withheld results in the queue, for pellucid quarantine."`
	Reviewer   []string `placeholder:"AGE1…" help:"age public key of a reviewer. Withheld results are encrypted, and only the private keys (identities) of the reviewers can read and release them. Implies --quarantine."`
	Capture    []string `enum:"arguments,received,delivered" placeholder:"PART,…" help:"@defaults.capture"`
	CaptureOf  []string `enum:"passed,changed,withheld,dropped" placeholder:"VERDICT,…" help:"@defaults.capture_of Implies --quarantine."`
	stateDB
}

// codes are the findings for which a result is held.
func (f *holdFlags) codes() (codes []finding.Code, err error) {
	for _, s := range f.Hold {
		code := finding.Code(strings.TrimSpace(s))
		if !code.Known() {
			return nil, fmt.Errorf("--hold: %s is not the code of a finding: docs/spec/scrub.md lists them", finding.Quote(s))
		}
		codes = append(codes, code)
	}
	return codes, nil
}

// recipients are those to whom what is held is encrypted; nil: it is kept as it is.
func (f *holdFlags) recipients() (*capture.Recipients, error) {
	if len(f.Reviewer) == 0 {
		return nil, nil
	}
	r, err := capture.ParseRecipients(f.Reviewer)
	if err != nil {
		return nil, fmt.Errorf("wrap: --reviewer: %w", err)
	}
	return r, nil
}

// wanted reports whether there is to be a queue.
func (f *holdFlags) wanted() bool {
	return f.Quarantine || len(f.Hold) > 0 || len(f.Reviewer) > 0 || len(f.CaptureOf) > 0
}
