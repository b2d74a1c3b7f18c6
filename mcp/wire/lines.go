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
	"syscall"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// LinesOptions limits a [Lines]. The zero value is the default.
type LinesOptions struct {
	// Limits of one message. Limits.Bytes (0 = 32 MiB) is also the longest line
	// that is held; a longer one is skipped byte by byte.
	Limits strictjson.Limits
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
type Lines struct {
	r   io.Reader
	w   io.Writer
	lim strictjson.Limits

	batches atomic.Bool

	in        chan incoming
	out       chan *write
	closed    chan struct{}
	closeOnce sync.Once
	closeErr  error
	startRead sync.Once
	startOut  sync.Once
}

type incoming struct {
	m   *Message
	err error
}

type write struct {
	m    *Message
	done chan error
}

var _ ReadConn = (*Lines)(nil)

// NewLines returns a Conn that reads lines from r and writes lines to w. Close
// closes both where they are io.Closers.
func NewLines(r io.Reader, w io.Writer, opt LinesOptions) *Lines {
	return &Lines{
		r: r, w: w, lim: opt.Limits,
		in:     make(chan incoming),
		out:    make(chan *write),
		closed: make(chan struct{}),
	}
}

// AllowBatches makes arrays of messages acceptable: only revision 2025-03-26 has them.
func (l *Lines) AllowBatches(on bool) { l.batches.Store(on) }

// Read returns the next message. It returns io.EOF once the peer has closed
// its output, ErrClosed after Close, and ctx's error when ctx ends, which loses
// nothing: the next Read goes on from there.
func (l *Lines) Read(ctx context.Context) (*Message, error) {
	l.startRead.Do(func() { go l.readLoop() })
	select {
	case <-l.closed: // before a message that happens to be ready
		return nil, ErrClosed
	default:
	}
	select {
	case in, ok := <-l.in:
		if !ok {
			return nil, io.EOF
		}
		return in.m, in.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.closed:
		return nil, ErrClosed
	}
}

// readLoop is a goroutine of its own because a read of a pipe or terminal that
// this process inherited cannot be interrupted.
func (l *Lines) readLoop() {
	defer close(l.in)
	lr := lineReader{r: l.r, max: maxMessage(l.lim)}
	for {
		line, owned, err := lr.next()
		var v *Violation
		switch {
		case errors.As(err, &v):
			if !l.deliver(nil, v) {
				return
			}
			continue
		case err != nil:
			if !gone(err) {
				l.deliver(nil, err)
			}
			return
		}
		if !l.decode(line, owned) {
			return
		}
	}
}

// gone reports the errors that only mean that no more will come.
func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
}

func (l *Lines) decode(line, owned []byte) bool {
	if l.batches.Load() && line[0] == '[' {
		for m, err := range decodeBatch(line, l.lim) {
			if !l.deliver(m, err) {
				return false
			}
		}
		return true
	}
	m, err := Decode(line, l.lim)
	if err != nil {
		PutBuffer(owned)
		return l.deliver(nil, err)
	}
	m.buf = owned
	return l.deliver(m, nil)
}

func (l *Lines) deliver(m *Message, err error) bool {
	select {
	case l.in <- incoming{m, err}:
		return true
	case <-l.closed:
		return false
	}
}

// Write sends one message as one line and returns when the peer's pipe has
// taken it. If ctx ends first the message is still on its way; a later Write waits for it. Errors: ErrPeerClosed, ErrClosed, ctx's.
func (l *Lines) Write(ctx context.Context, m *Message) error {
	l.startOut.Do(func() { go l.writeLoop() })
	select {
	case <-l.closed:
		return ErrClosed
	default:
	}
	w := &write{m: m, done: make(chan error, 1)}
	select {
	case l.out <- w:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.closed:
		return ErrClosed
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-l.closed:
		return ErrClosed
	}
}

func (l *Lines) writeLoop() {
	var scratch []byte
	for {
		select {
		case w := <-l.out:
			var err error
			scratch, err = writeLine(l.w, scratch, w.m)
			w.m.Release()
			w.done <- peerError(err)
		case <-l.closed:
			return
		}
	}
}

// maxOneWrite is the longest message that is copied so that it and its line
// feed are one write; a pipe takes no more than this at once anyway.
const maxOneWrite = 64 << 10

// writeLine writes m as one line. JSON allows line feeds between its tokens
// only, so one that stands in m becomes a space and changes nothing else.
func writeLine(w io.Writer, scratch []byte, m *Message) ([]byte, error) {
	body := m.Body()
	folded := hasLineEnd(body)
	if len(body) >= maxOneWrite && !folded {
		scratch = m.appendHead(scratch[:0])
		for _, b := range [...][]byte{scratch, body, lineEnd} {
			if _, err := w.Write(b); err != nil {
				return scratch, err
			}
		}
		return scratch, nil
	}
	scratch = m.Append(scratch[:0])
	if folded {
		fold(scratch)
	}
	scratch = append(scratch, '\n')
	_, err := w.Write(scratch)
	if cap(scratch) > 2*maxOneWrite {
		scratch = nil
	}
	return scratch, err
}

var lineEnd = []byte("}\n")

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
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) {
		return ErrPeerClosed
	}
	return err
}

// Close ends the Conn and every Read and Write under way. It does not wait for
// a stream that cannot be interrupted.
func (l *Lines) Close() error {
	l.closeOnce.Do(func() {
		close(l.closed)
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
