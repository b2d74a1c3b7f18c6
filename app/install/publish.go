// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"log/slog"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/record/witness"
	"github.com/pellucid-mcp/pellucid/storage"
)

// Stale is how long readers are shown a cosigned checkpoint while the log is ahead of it.
const Stale = time.Minute

// askWait bounds how long a process waits for witnesses before it goes on.
const askWait = 2 * time.Second

// A publisher has witnesses cosign the checkpoints of a log.
type publisher struct {
	log     *storage.Ledger
	witness *witness.Sender // nil: none are configured
}

// newPublisher makes what the rules name. object stops the log where it contradicts what was seen.
func newPublisher(l *storage.Ledger, e *rules.Evidence, object func(context.Context, sequence.Stop) error, log *slog.Logger) (*publisher, error) {
	p := &publisher{log: l}
	w := e.Witnesses
	if w == nil {
		return p, nil
	}
	var err error
	p.witness, err = witness.NewSender(witness.Options{Policy: w.Parsed(), Source: l, Every: w.Every, Log: log,
		Save: func(ctx context.Context, msg []byte) error { return l.SaveCosigned(ctx, msg, time.Now()) },
		Ahead: func(ctx context.Context, size int64) {
			if err := object(ctx, sequence.Stop{Reason: sequence.SeenByWitness, Size: size}); err != nil {
				log.Error("the database has lost a part of the log", "seen by", string(sequence.SeenByWitness), "error", err)
			}
		}})
	return p, err
}

// ask asks witnesses, before this process first adds to a copy of the log that it does not know, whether
// they have seen a larger log. What cannot be reached in time is not waited for.
func (p *publisher) ask(ctx context.Context, head sequence.Head) *sequence.Stop {
	if p.witness == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, askWait)
	defer stop()
	if size := p.witness.Ask(ctx, head.Checkpoint); size > head.Size {
		return &sequence.Stop{Reason: sequence.SeenByWitness, Size: size}
	}
	return nil
}

// run publishes until ctx ends. It begins with the log as it is.
func (p *publisher) run(ctx context.Context) (wait func()) {
	if p.witness == nil {
		return func() {}
	}
	if msg, err := p.log.Checkpoint(ctx); err == nil {
		p.witness.Offer(msg)
	}
	done := make(chan struct{})
	go func() { defer close(done); p.witness.Run(ctx) }()
	return func() { <-done }
}

// published is told of every checkpoint that this process has signed.
func (p *publisher) published(msg []byte) {
	if p.witness != nil {
		p.witness.Offer(msg)
	}
}
