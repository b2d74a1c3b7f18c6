// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A document is one JSON text of the input, or why there is none.
type document struct {
	line int // in which it begins, from 1
	json *strictjson.Doc
	err  error // *EntryError: the next may be well
}

// documents reads JSON lines, or one JSON text of many lines: that is what the
// input is if its first line is not complete and no later one is a whole object.
// Nothing that is yielded is reused.
func documents(r io.Reader, lim strictjson.Limits) iter.Seq[document] {
	return func(yield func(document) bool) {
		b, err := plain(r)
		if err != nil {
			yield(document{err: err})
			return
		}
		in := &lines{r: b, most: lim.Bytes}
		first, err := in.next()
		if err == nil && incomplete(first, lim) {
			line := in.n
			text, rerr := in.rest(first)
			if rerr != nil {
				yield(document{err: rerr})
				return
			}
			if d := parse(text, line, lim); d.is(finding.TooDeep) || d.is(finding.TooMany) || d.err == nil || !objectBelow(text, len(first), lim) {
				yield(d)
				return
			}
			in = &lines{r: bufio.NewReader(io.MultiReader(bytes.NewReader(text), b)), most: lim.Bytes, n: line - 1}
			first, err = in.next()
		}
		for ; err != io.EOF; first, err = in.next() {
			d := document{err: err}
			if err == nil {
				d = parse(first, in.n, lim)
			}
			if !yield(d) {
				return
			}
			if e := (*EntryError)(nil); err != nil && !errors.As(err, &e) {
				return
			}
		}
	}
}

func parse(text []byte, line int, lim strictjson.Limits) document {
	d := document{line: line, json: new(strictjson.Doc)}
	if err := d.json.Reset(text, lim); err != nil {
		d.err = &EntryError{Line: line, Code: codeOf(err), err: err}
	}
	return d
}

// is reports whether the document was refused for that reason.
func (d *document) is(code finding.Code) bool {
	var e *EntryError
	return errors.As(d.err, &e) && e.Code == code
}

// codeOf names what strictjson refuses.
func codeOf(err error) finding.Code {
	var se *strictjson.SyntaxError
	errors.As(err, &se)
	switch {
	case se == nil:
		return finding.NotJSON
	case se.Code == strictjson.CodeBytes:
		return finding.TooLong
	case se.Code == strictjson.CodeDepth:
		return finding.TooDeep
	case se.Code == strictjson.CodeValues:
		return finding.TooMany
	}
	return finding.NotJSON
}

// incomplete reports whether text could become JSON if it went on.
func incomplete(text []byte, lim strictjson.Limits) bool {
	var se *strictjson.SyntaxError
	err := new(strictjson.Doc).Reset(text, lim)
	return errors.As(err, &se) && se.Code == strictjson.CodeEnd
}

// objectBelow reports whether the text, which is not JSON as a whole, has a line
// at or behind i that is a JSON object. Of pretty-printed JSON such lines are
// indented.
func objectBelow(text []byte, i int, lim strictjson.Limits) bool {
	for line := range bytes.Lines(text[i:]) {
		if line[0] == '{' && new(strictjson.Doc).Reset(line, lim) == nil {
			return true
		}
	}
	return false
}

// lines reads lines of bounded length.
type lines struct {
	r    *bufio.Reader
	most int // bytes of a line
	n    int // the number of the line that was read last
}

// next returns the next line that is not blank, in memory of its own. The error is
// io.EOF at the end, an *EntryError for a line that is too long, of which at most
// the bound is held, or that of the reader.
func (l *lines) next() ([]byte, error) {
	for {
		var line []byte
		long := false
		var err error
		for more := true; more; {
			var part []byte
			part, err = l.r.ReadSlice('\n')
			more = err == bufio.ErrBufferFull
			if long = long || len(line)+len(part) > l.most; !long {
				line = append(line, part...)
			}
		}
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("ground: read: %w", err)
		}
		if err == io.EOF && len(line) == 0 && !long {
			return nil, io.EOF
		}
		l.n++
		if long {
			return nil, &EntryError{Line: l.n, Code: finding.TooLong}
		}
		if len(bytes.TrimSpace(line)) > 0 {
			return line, nil
		}
	}
}

// rest returns what follows behind first, with it, up to the bound and a byte.
func (l *lines) rest(first []byte) ([]byte, error) {
	more, err := io.ReadAll(io.LimitReader(l.r, int64(l.most-len(first)+1)))
	if err != nil {
		return nil, fmt.Errorf("ground: read: %w", err)
	}
	return append(first, more...), nil
}
