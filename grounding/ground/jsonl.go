// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"bytes"
	"errors"
	"io"
)

// A jsonLine is one line of a stream.
type jsonLine struct {
	number int    // from 1; blank lines count
	text   []byte // without its end and white space around; nil if it was too long
}

const (
	lineRead = 64 << 10 // least bytes that are asked for at once
	// lineSkip is how much of an overlong line is dropped before the reader is told
	// that it goes on.
	lineSkip = 1 << 20
)

// A lineReader cuts a stream of any length into lines of at most max bytes, in
// memory of about twice that. What is longer is dropped as it goes by.
type lineReader struct {
	r     io.Reader
	max   int
	alive func() // called before the wait for each line, and while one is skipped

	buf     []byte // buf[off:] is not yet given away
	off     int
	scanned int // buf[off:scanned] holds no line feed
	number  int
	skipped int // bytes of the line that is being dropped; -1: none is
	err     error
	idle    int // reads in a row that brought nothing
}

func newLineReader(r io.Reader, limit int, alive func()) *lineReader {
	return &lineReader{r: r, max: limit, alive: alive, skipped: -1}
}

// batch returns the next lines that are not blank: it waits for one, and takes what
// else is there, up to so many lines and about so many bytes. At the end it
// returns io.EOF and no line; any other error means that the stream broke, and
// what stood there of a line is lost.
func (l *lineReader) batch(lines, most int) ([]jsonLine, error) {
	var all []jsonLine
	for size := 0; len(all) < lines && size < most; {
		line, ok, err := l.next(len(all) == 0)
		switch {
		case err != nil && len(all) > 0:
			return all, nil // it comes again
		case err != nil:
			return nil, err
		case !ok:
			return all, nil
		}
		all = append(all, line)
		size += len(line.text)
	}
	return all, nil
}

// next returns the next line that is not blank; ok is false if it is not to wait
// and there is none yet.
func (l *lineReader) next(wait bool) (line jsonLine, ok bool, err error) {
	waiting := false
	for {
		if text, cut := l.cut(); cut {
			l.number++
			long := l.skipped >= 0 || len(text) > l.max
			l.skipped = -1
			waiting = false
			if long {
				return jsonLine{number: l.number}, true, nil
			}
			if text = bytes.Trim(text, " \t\r"); len(text) > 0 {
				return jsonLine{l.number, bytes.Clone(text)}, true, nil
			}
			continue
		}
		if l.err != nil {
			return jsonLine{}, false, l.err
		}
		if !wait {
			return jsonLine{}, false, nil
		}
		if !waiting {
			l.alive()
			waiting = true
		}
		l.fill()
	}
}

// cut takes a whole line out of the buffer. At the end of the stream what is left
// is a line.
func (l *lineReader) cut() ([]byte, bool) {
	if i := bytes.IndexByte(l.buf[l.scanned:], '\n'); i >= 0 {
		text := l.buf[l.off : l.scanned+i]
		l.off = l.scanned + i + 1
		l.scanned = l.off
		return text, true
	}
	l.scanned = len(l.buf)
	if l.skipped >= 0 || len(l.buf)-l.off > l.max {
		l.drop()
	}
	if !errors.Is(l.err, io.EOF) || l.skipped < 0 && l.off == len(l.buf) {
		return nil, false
	}
	text := l.buf[l.off:]
	l.off, l.scanned = len(l.buf), len(l.buf)
	return text, true
}

// drop forgets what is there of a line that is too long.
func (l *lineReader) drop() {
	before := max(l.skipped, 0)
	l.skipped = before + len(l.buf) - l.off
	l.buf, l.off, l.scanned = l.buf[:0], 0, 0
	if l.skipped/lineSkip > before/lineSkip {
		l.alive()
	}
}

// maxIdleReads is how often a reader may return nothing and no error.
const maxIdleReads = 100

// fill reads once, making room first.
func (l *lineReader) fill() {
	if l.off > 0 {
		n := copy(l.buf, l.buf[l.off:])
		l.buf, l.scanned, l.off = l.buf[:n], l.scanned-l.off, 0
	}
	if free := cap(l.buf) - len(l.buf); free < lineRead {
		grown := make([]byte, len(l.buf), min(2*cap(l.buf), l.max)+2*lineRead)
		copy(grown, l.buf)
		l.buf = grown
	}
	n, err := l.r.Read(l.buf[len(l.buf):cap(l.buf)])
	l.buf = l.buf[:len(l.buf)+n]
	if l.idle++; n > 0 {
		l.idle = 0
	}
	if err == nil && l.idle > maxIdleReads {
		err = io.ErrNoProgress
	}
	l.err = err
}
