// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	logspb "go.opentelemetry.io/proto/otlp/logs/v1"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Format is how records are written.
type Format string

// The formats.
const (
	FormatOCSF Format = "ocsf"
	FormatOTLP Format = "otlp"
)

// A Store has the log and the positions of exports.
type Store interface {
	Head(ctx context.Context) (sequence.Head, error)
	Entries(ctx context.Context, first int64, n int) ([][]byte, error)
	// Get returns the record of an id. The error is ledger.ErrNotFound where the log has none.
	Get(ctx context.Context, id ledger.ID) (sequence.Entry, error)
	// ClaimExport lets holder send what the export name sends, until a time, and returns the index of the
	// next record; begin where the export is new. ok is false while another process has it.
	ClaimExport(ctx context.Context, name, holder string, begin int64, now, until time.Time) (position int64, ok bool, err error)
	// SaveExport stores the index of the next record. ErrLost: another process has the export by now.
	SaveExport(ctx context.Context, name, holder string, position int64, until time.Time) error
}

// ErrLost says that another process has an export.
var ErrLost = errors.New("outbound: another process sends this export")

// Options are what a Sender is made of.
type Options struct {
	Name      string // label; its position is stored under it
	Format    Format
	Sink      Sink
	Store     Store
	FromBegin bool         // a new export begins with the first record; else with the next one
	Log       *slog.Logger // nil: nothing is logged
	look      time.Duration
	lease     time.Duration
}

// A Sink takes batches, in their order.
type Sink interface {
	// Send delivers a batch: lines of JSON, or a request of OTLP. An error that wraps ErrRefused means that
	// the batch itself is at fault.
	Send(ctx context.Context, body []byte) error
}

// ErrRefused says that a receiver does not accept what was sent, however often it is sent.
var ErrRefused = errors.New("outbound: the receiver refuses what was sent")

// batch is how many records are read and sent at once.
const batch = 256

// A Sender sends the records of a log to one sink.
type Sender struct {
	o      Options
	holder string

	// Of the goroutine of Run: until when this process has the export, and may send without asking for it again.
	until time.Time

	sends                   atomic.Bool
	position, size, dropped atomic.Int64
}

// Figures say how far a Sender is.
type Figures struct {
	Sends   bool  // this process has sent last; else another one has the export, and Behind is not known here
	Behind  int64 // records of the log that are not sent
	Dropped int64 // that the receiver refused, or that could not be read
}

// New makes a Sender.
func New(o Options) (*Sender, error) {
	if o.Format != FormatOCSF && o.Format != FormatOTLP || o.Sink == nil || o.Store == nil {
		return nil, errors.New("outbound: want a format, a sink and a store")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.look <= 0 {
		o.look = time.Second
	}
	if o.lease <= 0 {
		o.lease = time.Minute
	}
	var id [8]byte
	rand.Read(id[:]) // never fails
	return &Sender{o: o, holder: hex.EncodeToString(id[:])}, nil
}

// Figures returns them as they are now.
func (s *Sender) Figures() Figures {
	return Figures{s.sends.Load(), max(0, s.size.Load()-s.position.Load()), s.dropped.Load()}
}

// Run sends until ctx ends. Then another process may go on at once.
func (s *Sender) Run(ctx context.Context) {
	defer s.release(ctx)
	pause := backoff.Waits{First: s.o.look, Most: time.Minute}
	for failed := false; ; {
		more, err := s.step(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failed:
			s.o.Log.Warn("an export cannot be sent: it is tried again, and goes on where it stopped", "export", s.o.Name, "error", finding.Quote(err.Error()))
		case err == nil && failed:
			s.o.Log.Info("the export is sent again", "export", s.o.Name)
		}
		failed = err != nil
		wait := s.o.look
		switch {
		case err != nil:
			wait = pause.Next()
		case more:
			continue
		default:
			pause = backoff.Waits{First: s.o.look, Most: time.Minute}
		}
		if backoff.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// release ends the lease early. A failure costs the next process what is left of it.
func (s *Sender) release(ctx context.Context) {
	if !s.sends.Load() || time.Now().After(s.until) {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	_ = s.o.Store.SaveExport(ctx, s.o.Name, s.holder, s.position.Load(), time.Now())
}

// step sends one batch. more says that there are more records.
func (s *Sender) step(ctx context.Context) (more bool, err error) {
	head, err := s.o.Store.Head(ctx)
	if errors.Is(err, sequence.ErrNoLog) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	s.size.Store(head.Size)
	// A log that stands still costs a look, and no write.
	if s.sends.Load() && s.position.Load() >= head.Size {
		return false, nil
	}
	if ok, err := s.claim(ctx, head.Size); err != nil || !ok {
		return false, err
	}
	at := s.position.Load()
	if at >= head.Size {
		return false, nil
	}
	list, err := s.o.Store.Entries(ctx, at, int(min(batch, head.Size-at)))
	if err != nil {
		return false, err
	}
	if list, err = s.settled(ctx, list); err != nil || len(list) == 0 {
		return false, err
	}
	if err := s.send(ctx, at, list); err != nil {
		return false, err
	}
	return s.position.Load() < head.Size, nil
}

// claim makes this process the one that sends, unless it is for half of the lease at least.
func (s *Sender) claim(ctx context.Context, size int64) (ok bool, err error) {
	now := time.Now()
	if s.sends.Load() && s.until.Sub(now) > s.o.lease/2 {
		return true, nil
	}
	begin := size
	if s.o.FromBegin {
		begin = 0
	}
	at, ok, err := s.o.Store.ClaimExport(ctx, s.o.Name, s.holder, begin, now, now.Add(s.o.lease))
	if err != nil {
		return false, err
	}
	s.sends.Store(ok)
	if ok {
		s.until = now.Add(s.o.lease)
		s.position.Store(at)
	}
	return ok, nil
}

// send sends records; where the receiver refuses them, each half by itself. What is done is stored at once, so that
// a receiver that refuses many records gets each of the others once.
func (s *Sender) send(ctx context.Context, first int64, list [][]byte) error {
	body, bad, err := s.body(ctx, first, list)
	if err != nil {
		return err
	}
	if len(body) > 0 {
		request, stop := context.WithTimeout(ctx, s.o.lease/2) // so that no other process sends meanwhile
		err = s.o.Sink.Send(request, body)
		stop()
	}
	switch {
	case err == nil:
		return s.save(ctx, first+int64(len(list)), bad)
	case !errors.Is(err, ErrRefused):
		return err
	case len(list) == 1:
		return s.save(ctx, first+1, 1)
	}
	if err := s.save(ctx, first, 0); err != nil { // renews the lease
		return err
	}
	half := len(list) / 2
	if err := s.send(ctx, first, list[:half]); err != nil {
		return err
	}
	return s.send(ctx, first+int64(half), list[half:])
}

// save stores the position, renews the lease, and counts the records that were left out before it.
func (s *Sender) save(ctx context.Context, next int64, left int) error {
	until := time.Now().Add(s.o.lease)
	if err := s.o.Store.SaveExport(ctx, s.o.Name, s.holder, next, until); err != nil {
		s.sends.Store(!errors.Is(err, ErrLost) && s.sends.Load())
		return err
	}
	s.until = until
	s.position.Store(next)
	if left > 0 && s.dropped.Add(int64(left)) == int64(left) {
		s.o.Log.Error("records of an export are left out: the receiver refuses them, or they cannot be read", "export", s.o.Name)
	}
	return nil
}

// body writes records in the format. bad is how many of them cannot be read.
func (s *Sender) body(ctx context.Context, first int64, list [][]byte) (body []byte, bad int, err error) {
	events := findings{store: s.o.Store, begun: map[ledger.ID]bool{}, early: map[int64]bool{}}
	var logs []*logspb.LogRecord
	for i, raw := range list {
		st, err := ledger.UnverifiedStatement(raw)
		if err != nil {
			bad++
			continue
		}
		if s.o.Format == FormatOTLP {
			logs = append(logs, logRecord(first+int64(i), st, time.Now()))
			continue
		}
		if body, err = events.append(ctx, body, first+int64(i), st); err != nil {
			return nil, bad, err
		}
	}
	if s.o.Format == FormatOTLP && len(logs) > 0 {
		if body, err = otlpBody(logs); err != nil {
			return nil, bad, fmt.Errorf("outbound: %w", err)
		}
	}
	return body, bad, nil
}
