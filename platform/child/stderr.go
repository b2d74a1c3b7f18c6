// SPDX-License-Identifier: Apache-2.0

package child

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"
)

const (
	maxStderrLine = 1000 // bytes of a line that are shown
	stderrBurst   = 200  // lines at once
	stderrRate    = 20   // lines a second in the long run
)

// stderrTap cuts a child's standard error into lines for people, and reads on
// at full speed whatever it shows, so that the child is never held up.
type stderrTap struct {
	emit    func(string)
	tokens  float64
	last    time.Time
	dropped int
}

func (t *stderrTap) drain(r io.Reader) {
	br := bufio.NewReaderSize(r, 4<<10)
	line, more := make([]byte, 0, maxStderrLine), 0
	for {
		piece, err := br.ReadSlice('\n')
		body := piece
		ended := err == nil
		if ended {
			body = piece[:len(piece)-1]
		}
		keep := min(len(body), maxStderrLine-len(line))
		line, more = append(line, body[:keep]...), more+len(body)-keep
		if ended || (err != bufio.ErrBufferFull && len(line) > 0) {
			t.line(line, more, time.Now())
			line, more = line[:0], 0
		}
		if !ended && err != bufio.ErrBufferFull {
			t.report()
			return
		}
	}
}

func (t *stderrTap) line(b []byte, more int, now time.Time) {
	if n := len(b); n > 0 && b[n-1] == '\r' && more == 0 {
		b = b[:n-1]
	}
	if t.emit == nil || len(b) == 0 {
		return
	}
	if t.last.IsZero() {
		t.tokens = stderrBurst
	} else {
		t.tokens = min(stderrBurst, t.tokens+now.Sub(t.last).Seconds()*stderrRate)
	}
	t.last = now
	if t.tokens < 1 {
		t.dropped++
		return
	}
	t.tokens--
	t.report()
	s := string(escape(nil, b))
	if more > 0 {
		s += fmt.Sprintf(" [%d bytes more]", more)
	}
	t.emit(s)
}

func (t *stderrTap) report() {
	if t.dropped > 0 && t.emit != nil {
		t.emit(fmt.Sprintf("[%d lines dropped]", t.dropped))
		t.dropped = 0
	}
}

// escape appends b in visible ASCII: what else a terminal or a log reader
// could take for a command or a line of its own is spelled out.
func escape(dst, b []byte) []byte {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(dst, fmt.Sprintf(`\x%02x`, b[0])...)
		case r == '\\':
			dst = append(dst, `\\`...)
		case r >= ' ' && r < 0x7f:
			dst = append(dst, byte(r))
		default:
			q := strconv.AppendQuoteRuneToASCII(nil, r)
			dst = append(dst, q[1:len(q)-1]...)
		}
		b = b[n:]
	}
	return dst
}
