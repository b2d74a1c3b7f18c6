// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/evidence"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/storage"
)

// recordGround has an adapter over s record what it accepts and refuses. begin says to
// make a log where the store has none yet. A demonstration is not worth a record.
func recordGround(ctx context.Context, s *groundStore, dir *state.Dir, o *ground.Options, setup *rules.Ground, begin bool, log *slog.Logger) (*install.Records, error) {
	kept, ok := s.Store.(*storage.Store)
	if !ok || s.demo != "" {
		return nil, nil
	}
	r, err := install.RecordsOf(ctx, kept, dir)
	if err != nil {
		return nil, err
	}
	if r == nil && begin {
		r = install.OpenRecords(kept, dir, &rules.Evidence{}, install.PollSeldom, log)
	}
	if r == nil {
		return nil, nil
	}
	of := evidence.Attestations{Recorder: r.Recorder}
	if setup != nil {
		of.Deviations = setup.Deviations()
	}
	journal := o.Refused
	o.Evidence = of
	o.Refused = func(f ground.Refused) {
		of.Refused(f)
		if journal != nil {
			journal(f)
		}
	}
	return r, nil
}
