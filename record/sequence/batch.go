// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// integrate signs n records and carries the log on with them. done are the numbers under
// which they wait, if they do. record may be called at the same time. The lease is ours.
func (s *Sequencer) integrate(ctx context.Context, done []int64, links []Link, n int, record func(i int) (ledger.Sealed, error)) error {
	b := &Batch{Signer: s.held.Signer, Done: done}
	var known map[ledger.ID]int64
	signed, err := s.sign(n, record)
	if err == nil {
		known, err = s.known(ctx, signed)
	}
	if err != nil {
		return err
	}
	if s.held.Size == 0 {
		if err := s.own(b, s.installed(s.key.Key())); err != nil {
			return err
		}
	}
	broken := int64(0)
	for i, e := range signed {
		if e.Envelope == nil {
			broken++
			continue
		}
		index, there := known[e.ID]
		if !there {
			index = s.held.Size + int64(len(b.Entries))
			known[e.ID] = index
			b.Entries = append(b.Entries, e)
		}
		if links != nil && links[i].Writer != "" {
			b.Links = append(b.Links, Linked{links[i], index})
		}
	}
	if broken > 0 {
		s.o.Log.Error("waiting records cannot be read, or were changed in the store: the log records their loss", "records", broken)
		lost := &ledger.Event{Kind: ledger.RecordsLost, Reason: "unreadable", Numbers: []ledger.Number{{Name: "lost", N: broken}}}
		if err := s.own(b, lost); err != nil {
			return err
		}
	}
	return s.commit(ctx, b, s.key)
}

// integrateWaiting is integrate of what the store has.
func (s *Sequencer) integrateWaiting(ctx context.Context, waiting []Pending) error {
	inOrder(waiting)
	done, links := make([]int64, len(waiting)), make([]Link, len(waiting))
	for i := range waiting {
		done[i], links[i] = waiting[i].Seq, waiting[i].Link
	}
	return s.integrate(ctx, done, links, len(waiting), func(i int) (ledger.Sealed, error) {
		if !s.o.Chain.Intact(&waiting[i]) {
			return ledger.Sealed{}, errAltered // a signature would make it genuine
		}
		return ledger.ReadSealed(waiting[i].Record)
	})
}

// sign makes entries, yet without an index, of n records. The Envelope of one that
// cannot be read is nil: it must not keep the others waiting for ever.
func (s *Sequencer) sign(n int, record func(i int) (ledger.Sealed, error)) ([]Entry, error) {
	signed := make([]Entry, n)
	err := spread(n, func(i int) error {
		sealed, err := record(i)
		if err == nil {
			signed[i], err = s.entry(sealed)
		}
		if errors.Is(err, errSign) {
			return err
		}
		return nil
	})
	return signed, err
}

var errAltered = errors.New("sequence: a record that waits is not what its writer has stored")

var errSign = errors.New("sequence: sign")

func (s *Sequencer) entry(sealed ledger.Sealed) (Entry, error) {
	envelope, err := ledger.Sign(sealed.Statement, s.key)
	if err != nil {
		return Entry{}, fmt.Errorf("%w: %w", errSign, err)
	}
	st := sealed.Parsed
	return Entry{ID: st.ID, Time: st.Time, Server: st.Server, Kind: st.Kind, Envelope: envelope, Opening: sealed.Opening, Statement: st}, nil
}

// known returns the records that the log has already. A batch may be added twice, because an
// error of the store did not say whether the first attempt was committed.
func (s *Sequencer) known(ctx context.Context, signed []Entry) (map[ledger.ID]int64, error) {
	if !s.slow || len(signed) == 0 {
		return map[ledger.ID]int64{}, nil // the log refuses one that it has: then it is looked for
	}
	ids := make([]ledger.ID, len(signed))
	for i := range signed {
		ids[i] = signed[i].ID
	}
	return s.o.Store.Known(ctx, ids)
}

// own adds a record of the sequencer itself.
func (s *Sequencer) own(b *Batch, e *ledger.Event) error {
	var salt ledger.Salt
	rand.Read(e.ID[:]) // never fails
	rand.Read(salt[:])
	e.Time = s.o.Now()
	sealed, err := e.Seal(salt)
	if err != nil {
		return err
	}
	entry, err := s.entry(sealed)
	if err == nil {
		b.Entries = append(b.Entries, entry)
	}
	return err
}

// installed is the event that from the next record on this key signs.
func (s *Sequencer) installed(k *ledger.Key) *ledger.Event {
	vkey := k.String()
	return &ledger.Event{Kind: ledger.KeyInstalled, Key: vkey,
		Subjects: []ledger.Subject{{Role: ledger.KeyRole, Digest: sha256.Sum256([]byte(vkey))}}}
}

// spread does work for every number below n, on as many processors as there are.
func spread(n int, work func(i int) error) error {
	workers := min(runtime.GOMAXPROCS(0), (n+31)/32)
	errs := make([]error, workers)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := w; i < n && errs[w] == nil; i += workers {
				errs[w] = work(i)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// commit numbers the entries, signs the new checkpoint and stores the batch.
func (s *Sequencer) commit(ctx context.Context, b *Batch, key *ledger.Signer, old ...*ledger.Signer) (err error) {
	leaves := make([]ledger.Hash, len(b.Entries))
	if err := spread(len(leaves), func(i int) error {
		b.Entries[i].Index = s.held.Size + int64(i)
		leaves[i] = ledger.LeafHash(b.Entries[i].Envelope)
		return nil
	}); err != nil {
		return err
	}
	b.Tiles = s.tree.Append(leaves)
	b.Checkpoint, err = ledger.SignCheckpoint(s.tree.Size(), s.tree.Root(), key, old...)
	if err != nil {
		return fmt.Errorf("sequence: sign the checkpoint: %w", err)
	}
	next, err := s.o.Store.Integrate(ctx, *s.held, b)
	if err != nil {
		return err
	}
	s.held = &next
	s.size.Store(next.Size)
	s.moved.Store(s.o.Now().UnixNano())
	s.integrated.Add(int64(len(b.Entries)))
	if err := s.o.Seen.note(b.Checkpoint, s.o.Now()); err != nil {
		s.o.Log.Warn("the latest checkpoint could not be written to the state directory", "error", err)
	}
	if s.o.Integrated != nil {
		s.o.Integrated(b.Entries)
	}
	if s.o.Published != nil {
		s.o.Published(b.Checkpoint)
	}
	return nil
}

// Rotate has another key sign from now on, and returns the index of the record that
// says so. It takes the lease, also from another process.
func (s *Sequencer) Rotate(ctx context.Context, next *ledger.Signer) (int64, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.unlock()
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if s.held == nil {
			if ours, err := s.claim(ctx, true); err != nil {
				return 0, err
			} else if !ours {
				continue
			}
		}
		index, err := s.rotate(ctx, next)
		s.key = next
		if err == nil {
			return index, s.release(ctx)
		}
		s.drop()
		if !errors.Is(err, ErrLost) {
			return 0, err
		}
	}
}

func (s *Sequencer) rotate(ctx context.Context, next *ledger.Signer) (int64, error) {
	old := s.key
	if next.Name() != old.Name() || next.Key().ID() == old.Key().ID() {
		return 0, errors.New("sequence: rotate: want another key under the origin of the log")
	}
	if s.held.Size == 0 {
		if err := s.integrate(ctx, nil, nil, 0, nil); err != nil {
			return 0, err
		}
	}
	b := &Batch{Signer: next.Key().ID()}
	if err := s.own(b, s.installed(next.Key())); err != nil {
		return 0, err
	}
	index := s.held.Size
	return index, s.commit(ctx, b, next, old)
}
