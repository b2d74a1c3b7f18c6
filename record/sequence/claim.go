// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// lookEvery is how often a process looks at a log that it does not carry on: whether the log still
// contains what this process has seen of it, and whether the key is here.
const lookEvery = time.Second

// Ready makes the log, if this process may begin it, and reports ErrNoKey where this process cannot
// carry it on. It returns nil for a log that another process has yet to begin.
func (s *Sequencer) Ready(ctx context.Context) error {
	head, err := s.o.Store.Head(ctx)
	if errors.Is(err, ErrNoLog) {
		if s.o.Origin == "" {
			return nil
		}
		head, err = s.begin(ctx)
	}
	if err == nil {
		_, err = s.o.Keys.Find(head.Origin, head.Signer)
	}
	return err
}

// look reads the head of the log, and stops the log where it is not the continuation of what was seen
// of it. The lease is not ours.
func (s *Sequencer) look(ctx context.Context) (Head, error) {
	now := s.o.Now()
	head, err := s.o.Store.Head(ctx)
	if err != nil {
		return head, err
	}
	if head.Size != s.size.Swap(head.Size) {
		s.moved.Store(now.UnixNano())
	}
	_, err = s.o.Keys.Find(head.Origin, head.Signer)
	s.keyless.Store(errors.Is(err, ErrNoKey))
	if s.stop.Store(head.Stop); head.Stop != nil {
		return head, ErrStopped
	}
	epoch, err := s.o.Store.Epoch(ctx)
	if err != nil {
		return head, err
	}
	if epoch != s.epoch {
		s.epoch, s.asked = epoch, false
		if head.Size > 0 {
			s.after = now.Add(s.o.Window)
		}
	}
	if c, err := ledger.UnverifiedCheckpoint(head.Checkpoint); head.Checkpoint != nil && (err != nil || c.Size != head.Size) {
		return head, ErrStored // a checkpoint that does not fit its own log is not remembered
	}
	was, seen, err := s.o.Seen.Largest(head.Origin)
	if err != nil {
		return head, err
	}
	wrong, err := Contradicts(ctx, s.o.Store, head, seen)
	if err == nil && wrong { // another process of the state directory may have added to the log since head was read
		if head, err = s.o.Store.Head(ctx); err == nil {
			wrong, err = Contradicts(ctx, s.o.Store, head, seen)
		}
	}
	if err != nil {
		return head, err
	}
	if wrong {
		return head, s.halt(ctx, Stop{Reason: SeenHere, Size: seen.Size, Checkpoint: was})
	}
	if head.Checkpoint != nil {
		err = s.o.Seen.note(head.Checkpoint, now)
	}
	s.looked = now
	return head, err
}

// halt stops the log for every process.
func (s *Sequencer) halt(ctx context.Context, why Stop) error {
	why.At = s.o.Now()
	if err := s.o.Store.Halt(ctx, why); err != nil {
		return errors.Join(ErrStopped, err)
	}
	s.stop.Store(&why)
	return ErrStopped
}

// Object stops the log where a witness has seen a larger log than the store has. It looks at the log
// as it is now: another process may have added to it.
func (s *Sequencer) Object(ctx context.Context, why Stop) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	return s.object(ctx, why)
}

func (s *Sequencer) object(ctx context.Context, why Stop) error {
	s.drop() // what the store has counts, not what this process knows
	head, err := s.o.Store.Head(ctx)
	if err != nil || head.Size >= why.Size {
		return err
	}
	return s.halt(ctx, why)
}

// claim takes the lease if no process has it, or if its holder seems to have ended. force
// takes it in any case. This is safe: the holder only loses the batch that it is about to add.
func (s *Sequencer) claim(ctx context.Context, force bool) (ours bool, err error) {
	head, err := s.look(ctx)
	if errors.Is(err, ErrNoLog) {
		if _, err = s.begin(ctx); err == nil {
			head, err = s.look(ctx)
		}
	}
	if err != nil {
		return false, err
	}
	s.seen = head
	if !force && head.Lease.Holder != "" && head.Lease.Holder != s.holder && !s.watch.Stopped(head.Lease) {
		return false, nil
	}
	key, err := s.o.Keys.Find(head.Origin, head.Signer)
	if err != nil {
		return false, err
	}
	if wait := s.after.Sub(s.o.Now()); wait > 0 {
		if force {
			return false, backoff.Sleep(ctx, wait)
		}
		return false, nil
	}
	if !s.asked && s.o.Ask != nil && head.Size > 0 {
		if why := s.o.Ask(ctx, head); why != nil {
			return false, s.object(ctx, *why)
		}
	}
	s.asked = true
	tree, err := s.open(ctx, head, key)
	if err != nil {
		return false, err
	}
	held, err := s.o.Store.Claim(ctx, s.holder, head)
	switch {
	case errors.Is(err, ErrLost):
		return false, nil
	case err != nil:
		return false, err
	case held.Size != head.Size || held.Signer != head.Signer:
		return false, nil // cannot be: the beat is checked
	}
	s.held, s.tree, s.key, s.slow = &held, tree, key, true // what a holder before us has failed with may be in the log
	return true, nil
}

// begin makes the log, or finds that another process has.
func (s *Sequencer) begin(ctx context.Context) (Head, error) {
	if s.o.Origin == "" {
		return Head{}, ErrNoLog // a process that knows the name of the log begins it
	}
	key, err := s.o.Keys.First(s.o.Origin)
	if err != nil {
		return Head{}, err
	}
	if err := s.o.Store.Begin(ctx, key.Name(), key.Key().ID()); err != nil {
		return Head{}, err
	}
	return s.o.Store.Head(ctx)
}

// open reads the right edge of the log, and checks it.
func (s *Sequencer) open(ctx context.Context, head Head, key *ledger.Signer) (*ledger.Tree, error) {
	tree, err := ledger.OpenTree(head.Size, func(level int, n int64, width int) ([]byte, error) {
		return s.o.Store.Tile(ctx, level, n, width)
	})
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, ErrStored
	}
	if err != nil || head.Size == 0 {
		return tree, err
	}
	c, err := ledger.OpenCheckpoint(head.Checkpoint, []*ledger.Key{key.Key()}, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStored, err)
	}
	if c.Size != head.Size || c.Root != tree.Root() {
		return nil, ErrStored
	}
	return tree, nil
}
