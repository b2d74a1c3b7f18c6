// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/platform/reuse"
	"github.com/pellucid-mcp/pellucid/platform/syserror"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// LinesOptions limits a [Lines]. The zero value is the default.
type LinesOptions struct {
	// Limits of one message. Limits.Bytes (0 = 32 MiB) is also the longest line
	// that is held; a longer one is skipped byte by byte.
	Limits strictjson.Limits

	// Stray is called once, with the first line that is not a JSON-RPC message, escaped and cut.
	// It may be nil.
	Stray func(excerpt string)

	// Room returns memory for a line. If it is nil, lines are not counted.
	Room func() *intake.Room
}

const defaultMaxMessage = 32 << 20

func maxMessage(lim strictjson.Limits) int {
	if lim.Bytes > 0 {
		return lim.Bytes
	}
	return defaultMaxMessage
}

// Lines is a Conn over two byte streams, one message a line: MCP's stdio
// transport. Neither a reader that never ends a line nor a peer that stops
// reading can hold up Close.
//
// One goroutine reads, from Start on, and calls the Receiver. A message is written by the goroutine
// that calls Write where that can be interrupted, as on a pipe that this process has made; else by
// one that lives as long as that takes.
type Lines struct {
	to      delivery
	r       io.Reader
	w       io.Writer
	lim     strictjson.Limits
	newRoom func() *intake.Room

	stray   func(string)
	strays  sync.Once
	batches atomic.Bool
	limited deadliner     // w, if a write to it can be interrupted
	pen     chan struct{} // room for the one who writes

	live      context.Context // until Close
	closed    <-chan struct{} // of live
	stop      context.CancelFunc
	closeOnce sync.Once
	closeErr  error
}

// deadliner is a stream of which a write under way can be ended, as one of *os.File that is a pipe.
type deadliner interface{ SetWriteDeadline(time.Time) error }

var _ Conn = (*Lines)(nil)

// NewLines returns a Conn that reads lines from r and writes lines to w. Close
// closes both where they are io.Closers.
func NewLines(r io.Reader, w io.Writer, opt LinesOptions) *Lines {
	l := &Lines{to: newDelivery(), r: r, w: w, lim: opt.Limits, stray: opt.Stray, newRoom: opt.Room,
		pen: make(chan struct{}, 1)}
	l.live, l.stop = context.WithCancel(context.Background())
	l.closed = l.live.Done()
	if d, can := w.(deadliner); can && d.SetWriteDeadline(time.Time{}) == nil {
		l.limited = d
	}
	return l
}

// AllowBatches makes arrays of messages acceptable: only revision 2025-03-26 has them.
func (l *Lines) AllowBatches(on bool) { l.batches.Store(on) }

// Start implements Conn. Ended gets io.EOF once the peer has closed its output, ErrClosed after
// Close, also while a read goes on that cannot be interrupted.
func (l *Lines) Start(r Receiver) {
	l.to.start(r)
	go l.read()
}

// read is a goroutine of its own because a read of a pipe or terminal that
// this process inherited cannot be interrupted.
func (l *Lines) read() {
	lr := lineReader{r: l.r, max: maxMessage(l.lim), in: arrival{ctx: l.live, newRoom: l.newRoom, patience: streamWait}}
	for {
		select {
		case <-l.closed:
			return
		default:
		}
		line, owned, err := lr.next()
		var v *Violation
		switch {
		case err == nil:
			l.decode(line, owned, lr.in.takeRoom())
		case errors.As(err, &v):
			l.to.violation(v)
		case gone(err):
			l.to.end(io.EOF)
			return
		default:
			l.to.end(err)
			return
		}
	}
}

// gone reports the errors that only mean that no more will come.
func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
}

func (l *Lines) decode(line []byte, owned *reuse.Buffer, room *intake.Room) {
	if l.batches.Load() && line[0] == '[' {
		for m, err := range decodeBatch(line, l.lim) {
			l.deliver(m, err)
		}
		room.Leave()
		return
	}
	m, err := Decode(line, l.lim)
	if err != nil {
		owned.Release()
		room.Leave()
	} else {
		m.buf, m.room = owned, room
	}
	l.deliver(m, err)
}

func (l *Lines) deliver(m *Message, err error) {
	if err != nil {
		v := violationOf(err)
		if l.stray != nil && v.Kind == 0 {
			v.Told = true
			l.strays.Do(func() { l.stray(v.Excerpt) })
		}
		l.to.violation(v)
	} else if !l.to.message(m) {
		m.Release()
	}
}

// Write sends one message as one line and returns when the peer's pipe has
// taken it. If ctx ends first the message is still on its way; a later Write waits for it. Errors: ErrPeerClosed, ErrClosed, ctx's.
func (l *Lines) Write(ctx context.Context, m *Message) error {
	select {
	case <-l.closed:
		return ErrClosed
	default:
	}
	select {
	case l.pen <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.closed:
		return ErrClosed
	}
	out := newLine(m)
	if l.limited != nil {
		if over, err := l.writeWithin(ctx, out); over {
			return l.wrote(out, err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- l.wrote(out, out.to(l.w)) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-l.closed:
	}
	// Close ends the write, if it can be ended; what the peer has taken was written.
	t := time.NewTimer(closePatience)
	defer t.Stop()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return ErrClosed
	}
}

// writeWithin writes a line until ctx ends. It is not over if that came first: then the rest is to
// be written.
func (l *Lines) writeWithin(ctx context.Context, out *line) (over bool, err error) {
	if ctx.Done() == nil {
		return true, out.to(l.w)
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = l.limited.SetWriteDeadline(time.Unix(1, 0))
	})
	err = out.to(l.w)
	if stop() {
		return true, err
	}
	<-interrupted
	_ = l.limited.SetWriteDeadline(time.Time{})
	return !errors.Is(err, os.ErrDeadlineExceeded), err
}

// wrote is the end of a line: the next one may be written.
func (l *Lines) wrote(out *line, err error) error {
	out.release()
	<-l.pen
	select {
	case <-l.closed:
		if err != nil {
			return ErrClosed
		}
	default:
	}
	return peerError(err)
}

// maxOneWrite is the longest message that is copied so that it and its line
// feed are one write; a pipe takes no more than this at once anyway.
const maxOneWrite = 64 << 10

// line is a message as it is written: one write, or three of a long one.
type line struct {
	m     *Message
	rest  [3][]byte // what is not written yet
	owned *reuse.Buffer
}

// newLine spells m as one line. JSON allows line feeds between its tokens
// only, so one that stands in m becomes a space and changes nothing else.
func newLine(m *Message) *line {
	body := m.Body()
	folded := hasLineEnd(body)
	if len(body) >= maxOneWrite && !folded {
		owned := reuse.NewBuffer(0)
		owned.Set(m.appendHead(owned.Bytes()))
		return &line{m: m, rest: [3][]byte{owned.Bytes(), body, lineEnd}, owned: owned}
	}
	owned := reuse.NewBuffer(m.Len() + 1)
	all := m.Append(owned.Bytes())
	if folded {
		fold(all)
	}
	owned.Set(append(all, '\n'))
	return &line{m: m, rest: [3][]byte{owned.Bytes()}, owned: owned}
}

var lineEnd = []byte("}\n")

// to writes what is not written yet.
func (o *line) to(w io.Writer) error {
	for i := range o.rest {
		if len(o.rest[i]) == 0 {
			continue
		}
		n, err := w.Write(o.rest[i])
		o.rest[i] = o.rest[i][n:]
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *line) release() {
	o.owned.Release()
	o.m.Release()
}

func hasLineEnd(raw []byte) bool {
	return bytes.IndexByte(raw, '\n') >= 0 || bytes.IndexByte(raw, '\r') >= 0
}

func fold(raw []byte) {
	for i, c := range raw {
		if c == '\n' || c == '\r' {
			raw[i] = ' '
		}
	}
}

// peerError names the ways in which a peer that has gone shows itself.
func peerError(err error) error {
	if syserror.Lost(err) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) {
		return ErrPeerClosed
	}
	return err
}

// Close ends the Conn and every Write under way. It does not wait for
// a stream that cannot be interrupted.
func (l *Lines) Close() error {
	l.closeOnce.Do(func() {
		l.stop()
		l.to.end(ErrClosed)
		errs := make(chan error, 1)
		// Closing a stream that the system holds in a write may itself block.
		go func() { errs <- errors.Join(closeStream(l.w), closeStream(l.r)) }()
		l.closeErr = awaitClose(errs)
	})
	return l.closeErr
}

func closeStream(s any) error {
	c, ok := s.(io.Closer)
	if !ok {
		return nil
	}
	if err := c.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
