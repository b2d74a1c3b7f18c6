// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// Options are what a Sender is made of.
type Options struct {
	Policy *Policy
	Source ledger.Source // proves that the log has grown
	// Save keeps a checkpoint whose cosignatures are enough.
	Save func(ctx context.Context, checkpoint []byte) error
	// Ahead is told that a witness has signed a larger log. It may be nil.
	Ahead func(ctx context.Context, size int64)
	Every time.Duration // the least time between two checkpoints; 0 = 5 s
	Log   *slog.Logger  // nil: nothing is logged
}

// A Sender has witnesses cosign the checkpoints of a log. The log never waits for it.
type Sender struct {
	o       Options
	clients []*asked
	latest  atomic.Pointer[[]byte]
	wake    chan struct{}
	enough  atomic.Int64 // size of the latest checkpoint that enough witnesses have cosigned
}

// An asked is a client that one request at a time uses, and what was logged of it last.
type asked struct {
	*Client
	mu   sync.Mutex
	said string
}

// NewSender makes a Sender that asks the witnesses of the policy that have a URL.
func NewSender(o Options) (*Sender, error) {
	o.Every = cmp.Or(max(o.Every, 0), 5*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Sender{o: o, wake: make(chan struct{}, 1)}
	for _, w := range o.Policy.Witnesses {
		if w.URL == "" {
			continue
		}
		c, err := NewClient(w)
		if err != nil {
			return nil, err
		}
		s.clients = append(s.clients, &asked{Client: c})
	}
	if len(s.clients) == 0 {
		return nil, errors.New("witness: policy: no witness has a URL")
	}
	return s, nil
}

// Offer hands over a new checkpoint. It does not block: a checkpoint that was not sent yet is left out.
func (s *Sender) Offer(checkpoint []byte) {
	s.latest.Store(&checkpoint)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Enough is the size of the latest checkpoint that enough witnesses have cosigned.
func (s *Sender) Enough() int64 { return s.enough.Load() }

// A Result is what the witnesses did with a checkpoint.
type Result struct {
	Checkpoint []byte // with the cosignatures
	Cosigned   []ledger.Cosignature
	Errors     map[string]error // by the name of the witness
	Ahead      int64            // the largest size that a witness has signed beyond the checkpoint; 0: none has
	Enough     bool             // the policy is satisfied
}

// Collect has all witnesses cosign a checkpoint, at the same time.
func (s *Sender) Collect(ctx context.Context, checkpoint []byte) *Result {
	bare := withoutCosignatures(checkpoint, s.o.Policy)
	lines, errs := make([][]byte, len(s.clients)), make([]error, len(s.clients))
	var all sync.WaitGroup
	for i, c := range s.clients {
		all.Go(func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			lines[i], errs[i] = c.Cosign(ctx, s.o.Source, bare)
		})
	}
	all.Wait()
	r := &Result{Checkpoint: bytes.Clone(bare), Errors: map[string]error{}}
	for i, c := range s.clients {
		if ahead, ok := errors.AsType[*Ahead](errs[i]); ok {
			r.Ahead = max(r.Ahead, ahead.Size)
		}
		if errs[i] != nil {
			r.Errors[c.Name] = errs[i]
			continue
		}
		r.Checkpoint = append(r.Checkpoint, lines[i]...)
		r.Cosigned = append(r.Cosigned, ledger.Cosignature{Witness: c.key})
	}
	r.Enough = s.o.Policy.Satisfied(r.Cosigned)
	return r
}

// withoutCosignatures removes the lines of the policy's witnesses: they are asked for again.
func withoutCosignatures(checkpoint []byte, p *Policy) []byte {
	text, sigs, ok := bytes.Cut(checkpoint, []byte("\n\n"))
	if !ok {
		return checkpoint
	}
	out := append(bytes.Clone(text), "\n\n"...)
	signed := out[:len(text)+1]
lines:
	for line := range bytes.Lines(sigs) {
		for _, w := range p.Witnesses {
			if w.Key.Signed(signed, line) {
				continue lines
			}
		}
		out = append(out, line...)
	}
	return out
}

// Run sends what is offered until ctx ends. A checkpoint that too few witnesses have cosigned is sent
// again, or the one that has come after it.
func (s *Sender) Run(ctx context.Context) {
	pause := backoff.Waits{First: s.o.Every, Most: 16 * s.o.Every}
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		msg := s.latest.Load()
		if msg == nil {
			continue
		}
		r := s.Collect(ctx, *msg)
		if ctx.Err() != nil {
			return
		}
		s.tell(r)
		if r.Ahead > 0 && s.o.Ahead != nil {
			s.o.Ahead(ctx, r.Ahead)
		}
		wait := s.o.Every
		if err := s.keep(ctx, r); err != nil {
			s.o.Log.Warn("the cosignatures of witnesses could not be stored", "error", err)
		}
		if r.Enough {
			pause = backoff.Waits{First: s.o.Every, Most: 16 * s.o.Every}
		} else {
			wait = pause.Next()
			s.Offer(*s.latest.Load())
		}
		if backoff.Sleep(ctx, wait) != nil {
			return
		}
	}
}

func (s *Sender) keep(ctx context.Context, r *Result) error {
	if !r.Enough {
		return nil
	}
	s.enough.Store(ledger.CheckpointSize(r.Checkpoint))
	return s.o.Save(ctx, r.Checkpoint)
}

// tell logs what has changed about a witness.
func (s *Sender) tell(r *Result) {
	for _, c := range s.clients {
		said := ""
		if err := r.Errors[c.Name]; err != nil {
			said = err.Error()
		}
		switch {
		case said == c.said:
		case said == "":
			s.o.Log.Info("the witness cosigns again", "witness", c.Name)
		default:
			s.o.Log.Warn("a witness did not cosign the checkpoint: it is asked again", "witness", c.Name, "error", said)
		}
		c.said = said
	}
}

// Ask asks the witnesses whether they have signed a larger log than the one of the checkpoint: before a
// process adds to a copy of the log that it does not know. It returns the size, 0 if none has.
func (s *Sender) Ask(ctx context.Context, checkpoint []byte) int64 {
	return s.Collect(ctx, checkpoint).Ahead
}
