// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/platform/lease"
)

// A Sender delivers what waits in a store. Senders of several processes may share a store: each receiver has a lease, and gets
// messages of the process that holds it.
type Sender struct {
	Store     Store
	Receivers func() []*Receiver // in force
	Approved  Approved
	Log       *slog.Logger
	// Count is told of each attempt, "delivered", "failed" or "given-up", and of each message
	// that is "dropped"; nil: it is not told.
	Count func(receiver, outcome string)
	Now   func() time.Time // nil: time.Now

	once  sync.Once
	awake chan struct{}
}

func (s *Sender) init() {
	s.once.Do(func() {
		s.awake = make(chan struct{}, 1)
		if s.Now == nil {
			s.Now = time.Now
		}
	})
}

// Outbox returns the messages that tell e, one for each receiver that wants it.
func (s *Sender) Outbox(e Notice) (all []Message) {
	for _, r := range s.Receivers() {
		if r.Wants(e.Type) {
			all = append(all, r.Message(e, s.Approved))
		}
	}
	return all
}

// Dropped is told of a message that was not kept: MaxWaiting of its receiver wait already.
func (s *Sender) Dropped(m *Message) {
	s.count(m, "dropped")
	s.Log.Error("a message of a webhook was dropped: too many wait for their receiver", "receiver", m.Receiver, "type", string(m.Type))
}

// Wake has Run look at the store at once: a message was stored by this process.
func (s *Sender) Wake() {
	s.init()
	select {
	case s.awake <- struct{}{}:
	default:
	}
}

// Run delivers until ctx ends. A receiver gets one message at a time, so
// that a slow one costs no more than itself; no receiver waits for another.
func (s *Sender) Run(ctx context.Context) {
	s.init()
	var work sync.WaitGroup
	defer work.Wait()
	var mu sync.Mutex
	busy := map[string]bool{}
	rests := map[string]*rest{}
	swept := time.Time{}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		all, now := s.Receivers(), s.Now()
		if len(all) > 0 && now.Sub(swept).Abs() >= sweepEvery {
			swept = now
			if err := s.Store.SweepMessages(ctx, now, now.Add(-TryFor-longestDelay), now.Add(-KeepGivenUp)); err != nil && ctx.Err() == nil {
				s.Log.Warn("old messages of webhooks could not be removed", "error", err)
			}
		}
		for _, r := range all {
			mu.Lock()
			name := r.Name()
			if rests[name] == nil {
				rests[name] = &rest{waits: backoff.Waits{First: firstPause, Most: longestPause},
					lease: lease.New(lease.Options{Store: s.Store, Name: "webhook/" + name, Log: s.Log})}
			}
			pause := rests[name]
			skip := busy[name] || now.Before(pause.until)
			busy[name] = busy[name] || !skip
			mu.Unlock()
			if skip {
				continue
			}
			work.Go(func() {
				s.deliverDue(ctx, r, pause)
				mu.Lock()
				defer mu.Unlock()
				busy[name] = false
			})
		}
		select {
		case <-tick.C:
		case <-s.awake:
		case <-ctx.Done():
			return
		}
	}
}

// A rest is how long a receiver that fails is left alone, whichever message is next.
type rest struct {
	until time.Time
	waits backoff.Waits
	lease *lease.Lease // of the receiver
}

// deliverDue delivers to r if a message is due, and no other process delivers to it.
func (s *Sender) deliverDue(ctx context.Context, r *Receiver, pause *rest) {
	due, err := s.Store.MessageDue(ctx, r.Name(), s.Now())
	if err == nil && due {
		err = pause.lease.Hold(ctx, func(ctx context.Context) { s.deliver(ctx, r, pause) })
	}
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("messages of a webhook cannot be read", "receiver", r.Name(), "error", err)
	}
}

// deliver sends what waits for r, until nothing does or an attempt fails.
func (s *Sender) deliver(ctx context.Context, r *Receiver, pause *rest) {
	for ctx.Err() == nil {
		now := s.Now()
		m, err := s.Store.NextMessage(ctx, r.Name(), now)
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("messages of a webhook cannot be read", "receiver", r.Name(), "error", err)
		}
		if err != nil || m == nil {
			return
		}
		failure, asked := r.Send(ctx, m, now)
		if failure != "" && ctx.Err() != nil {
			return // this process ends, or has lost the lease: another one goes on
		}
		if err := s.settle(ctx, m, failure, asked); err != nil {
			s.Log.Warn("what became of a message of a webhook cannot be stored: it may arrive once more", "receiver", r.Name(), "message", m.ID, "error", err)
		}
		if failure != "" {
			pause.until = s.Now().Add(max(pause.waits.Next(), min(asked, longestPause)))
			return
		}
		pause.waits.Reset()
	}
}

// delays are the times between the attempts for one message.
var delays = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, longestDelay}

const (
	longestDelay = 8 * time.Hour
	settleWait   = 5 * time.Second
)

// settle stores what became of an attempt.
func (s *Sender) settle(ctx context.Context, m *Message, failure Failure, asked time.Duration) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), settleWait) // also as the process ends
	defer stop()
	if failure == "" {
		s.count(m, "delivered")
		return s.Store.MessageDelivered(ctx, m)
	}
	now := s.Now()
	m.Failure = failure
	m.Next = now.Add(max(backoff.Spread(delays[min(max(m.Tries, 1), len(delays))-1]), asked))
	log := s.Log.With("receiver", m.Receiver, "message", m.ID, "type", string(m.Type), "failure", string(failure), "attempts", m.Tries)
	if failure == Gone || now.Sub(m.At) >= TryFor {
		m.GivenUp = now
		s.count(m, "given-up")
		log.Error("a message of a webhook was given up: pellucid webhooks shows it")
	} else {
		s.count(m, "failed")
		log.Warn("a message of a webhook was not delivered: the next attempt follows", "next", m.Next.UTC().Format(time.RFC3339))
	}
	return s.Store.MessageFailed(ctx, m)
}

func (s *Sender) count(m *Message, outcome string) {
	if s.Count != nil {
		s.Count(m.Receiver, outcome)
	}
}
