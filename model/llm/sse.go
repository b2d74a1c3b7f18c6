// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"bufio"
	"bytes"
	"io"
)

// An eventReader reads text/event-stream as WHATWG defines it: lines end with CR,
// LF or CRLF, an empty line ends an event, one that is not ended is dropped. It
// holds one event, which its reader bounds.
type eventReader struct {
	r     *bufio.Reader
	wasCR bool // an LF now belongs to the line before
	begun bool // the byte order mark, if any, is behind

	line []byte
	name string
	data []byte
}

func newEventReader(r io.Reader) *eventReader { return &eventReader{r: bufio.NewReader(r)} }

// next is the next event that has data, or the error of the reader. The bytes
// are valid until the next call.
func (e *eventReader) next() (name string, data []byte, err error) {
	e.name, e.data = "", e.data[:0]
	any := false
	for {
		if err := e.readLine(); err != nil {
			return "", nil, err
		}
		if len(e.line) == 0 {
			if any {
				return e.name, e.data, nil
			}
			e.name = ""
			continue
		}
		field, value, _ := bytes.Cut(e.line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(field) {
		case "data":
			if any {
				e.data = append(e.data, '\n')
			}
			e.data, any = append(e.data, value...), true
		case "event":
			e.name = string(value[:min(len(value), 64)]) // the longest known has 40
		}
	}
}

// readLine reads up to the end of a line. It does not wait for an LF behind a CR.
func (e *eventReader) readLine() error {
	e.line = e.line[:0]
	for {
		c, err := e.r.ReadByte()
		if err != nil {
			return err
		}
		lf := e.wasCR && c == '\n'
		e.wasCR = c == '\r'
		switch {
		case lf:
			continue
		case c == '\r' || c == '\n':
			if !e.begun {
				e.begun = true
				e.line = bytes.TrimPrefix(e.line, []byte("\xef\xbb\xbf"))
			}
			return nil
		}
		e.line = append(e.line, c)
	}
}
