// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"

	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/record/captures"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
)

// A Review holds the stores in which a reviewer decides.
type Review struct {
	Queue      *hold.Queue
	Approvals  *hold.Approvals
	Exceptions *hold.Exceptions
	Blocks     *hold.Blocks
	Captures   captures.Store
}

// WithReview calls do with the review of the database. Decisions go into the log, if the database has one.
func (d Database) WithReview(do func(context.Context, *Review) error) error {
	return d.With(func(ctx context.Context, s *storage.Store, kept *Records) error {
		var (
			items      hold.Options
			approvals  hold.ApprovalOptions
			exceptions hold.ExceptionOptions
			blocks     hold.BlockOptions
		)
		if kept != nil {
			items.Evidence, approvals.Evidence, exceptions.Evidence, blocks.Evidence = kept.Held, kept.Approval, kept.Exception, kept.Block
		}
		return do(ctx, &Review{hold.New(s, items), hold.NewApprovals(s.Approvals(), approvals), hold.NewExceptions(s.Exceptions(), exceptions), hold.NewBlocks(s.Blocks(), blocks), s})
	})
}

// Opener opens what is sealed with the keys of this installation.
func Opener() (*capture.Sealer, error) {
	dir, err := local.OpenState()
	if err != nil {
		return nil, err
	}
	ring, err := local.Ring(dir)
	if err != nil {
		return nil, err
	}
	return &capture.Sealer{Keys: ring}, nil
}
