package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/pellucid-mcp/pellucid/internal/strictjson"
	"github.com/pellucid-mcp/pellucid/scrub"
)

// runRows cleans one member of every row. Rows come out in the order and the
// spelling in which they came in; nothing is lost, whatever a row holds.
func (c *scrubCmd) runRows(e *env, s *scrub.Scrubber) error {
	in, err := openInput(c.File, e.Stdin)
	if err != nil {
		return fmt.Errorf("scrub: %w", err)
	}
	defer in.Close()
	w := bufio.NewWriterSize(e.Stdout, 64<<10)
	strict, err := scrub.Compile(scrub.Policy{})
	if err != nil {
		return fmt.Errorf("scrub: %w", err)
	}
	x := rowScrubber{key: c.Key, scrubber: s, strict: strict}
	total, bad, err := c.copyRows(w, newRows(in), &x)
	if ferr := w.Flush(); err == nil && ferr != nil {
		err = fmt.Errorf("write: %w", ferr)
	}
	switch {
	case err != nil:
		return fmt.Errorf("scrub: %w", err)
	case bad > 0:
		return fmt.Errorf(`scrub: %d of %s could not be cleaned and carry a member "error"`, bad, plural(total, "row"))
	}
	return nil
}

func (c *scrubCmd) copyRows(w *bufio.Writer, in *rows, x *rowScrubber) (total, bad int, err error) {
	for {
		line, err := in.next()
		if err != nil && !errors.Is(err, errTooLarge) {
			if err == io.EOF {
				err = nil
			} else {
				err = fmt.Errorf("read %s: %w", inputName(c.File), err)
			}
			return total, bad, err
		}
		var out []byte
		if err == nil {
			out, err = x.clean(line)
		}
		total++
		if err != nil {
			bad++
			out = x.failed(line, total, err)
		}
		if _, err := w.Write(append(out, '\n')); err != nil {
			return total, bad, fmt.Errorf("write: %w", err)
		}
		if in.waiting() {
			if err := w.Flush(); err != nil {
				return total, bad, fmt.Errorf("write: %w", err)
			}
		}
	}
}

type rowScrubber struct {
	key      string
	scrubber *scrub.Scrubber
	strict   *scrub.Scrubber // for what is no row

	doc    strictjson.Doc
	object bool // the row is an object that can take one member more
	edits  strictjson.Edits
	result scrub.Result
	out    []byte
}

// clean returns the row with its text cleaned. An empty line stays one.
func (x *rowScrubber) clean(line []byte) ([]byte, error) {
	x.object, x.result.Refused = false, 0
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(bytes.TrimSpace(line)) == 0 {
		return line, nil
	}
	if err := x.doc.Reset(line, strictjson.Limits{Bytes: maxInput, MendSurrogates: true}); err != nil {
		return nil, err
	}
	root := x.doc.Root()
	if root.Kind() != '{' {
		return nil, errors.New("not an object")
	}
	x.object = true
	text := root.Get(x.key)
	if text.Kind() != '"' {
		return nil, errors.New("no text under the key")
	}
	in := text.Text()
	x.scrubber.Scrub(in, &x.result)
	if x.result.Refused != 0 {
		return nil, refusal(&x.result)
	}
	x.edits.Reset()
	if out := x.result.Clean.String(); out != in {
		x.edits.ReplaceText(text, out)
	}
	x.out = x.edits.Apply(x.out[:0], root)
	return x.out, nil
}

// failed returns what comes out for a row that cannot be cleaned. An object
// gains a member "error". Anything else stands, cleaned, as a string under "row".
func (x *rowScrubber) failed(line []byte, n int, err error) []byte {
	why := strictjson.AppendQuote(nil, fmt.Sprintf("row %d: %v", n, err))
	if x.object {
		x.edits.Reset()
		if x.result.Refused != 0 { // then its text must not come out as one
			x.edits.Replace(x.doc.Root().Get(x.key), []byte("null"))
		}
		x.edits.Append(x.doc.Root(), "error", why)
		return x.edits.Apply(x.out[:0], x.doc.Root())
	}
	x.strict.Scrub(string(line), &x.result)
	out := append([]byte(`{"error":`), why...)
	out = append(out, `,"row":`...)
	out = strictjson.AppendQuote(out, x.result.Clean.String())
	return append(out, '}')
}
