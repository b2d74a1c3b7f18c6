// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/evidence"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/record/witness"
	"github.com/pellucid-mcp/pellucid/storage"
)

// Records keep what a process decides in the ledger of its store, and carry that on.
type Records struct {
	*evidence.Recorder
	Log  *storage.Ledger
	Seq  *sequence.Sequencer
	Stop context.CancelFunc
	Done chan struct{}
	say  *slog.Logger

	unwritten *unwrittenFile

	store   *storage.Store
	rules   *rules.Evidence
	missing atomic.Bool // commits wait for a synchronous standby, and none is there

	Witnesses *witness.Sender // cosign the checkpoints; nil: none are configured
}

// How often a process looks for what others have stored: a gateway for the verbs that
// people use beside it, others for what a process that died has left.
const (
	PollOften  = 300 * time.Millisecond
	PollSeldom = 5 * time.Second
)

// OpenRecords opens the records of the store: it writes events into the log as the rules say, and
// looks every poll for records that other processes have stored.
func OpenRecords(s *storage.Store, dir *state.Dir, e *rules.Evidence, poll time.Duration, log *slog.Logger) *Records {
	return OpenFollowed(s, dir, e, poll, log, nil)
}

// OpenFollowed is OpenRecords with a function that gets the records which were added to the log.
func OpenFollowed(s *storage.Store, dir *state.Dir, e *rules.Evidence, poll time.Duration, log *slog.Logger, integrated func([]sequence.Entry)) *Records {
	r := &Records{Log: s.Ledger(), say: log, Done: make(chan struct{}), store: s, rules: e}
	keys, err := local.Keyring(dir, e.Signer())
	if err != nil {
		log.Error("the keys of the log cannot be read: only those of the state directory are used", "error", err)
		keys = &sequence.Keyring{Dir: dir, Given: e.Signer()}
	}
	pub, err := newPublisher(r.Log, e, func(ctx context.Context, why sequence.Stop) error { return r.Seq.Object(ctx, why) }, log)
	if err != nil {
		log.Error("the log is not published", "error", err) // cannot be: the rules were compiled
	}
	r.Witnesses = pub.witness
	follower := index.NewFollower(r.Log, log)
	added := follower.Integrated
	if integrated != nil {
		added = func(entries []sequence.Entry) { follower.Integrated(entries); integrated(entries) }
	}
	r.Seq = sequence.New(sequence.Options{Store: r.Log, Origin: cmp.Or(e.Origin, local.NewOrigin()), Poll: poll, Log: log, Integrated: added, Chain: r.Log.Chain(),
		Keys: keys, Seen: &sequence.Seen{Dir: dir}, Ask: pub.ask, Published: pub.published})
	var marks []byte
	if ring, err := local.Ring(dir); err == nil { // else its owner has not started
		marks = ring.Current().Derive("trust marks")
	}
	r.unwritten = newUnwritten(dir, r.Log)
	r.Recorder = evidence.New(evidence.Options{Unwritten: r.unwritten.setWaiting, Store: r.Log, Direct: r.Seq, BestEffort: e.Mode != rules.Required, MarkKey: marks, Wake: r.Seq.Wake, Log: log})
	ctx, stop := context.WithCancel(context.Background())
	r.Stop = stop
	r.recordKilled(ctx, dir)
	published := pub.run(ctx)
	if e.Mode == rules.Required {
		go r.watchStandbys(ctx)
	}
	follow, last := context.WithCancel(context.Background()) // ends when no record is added any more
	indexed := make(chan struct{})
	go func() { defer close(indexed); follower.Follow(follow) }()
	go func() { defer close(r.Done); r.Seq.Run(ctx); published(); last(); <-indexed }()
	return r
}

// SameKey says how replicas get one key of the log.
const SameKey = `give every replica the same key, in one of two ways:
  - set ` + local.KeyVar + ` to the same value at every replica. For a log that has begun without it, also run
    "pellucid keys rotate --log" once, with ` + local.KeyVar + ` set, on the machine that has the present key.
  - set evidence.key to the same env:NAME or file:PATH reference at every replica ("pellucid keys new ledger" makes a key)`

var errNotReplica = errors.New("this database has a log, and its key is not here: this replica could not carry the log on: " + SameKey)

// Replica refuses a process that shares the database with others and could not carry the log on: the
// log would stand still once the process that has the key is gone. Where the store has no log yet, it begins one.
func (r *Records) Replica(ctx context.Context) error {
	err := r.Seq.Ready(ctx)
	if errors.Is(err, sequence.ErrNoKey) {
		return exit.With(exit.Config, fmt.Errorf("%w: %w", err, errNotReplica))
	}
	if err != nil {
		return local.OpenError(err)
	}
	return r.standbys(ctx)
}

// Close writes what waits, and adds it to the log unless another process does. The store stays open.
func (r *Records) Close() {
	if r == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), CloseWait)
	defer stop()
	n := r.Recorder.Close(ctx)
	if n > 0 {
		r.say.Error("events could not be recorded before the process ended", "events", n)
	}
	r.unwritten.closeFile(n > 0)
	r.Stop()
	<-r.Done
}

// Waiting is how many records are not yet part of the log.
func (r *Records) Waiting() int64 {
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	n, err := r.Log.Waiting(ctx, 100_000)
	if err != nil {
		return 0
	}
	return int64(n + r.Figures().Queued)
}

// RecordsOf are those of a verb that changes what a store holds: nil where the store
// has no log, since evidence is off.
func RecordsOf(ctx context.Context, s *storage.Store, dir *state.Dir) (*Records, error) {
	switch _, err := s.Ledger().Head(ctx); {
	case errors.Is(err, sequence.ErrNoLog):
		return nil, nil
	case err != nil:
		return nil, err
	}
	// It is no fault that the key is elsewhere: the process that has it adds the records.
	return OpenRecords(s, dir, &rules.Evidence{}, PollSeldom, slog.New(slog.DiscardHandler)), nil
}

// CloseWait bounds the work that is left once every request has its answer.
const CloseWait = 10 * time.Second

// Signer is the key of the log that the rules give; nil: that of the installation.
func (r *Records) Signer() *ledger.Signer { return r.rules.Signer() }
