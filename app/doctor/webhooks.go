// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"io/fs"

	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// webhooks checks that people are told in time: messages arrive, and the queue has room.
func (x *examiner) webhooks(ctx context.Context, cfg *rules.Rules) {
	for _, where := range x.stores {
		x.undelivered(ctx, where, cfg)
	}
}

func (x *examiner) undelivered(ctx context.Context, where string, cfg *rules.Rules) {
	ctx, stop := context.WithTimeout(ctx, maxWait)
	defer stop()
	s := openCurrent(ctx, where)
	if s == nil {
		return
	}
	defer s.Close()
	if full, err := hold.New(s, hold.Options{}).FullShares(ctx); err == nil {
		for _, t := range full {
			x.report.add("queue", Warning, "%s", t)
		}
	}
	all, err := s.MessageSummaries(ctx)
	if err != nil {
		return // the check of the store has said why
	}
	for _, m := range all {
		name := finding.Quote(m.Receiver)
		switch known := cfg == nil || cfg.Webhooks[m.Receiver] != nil; {
		case !known && m.Waiting > 0:
			x.report.add("webhooks", Warning, "%s: %s for it, which the configuration does not name: they are given up after three days",
				name, terminal.Plural(int(m.Waiting), "message"))
		case m.Failing > 0 || m.GivenUp > 0:
			x.report.add("webhooks", Warning, "%s: %s not delivered, %d given up: pellucid webhooks says why",
				name, terminal.Plural(int(m.Failing), "message"), m.GivenUp)
		case known && m.Waiting > 0:
			x.report.add("webhooks", OK, "%s: %s on the way", name, terminal.Plural(int(m.Waiting), "message"))
		}
	}
}

// openCurrent opens a store that is of this release: opening another would change it. nil: it is
// not there, or is of another release.
func openCurrent(ctx context.Context, where string) *storage.Store {
	if schema, err := storage.Inspect(ctx, where); err != nil || schema.Current != schema.Known {
		return nil
	}
	s, err := local.OpenStore(ctx, where, storage.Options{}, func() error { return fs.ErrNotExist })
	if err != nil {
		return nil
	}
	return s
}
