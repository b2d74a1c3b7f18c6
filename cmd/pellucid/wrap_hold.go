// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// holdFlags say what wrap holds for review.
type holdFlags struct {
	Hold       []string `placeholder:"CODE,…" help:"Hold a tool's result for review where one of these is found in it (see docs/spec/scrub.md, \"hidden-tag\" for one), instead of delivering it without; implies --quarantine."`
	Quarantine bool     `help:"Keep the results that are withheld, for pellucid quarantine."`
	Reviewer   []string `placeholder:"AGE1…" help:"Keep them encrypted, so that only whoever has the identity to one of these public keys of age can read and release them; implies --quarantine."`
	stateDB

	reviewers *capture.Recipients
}

// read takes the flags, and returns the codes of what is to be held.
func (f *holdFlags) read() (codes []finding.Code, err error) {
	for _, s := range f.Hold {
		code := finding.Code(strings.TrimSpace(s))
		if !code.Known() {
			return nil, fmt.Errorf("wrap: --hold: %s is no finding", finding.Quote(s))
		}
		codes = append(codes, code)
	}
	if len(f.Reviewer) > 0 {
		if f.reviewers, err = capture.ParseRecipients(f.Reviewer); err != nil {
			return nil, fmt.Errorf("wrap: --reviewer: %w", err)
		}
	}
	return codes, nil
}

// wanted reports whether there is to be a queue.
func (f *holdFlags) wanted() bool { return f.Quarantine || len(f.Hold) > 0 || len(f.Reviewer) > 0 }

// open opens the queue, and keeps it swept until stop is called.
func (f *holdFlags) open(s *storage.Store, o hold.Options) (q *hold.Queue, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	if f.reviewers != nil {
		o.Seal = f.reviewers.Seal
	}
	q = hold.New(s, o)
	done := make(chan struct{})
	go func() { defer close(done); q.KeepSwept(ctx, hold.SweepEvery, nil) }()
	return q, func() { cancel(); <-done }
}
