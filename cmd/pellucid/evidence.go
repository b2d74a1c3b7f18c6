// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/evidence"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// records keep what a process decides in the ledger of its store, and carry that on.
type records struct {
	*evidence.Recorder
	log  *storage.Ledger
	seq  *sequence.Sequencer
	stop context.CancelFunc
	done chan struct{}
	say  *slog.Logger
}

// How often a process looks for what others have stored: a gateway for the verbs that
// people use beside it, others for what a process that died has left.
const (
	pollOften  = 300 * time.Millisecond
	pollSeldom = 5 * time.Second
)

func openRecords(s *storage.Store, dir *state.Dir, e *rules.Evidence, poll time.Duration, log *slog.Logger) *records {
	return openFollowed(s, dir, e, poll, log, nil)
}

// openFollowed is openRecords with somebody who is told of what is integrated.
func openFollowed(s *storage.Store, dir *state.Dir, e *rules.Evidence, poll time.Duration, log *slog.Logger, integrated func([]sequence.Entry)) *records {
	r := &records{log: s.Ledger(), say: log, done: make(chan struct{})}
	r.seq = sequence.New(sequence.Options{Store: r.log, Origin: originOf(e.Origin), Poll: poll, Log: log, Integrated: integrated, Chain: r.log.Chain(),
		Keys: &sequence.Keyring{Dir: dir, Given: e.Signer()}})
	r.Recorder = evidence.New(evidence.Options{Store: r.log, Direct: r.seq, BestEffort: e.Mode != rules.Required, Wake: r.seq.Wake, Log: log})
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() { defer close(r.done); r.seq.Run(ctx) }()
	return r
}

// originOf is the name of a log that is yet to begin: nobody else's.
func originOf(configured string) string {
	if configured != "" {
		return configured
	}
	var b [8]byte
	rand.Read(b[:]) // never fails
	return "pellucid/" + hex.EncodeToString(b[:])
}

// close writes what waits, and integrates it if nobody else does. The store stays open.
func (r *records) close() {
	if r == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), closeWait)
	defer stop()
	if n := r.Recorder.Close(ctx); n > 0 {
		r.say.Error("events are not recorded", "events", n)
	}
	r.stop()
	<-r.done
}

// waiting is how many records are not yet part of the log.
func (r *records) waiting() int64 {
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	n, err := r.log.Waiting(ctx, 100_000)
	if err != nil {
		return 0
	}
	return int64(n + r.Figures().Queued)
}

// recordsOf are those of a verb that changes what a store holds: nil where the store
// has no log, since evidence is off.
func recordsOf(ctx context.Context, s *storage.Store, dir *state.Dir) (*records, error) {
	switch _, err := s.Ledger().Head(ctx); {
	case errors.Is(err, sequence.ErrNoLog):
		return nil, nil
	case err != nil:
		return nil, err
	}
	// That the key may be elsewhere is no news: whoever has it carries the log on.
	return openRecords(s, dir, &rules.Evidence{}, pollSeldom, slog.New(slog.DiscardHandler)), nil
}

// closeWait bounds what is left to do once everybody has been answered.
const closeWait = 10 * time.Second
