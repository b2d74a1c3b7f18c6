// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/reuse"
)

// lineReader cuts a stream into lines and gives each away in a buffer of its
// own. Every byte is copied at most once beyond growth: of a line and what
// follows it in the same read, the shorter is moved.
type lineReader struct {
	r       io.Reader
	max     int
	mem     *reuse.Buffer // of buf
	buf     []byte        // buf[off:] is not yet given away
	off     int
	scanned int // buf[off:scanned] holds no line feed
	err     error
	idle    int // reads in a row that brought nothing

	in   arrival
	full bool // the memory for the line is used up
}

// next returns the next line that is not empty, without its end, and the
// Buffer that holds it. A line that is too long is skipped and
// reported as a *Violation; any other error is final. A last line without an
// end is a line.
func (lr *lineReader) next() (line []byte, owned *reuse.Buffer, err error) {
	for {
		line, owned, err = lr.cut()
		if err != nil {
			return nil, nil, err
		}
		if line = trimEnd(line); len(line) > 0 {
			return line, owned, nil
		}
		owned.Release()
	}
}

// trimEnd drops the white space around a message: CRLF, and what some servers put before.
func trimEnd(b []byte) []byte { return bytes.Trim(b, " \t\r") }

// cut returns the next line that is complete in the buffer.
func (lr *lineReader) cut() (line []byte, owned *reuse.Buffer, err error) {
	for {
		if i := bytes.IndexByte(lr.buf[lr.scanned:], '\n'); i >= 0 {
			end := lr.scanned + i
			if end-lr.off > lr.max {
				return nil, nil, lr.skip()
			}
			line, owned = lr.give(end, end+1)
			return line, owned, nil
		}
		lr.scanned = len(lr.buf)
		if len(lr.buf)-lr.off > lr.max {
			return nil, nil, lr.skip()
		}
		if lr.err != nil {
			if len(lr.buf) == lr.off {
				lr.mem.Release()
				lr.mem, lr.buf, lr.off, lr.scanned = nil, nil, 0, 0
				return nil, nil, lr.err
			}
			line, owned = lr.give(len(lr.buf), len(lr.buf))
			return line, owned, nil
		}
		if lr.fill(); lr.full {
			return nil, nil, lr.skip()
		}
	}
}

// give parts with buf[off:end]; what comes after next stays.
func (lr *lineReader) give(end, next int) (line []byte, owned *reuse.Buffer) {
	size, rest := end-lr.off, lr.buf[next:]
	if size <= len(rest) {
		owned = reuse.Copy(lr.buf[lr.off:end], 0)
		lr.off, lr.scanned = next, next
		return owned.Bytes(), owned
	}
	owned = lr.mem
	owned.Set(lr.buf[:end])
	if len(rest) > 0 {
		lr.read(reuse.Copy(rest, 0))
	} else {
		lr.read(nil)
	}
	owned.Fit()
	return owned.Bytes()[end-size:], owned
}

// read makes the bytes of b those that are not yet given away.
func (lr *lineReader) read(b *reuse.Buffer) {
	lr.mem, lr.buf, lr.off, lr.scanned = b, b.Bytes(), 0, 0
}

const (
	readSize = 16 << 10
	maxIdle  = 100
)

// fill reads once, making room first.
func (lr *lineReader) fill() {
	if lr.off == len(lr.buf) && lr.off > 0 {
		lr.buf, lr.off, lr.scanned = lr.buf[:0], 0, 0
	}
	if len(lr.buf) == cap(lr.buf) {
		held := lr.buf[lr.off:]
		room := max(len(held)+readSize, min(2*len(held), lr.max+readSize))
		if lr.full = lr.in.reserve(room) != nil; lr.full {
			return
		}
		grown := reuse.Copy(held, room)
		lr.mem.Release()
		lr.read(grown)
		lr.scanned = len(lr.buf)
	}
	if lr.full = lr.in.waitTurn(len(lr.buf)-lr.off) != nil; lr.full {
		return
	}
	n, err := lr.r.Read(lr.buf[len(lr.buf):cap(lr.buf)])
	lr.buf = lr.buf[:len(lr.buf)+n]
	if lr.idle++; n > 0 {
		lr.idle = 0
	}
	if err == nil && lr.idle > maxIdle {
		err = io.ErrNoProgress
	}
	lr.err = err
}

// skip drops the line that began at off and reports it; a line without end ends
// the stream. The envelope is watched for as it goes by, because a request
// may wait for its id.
func (lr *lineReader) skip() error {
	var s envelopeScan
	v := &Violation{Code: CodeInvalid, Reason: reasonTooLong, Excerpt: excerpt(lr.buf[lr.off:])}
	if lr.full {
		v.Reason, lr.full = reasonNoRoom, false
	}
	lr.in.giveUp().Leave()
	mem, piece := lr.mem, lr.buf[lr.off:]
	lr.read(nil)
	for {
		if i := bytes.IndexByte(piece, '\n'); i >= 0 {
			s.feed(piece[:i])
			v.Offset += int64(i)
			lr.read(reuse.Copy(piece[i+1:], 0))
			break
		}
		s.feed(piece)
		v.Offset += int64(len(piece))
		if lr.err != nil {
			break
		}
		if v.Offset > maxSkip {
			lr.err = errEndless // found by the next call: what was seen is reported first
			break
		}
		if cap(piece) > reuse.MaxPooled { // the overlong head has done its service
			mem.Release()
			mem = reuse.NewBuffer(maxOneWrite)
			piece = mem.Bytes()
		}
		lr.mem, lr.buf = mem, piece[:0]
		lr.fill()
		mem, piece = lr.mem, lr.buf
		lr.read(nil)
	}
	mem.Release()
	v.ID, v.Kind = s.envelope()
	return v
}

// maxSkip is the number of bytes of one line that are skipped before the line is taken for one
// that never ends. Such a line would occupy its reader, and the requests whose answers follow
// it, for ever.
const maxSkip = 256 << 20

var errEndless = errors.New("wire: a line without end")

// closePatience is how long Close waits for the system to close a stream.
const closePatience = 500 * time.Millisecond

var errCloseBlocked = errors.New("wire: a stream did not close in time")

func awaitClose(errs <-chan error) error {
	t := time.NewTimer(closePatience)
	defer t.Stop()
	select {
	case err := <-errs:
		return err
	case <-t.C:
		return errCloseBlocked
	}
}
