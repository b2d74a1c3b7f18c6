// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/bucket"
	"github.com/pellucid-mcp/pellucid/platform/kms"
	"github.com/pellucid-mcp/pellucid/platform/sigv4"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/mirror"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/record/witness"
	"github.com/pellucid-mcp/pellucid/storage"
)

// unwrapWait bounds how long a start waits for the service that unwraps the key of the log.
const unwrapWait = 30 * time.Second

// Unwrap has AWS KMS decrypt the private key of the log, where the rules say so. It is asked once, and
// no record needs it.
func Unwrap(ctx context.Context, e *rules.Evidence) error {
	if e.KMS == nil || e.Signer() != nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, unwrapWait)
	defer stop()
	c, err := kms.New(e.KMS.URL, awsSigner(&e.KMS.AWSKeys))
	if err != nil {
		return exit.With(exit.Config, err)
	}
	secret, err := c.Decrypt(ctx, e.KMS.Key.Reveal())
	switch {
	case errors.Is(err, kms.ErrAway), errors.Is(err, kms.ErrThrottled):
		return exit.With(exit.Unreachable, fmt.Errorf("evidence: the key of the log cannot be unwrapped: %w", err))
	case err != nil:
		return exit.With(exit.Config, fmt.Errorf("evidence: the key of the log cannot be unwrapped: %w", err))
	}
	if err := e.Unwrapped(strings.TrimSpace(string(secret))); err != nil {
		return exit.With(exit.Config, fmt.Errorf("evidence: what AWS KMS has unwrapped: %w", err))
	}
	return nil
}

func awsSigner(k *rules.AWSKeys) *sigv4.Signer {
	read := func(v rules.Value) sigv4.Secret { return func() (string, error) { return k.Read(v) } }
	out := &sigv4.Signer{Region: k.Region, Access: read(k.AccessKey), Secret: read(k.SecretKey)}
	if k.SessionToken.Reveal() != "" {
		out.Session = read(k.SessionToken)
	}
	return out
}

// A publisher has witnesses cosign the checkpoints of a log, and copies it to a mirror.
type publisher struct {
	log     *storage.Ledger
	keys    sequence.Keys
	witness *witness.Sender // nil: none are configured
	mirror  *mirror.Mirror  // nil: none is configured
}

// newPublisher makes what the rules name. object stops the log where it contradicts what was seen.
func newPublisher(l *storage.Ledger, keys sequence.Keys, e *rules.Evidence, object func(context.Context, sequence.Stop) error, log *slog.Logger) (*publisher, error) {
	p := &publisher{log: l, keys: keys}
	stop := func(ctx context.Context, why sequence.Stop) {
		if err := object(ctx, why); err != nil {
			log.Error("the database has lost a part of the log", "seen by", string(why.Reason), "error", err)
		}
	}
	var err error
	if w := e.Witnesses; w != nil {
		p.witness, err = witness.NewSender(witness.Options{Policy: w.Parsed(), Source: l, Every: w.Every, Log: log,
			Save: func(ctx context.Context, msg []byte) error { return l.SaveCosigned(ctx, msg, time.Now()) },
			Ahead: func(ctx context.Context, size int64) {
				stop(ctx, sequence.Stop{Reason: sequence.SeenByWitness, Size: size})
			}})
		if err != nil {
			return nil, err
		}
	}
	if m := e.Mirror; m != nil {
		p.mirror, err = NewMirror(l, keys, m, log, func(ctx context.Context, msg []byte) {
			stop(ctx, sequence.Stop{Reason: sequence.SeenInMirror, Size: ledger.CheckpointSize(msg), Checkpoint: msg})
		})
	}
	return p, err
}

// Stale is how long readers are shown a cosigned checkpoint while the log is ahead of it.
const Stale = time.Minute

// NewMirror makes the mirror that the rules name.
func NewMirror(l *storage.Ledger, keys sequence.Keys, m *rules.Mirror, log *slog.Logger, seen func(context.Context, []byte)) (*mirror.Mirror, error) {
	var target mirror.Target = mirror.Dir(m.Path)
	if m.URL != "" {
		b, err := bucket.New(m.URL, awsSigner(&m.AWSKeys))
		if err != nil {
			return nil, err
		}
		target = b
	}
	return mirror.New(mirror.Options{Source: l.Published(Stale), Target: target, Every: m.Every, Log: log, Seen: seen,
		Keys: func(ctx context.Context) ([]*ledger.Key, error) { return l.Keys(ctx) }}), nil
}

// ask asks witnesses and the mirror, before this process first adds to a copy of the log that it does
// not know, whether they have seen a larger log. What cannot be reached in time is not waited for.
func (p *publisher) ask(ctx context.Context, head sequence.Head) *sequence.Stop {
	ctx, stop := context.WithTimeout(ctx, askWait)
	defer stop()
	found := make(chan *sequence.Stop, 2)
	asked := 0
	if p.witness != nil {
		asked++
		go func() {
			if size := p.witness.Ask(ctx, head.Checkpoint); size > head.Size {
				found <- &sequence.Stop{Reason: sequence.SeenByWitness, Size: size}
				return
			}
			found <- nil
		}()
	}
	if p.mirror != nil {
		asked++
		go func() {
			msg, _, c, err := p.mirror.Latest(ctx)
			if err == nil && msg != nil && c.Origin == head.Origin {
				found <- &sequence.Stop{Reason: sequence.SeenInMirror, Size: c.Size, Checkpoint: msg} // the log is compared with it
				return
			}
			found <- nil
		}()
	}
	var out *sequence.Stop
	for range asked {
		if why := <-found; why != nil && (out == nil || why.Size > out.Size) {
			out = why
		}
	}
	if out == nil || out.Reason == sequence.SeenByWitness {
		return out
	}
	if wrong, err := contradictedBy(ctx, p.log, head, out.Checkpoint); err != nil || !wrong {
		return nil
	}
	return out
}

func contradictedBy(ctx context.Context, l *storage.Ledger, head sequence.Head, msg []byte) (bool, error) {
	c, err := ledger.UnverifiedCheckpoint(msg) // its signature was checked
	if err != nil {
		return false, err
	}
	return sequence.Contradicts(ctx, l, head, c)
}

// askWait bounds how long a process waits for witnesses and the mirror before it goes on.
const askWait = 2 * time.Second

// run publishes until ctx ends. It begins with the log as it is.
func (p *publisher) run(ctx context.Context) (wait func()) {
	done := make(chan struct{}, 2)
	n := 0
	if p.witness != nil {
		if msg, err := p.log.Checkpoint(ctx); err == nil {
			p.witness.Offer(msg)
		}
		n++
		go func() { p.witness.Run(ctx); done <- struct{}{} }()
	}
	if p.mirror != nil {
		n++
		go func() { p.mirror.Run(ctx); done <- struct{}{} }()
	}
	return func() {
		for range n {
			<-done
		}
	}
}

// published is told of every checkpoint that this process has signed.
func (p *publisher) published(msg []byte) {
	if p.witness != nil {
		p.witness.Offer(msg)
	}
}
