// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A RowEdit says what becomes of a row, an object, whose text is under the key. If it
// returns an error, the row comes out with its edits and a member "error".
type RowEdit func(row, text strictjson.Value, e *strictjson.Edits) error

// RowOptions say which rows EditRows reads, and what its messages call them.
type RowOptions struct {
	File string // as OpenInput takes it
	Key  string // the member that holds the text
	Verb string // begins an error
	Done string // says in an error what is done with a row, such as "cleaned"
}

// EditRows edits every row of JSON lines. Rows come out in the order and the spelling
// in which they came in; nothing is lost, whatever a row holds. The error says how many
// rows could not be edited.
func EditRows(dst io.Writer, stdin io.Reader, o RowOptions, edit RowEdit) error {
	in, err := OpenInput(o.File, stdin)
	if err != nil {
		return fmt.Errorf("%s: %w", o.Verb, err)
	}
	defer in.Close()
	strict, err := scrub.Compile(scrub.Policy{})
	if err != nil {
		return fmt.Errorf("%s: %w", o.Verb, err)
	}
	w := bufio.NewWriterSize(dst, 64<<10)
	x := rowEditor{key: o.Key, edit: edit, strict: strict}
	total, bad, err := x.copy(w, NewRows(in), o.File)
	if ferr := w.Flush(); err == nil && ferr != nil {
		err = fmt.Errorf("write: %w", ferr)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", o.Verb, err)
	case bad > 0:
		answer := "its answer has"
		if bad > 1 {
			answer = "their answers have"
		}
		return fmt.Errorf(`%s: %d of %s could not be %s: %s the member "error"`, o.Verb, bad, Plural(total, "row"), o.Done, answer)
	}
	return nil
}

type rowEditor struct {
	key    string
	edit   RowEdit
	strict *scrub.Scrubber // for what is not a row

	doc    strictjson.Doc
	object bool // the row is an object that can take one member more
	edits  strictjson.Edits
	result scrub.Result
	out    []byte
}

func (x *rowEditor) copy(w *bufio.Writer, in *Rows, file string) (total, bad int, err error) {
	for {
		line, err := in.Next()
		if err != nil && !errors.Is(err, ErrTooLarge) {
			if err == io.EOF {
				err = nil
			} else {
				err = fmt.Errorf("read %s: %w", InputName(file), err)
			}
			return total, bad, err
		}
		x.object = false
		var out []byte
		if err == nil {
			out, err = x.row(line)
		}
		total++
		if err != nil {
			bad++
			out = x.failed(line, total, err)
		}
		if _, err := w.Write(append(out, '\n')); err != nil {
			return total, bad, fmt.Errorf("write: %w", err)
		}
		if in.Waiting() {
			if err := w.Flush(); err != nil {
				return total, bad, fmt.Errorf("write: %w", err)
			}
		}
	}
}

// row returns the row, edited. An empty line stays one.
func (x *rowEditor) row(line []byte) ([]byte, error) {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(bytes.TrimSpace(line)) == 0 {
		return line, nil
	}
	if err := x.doc.Reset(line, strictjson.Limits{Bytes: MaxInput, MendSurrogates: true}); err != nil {
		return nil, err
	}
	root := x.doc.Root()
	if root.Kind() != '{' {
		return nil, errors.New("not an object")
	}
	x.object = true
	x.edits.Reset()
	text := root.Get(x.key)
	if text.Kind() != '"' {
		if !text.Exists() {
			return nil, fmt.Errorf("the row has no member %s", finding.Quote(x.key))
		}
		return nil, fmt.Errorf("the member %s is not a string", finding.Quote(x.key))
	}
	if err := x.edit(root, text, &x.edits); err != nil {
		return nil, err
	}
	x.out = x.edits.Apply(x.out[:0], root)
	return x.out, nil
}

// failed returns what comes out for a row that could not be edited. An object gains a
// member "error". Anything else stands, cleaned, as a string under "row".
func (x *rowEditor) failed(line []byte, n int, err error) []byte {
	why := strictjson.AppendQuote(nil, fmt.Sprintf("row %d: %v", n, err))
	if x.object {
		x.edits.Append(x.doc.Root(), "error", why)
		return x.edits.Apply(x.out[:0], x.doc.Root())
	}
	x.strict.Scrub(string(line), &x.result)
	out := append([]byte(`{"error":`), why...)
	out = append(out, `,"row":`...)
	out = strictjson.AppendQuote(out, x.result.Clean.String())
	return append(out, '}')
}
