// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"

	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/record/captures"
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

// WithReview calls do with the queue of held results, and with what opens what is kept beside them: the
// captures of the store and the keys of the installation.
func (d Database) WithReview(do func(context.Context, *hold.Queue, captures.Store, *capture.Sealer) error) error {
	return d.With(func(ctx context.Context, s *storage.Store, kept *Records) error {
		var o hold.Options
		if kept != nil {
			o.Evidence = kept.Held
		}
		by, err := Opener()
		if err != nil {
			return err
		}
		return do(ctx, hold.New(s, o), s, by)
	})
}

// Opener opens what is sealed with the keys of this installation.
func Opener() (*capture.Sealer, error) {
	dir, err := Open()
	if err != nil {
		return nil, err
	}
	ring, err := Ring(dir)
	if err != nil {
		return nil, err
	}
	return &capture.Sealer{Keys: ring}, nil
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

// WithExceptions calls do with the exceptions that reviewers grant, and with the queue of the same store. What
// do decides goes into the log, where there is one.
func (d Database) WithExceptions(do func(context.Context, *hold.Exceptions, *hold.Queue) error) error {
	return d.With(func(ctx context.Context, s *storage.Store, kept *Records) error {
		var o hold.ExceptionOptions
		var q hold.Options
		if kept != nil {
			o.Evidence, q.Evidence = kept.Exception, kept.Held
		}
		return do(ctx, hold.NewExceptions(s, o), hold.New(s, q))
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
