// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"log/slog"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/evidence"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/state"
)

// record has an adapter over s record what it accepts and refuses. begin says to make a
// log where the store has none yet. A demonstration is not recorded.
func (s *groundStore) record(ctx context.Context, dir *state.Dir, o *ground.Options, deviations []string, begin bool, log *slog.Logger) (*install.Records, error) {
	if s.demo != "" {
		return nil, nil
	}
	r, err := install.RecordsOf(ctx, s.Store, dir)
	if err != nil {
		return nil, install.OpenError(err)
	}
	if r == nil && begin {
		r = install.OpenRecords(s.Store, dir, &rules.Evidence{}, install.PollSeldom, log)
	}
	if r == nil {
		return nil, nil
	}
	if begin && s.shared {
		if err := r.Replica(ctx); err != nil {
			r.Close()
			return nil, err
		}
	}
	of := evidence.Attestations{Recorder: r.Recorder, Deviations: deviations}
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
