// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
)

// WithQueue calls do with the queue of held results. What do decides goes into the log, where
// there is one.
func (d Database) WithQueue(do func(context.Context, *hold.Queue) error) error {
	return d.With(func(ctx context.Context, s *storage.Store, kept *Records) error {
		var o hold.Options
		if kept != nil {
			o.Evidence = kept.Held
		}
		return do(ctx, hold.New(s, o))
	})
}

// WithBlocks calls do with the blocked sources. What do decides goes into the log, where there
// is one.
func (d Database) WithBlocks(do func(context.Context, *hold.Blocks) error) error {
	return d.With(func(ctx context.Context, s *storage.Store, kept *Records) error {
		var o hold.BlockOptions
		if kept != nil {
			o.Evidence = kept.Block
		}
		return do(ctx, hold.NewBlocks(s, o))
	})
}

// WithApprovals calls do with the approvals of calls, and with the queue of the same store. What
// do decides goes into the log, where there is one.
func (d Database) WithApprovals(do func(context.Context, *hold.Approvals, *hold.Queue) error) error {
	return d.With(func(ctx context.Context, s *storage.Store, kept *Records) error {
		var o hold.ApprovalOptions
		var q hold.Options
		if kept != nil {
			o.Evidence, q.Evidence = kept.Approval, kept.Held
		}
		return do(ctx, hold.NewApprovals(s, o), hold.New(s, q))
	})
}
