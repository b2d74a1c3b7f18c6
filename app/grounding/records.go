// SPDX-License-Identifier: Apache-2.0

package grounding

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/storage"
)

// records keep what an adapter accepts and refuses in the signed log of its store, and carry that on. What is accepted is
// recorded in the transaction that stores it, and a refusal soon after.
type records struct {
	log        *storage.Ledger
	seq        *sequence.Sequencer
	deviations string // loosenings by which attestations are accepted: the reason of their records
	say        *slog.Logger

	refusals chan *ledger.Event
	lost     atomic.Int64 // refusals that did not fit into the queue, not yet told in the log
	ending   chan struct{}
	written  chan struct{}      // closed when no refusal waits any more
	stop     context.CancelFunc // of seq
	stopped  chan struct{}
}

const (
	maxRefusals = 8192             // that wait
	maxGroup    = 1024             // of one transaction
	writeWait   = 5 * time.Second  // for one transaction
	writeRetry  = time.Second / 2  // between attempts while the store fails
	closeWait   = 10 * time.Second // for what is left when the adapter ends
)

var errNotReplica = errors.New("this database has a log, and its key is not here: give every replica the same " + local.KeyVar)

// record has an adapter over s record what it accepts and refuses. begin says to make a
// log where the store has none yet. A demonstration is not recorded.
func (s *groundStore) record(ctx context.Context, dir *state.Dir, o *ground.Options, deviations []string, begin bool, log *slog.Logger) (*records, error) {
	if s.demo != "" {
		return nil, nil
	}
	switch _, err := s.Ledger().Head(ctx); {
	case errors.Is(err, sequence.ErrNoLog) && !begin:
		return nil, nil
	case err != nil && !errors.Is(err, sequence.ErrNoLog):
		return nil, local.OpenError(err)
	}
	r, err := openRecords(s.Ledger(), dir, log)
	if err != nil {
		return nil, err
	}
	if begin && s.shared {
		err := r.seq.Ready(ctx)
		if errors.Is(err, sequence.ErrNoKey) {
			err = exit.With(exit.Config, fmt.Errorf("%w: %w", err, errNotReplica))
		} else if err != nil {
			err = local.OpenError(err)
		}
		if err != nil {
			r.Close()
			return nil, err
		}
	}
	r.deviations = strings.Join(deviations, "+")
	journal := o.Refused
	o.Evidence = r
	o.Refused = func(f ground.Refused) {
		r.refused(f)
		if journal != nil {
			journal(f)
		}
	}
	return r, nil
}

func openRecords(l *storage.Ledger, dir *state.Dir, log *slog.Logger) (*records, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	keys, err := local.Keyring(dir, nil)
	if err != nil {
		return nil, err
	}
	r := &records{log: l, say: log, refusals: make(chan *ledger.Event, maxRefusals), ending: make(chan struct{}), written: make(chan struct{}), stopped: make(chan struct{})}
	follower := index.NewFollower(l, log)
	r.seq = sequence.New(sequence.Options{Store: l, Origin: local.NewOrigin(), Log: log, Integrated: follower.Integrated, Chain: l.Chain(),
		Keys: keys, Seen: &sequence.Seen{Dir: dir}})
	ctx, stop := context.WithCancel(context.Background())
	follow, last := context.WithCancel(context.Background()) // ends when no record is added any more
	indexed := make(chan struct{})
	r.stop = stop
	go func() { defer close(indexed); follower.Follow(follow) }()
	go func() { defer close(r.stopped); r.seq.Run(ctx); last(); <-indexed }()
	go r.write()
	return r, nil
}

// Close writes what waits, and adds it to the log unless another process does. The store stays open.
func (r *records) Close() {
	if r == nil {
		return
	}
	close(r.ending)
	<-r.written
	r.stop()
	<-r.stopped
}

// Put implements ground.Evidence. A duplicate changes nothing, and has no record.
func (r *records) Put(batch []ground.Record, outcomes []ground.PutResult) (out [][]byte, err error) {
	for i := range outcomes {
		e := &ledger.Event{Kind: ledger.AttestationAccepted, Verdict: "added", Reason: r.deviations, Rule: validatorRule(batch[i].Validator),
			Subjects: []ledger.Subject{{Role: ledger.Record, Digest: ledger.Digest(batch[i].Hash)}, subjectBy(batch[i].Validator)}}
		switch outcomes[i].Disposition {
		case ground.Duplicate:
			continue
		case ground.Renewed:
			e.Verdict = "renewed"
		}
		record, err := seal(e)
		if err != nil {
			return nil, err
		}
		out = append(out, record)
	}
	return out, nil
}

// Apply implements ground.Evidence.
func (r *records) Apply(ev ground.Cascade) ([]byte, error) {
	verdict := "retracted"
	if ev.Kind == ground.Reverse {
		verdict = "reversed"
	}
	return seal(&ledger.Event{Kind: ledger.AttestationEvent, Verdict: verdict, Rule: validatorRule(ev.Against),
		Subjects: []ledger.Subject{{Role: ledger.Record, Digest: ledger.Digest(ev.Hash)}}})
}

// refused records what the adapter did not accept, without waiting.
func (r *records) refused(f ground.Refused) {
	e := &ledger.Event{Kind: ledger.AttestationRefused, Time: f.At, Reason: string(f.Receipt.Code)}
	if f.Validator != "" {
		e.Rule, e.Reason = validatorRule(f.Validator), standing.Refused(e.Reason)
	}
	if h, ok := attest.ParseHash(f.Digest); ok {
		e.Subjects = append(e.Subjects, ledger.Subject{Role: ledger.Received, Digest: ledger.Digest(h)})
	}
	if f.Submitter != "" {
		e.Subjects = append(e.Subjects, subjectBy(f.Submitter))
	}
	select {
	case r.refusals <- e:
	default:
		r.lost.Add(1)
	}
}

// write records refusals in groups, each in one transaction, until Close.
func (r *records) write() {
	defer close(r.written)
	for {
		select {
		case first := <-r.refusals:
			r.store(r.group(first))
		case <-r.ending:
			for len(r.refusals) > 0 {
				r.store(r.group(<-r.refusals))
			}
			return
		}
	}
}

// group returns the records of first and of the refusals that wait behind it.
func (r *records) group(first *ledger.Event) (out [][]byte) {
	events := []*ledger.Event{first}
	for len(events) < maxGroup && len(r.refusals) > 0 {
		events = append(events, <-r.refusals)
	}
	if n := r.lost.Swap(0); n > 0 {
		events = append(events, &ledger.Event{Kind: ledger.RecordsLost, Reason: "not-written", Numbers: []ledger.Number{{Name: "lost", N: n}}})
	}
	for _, e := range events {
		record, err := seal(e)
		if err != nil {
			r.say.Error("a refusal cannot be recorded", "error", err)
			continue
		}
		out = append(out, record)
	}
	return out
}

// store adds records to the log, again until that succeeds or Close has waited long enough.
func (r *records) store(list [][]byte) {
	var end <-chan time.Time
	for ending := (<-chan struct{})(r.ending); ; {
		ctx, stop := context.WithTimeout(context.Background(), writeWait)
		err := r.log.Add(ctx, list)
		stop()
		if err == nil {
			r.seq.Wake()
			return
		}
		r.say.Error("refusals cannot be written to the log: they are tried again", "records", len(list), "error", err)
		select {
		case <-time.After(writeRetry):
		case <-ending:
			ending, end = nil, time.After(closeWait)
		case <-end:
			return
		}
	}
}

// seal makes the record of an event.
func seal(e *ledger.Event) ([]byte, error) {
	var salt ledger.Salt
	rand.Read(salt[:]) // never fails
	rand.Read(e.ID[:])
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	sealed, err := e.Seal(salt)
	if err != nil {
		return nil, err
	}
	return sealed.Bytes(), nil
}

// validatorRule names a validator whose signature was verified.
func validatorRule(did string) string {
	if did == "" {
		return ""
	}
	return standing.Validator + standing.ValidatorName(did)
}

// subjectBy is the digest of a name, which never stands in a record itself.
func subjectBy(name string) ledger.Subject {
	return ledger.Subject{Role: ledger.By, Digest: sha256.Sum256([]byte(name))}
}
