// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pellucid-mcp/pellucid/platform/privacy"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// WriteJSON writes v and a line feed. What a terminal would not show as itself
// stands as an escape, so that a person can look at the output as well.
func WriteJSON(w io.Writer, v any) error {
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	_, err = w.Write(append(EscapeJSON(b), '\n'))
	return err
}

// WriteJSONLines writes a line of JSON for every element of a list.
func WriteJSONLines[T, Row any](w io.Writer, list []T, row func(*T) Row) error {
	for i := range list {
		if err := WriteJSON(w, row(&list[i])); err != nil {
			return err
		}
	}
	return nil
}

// CanWrite says why a file could not be written, before the work is done whose outcome it
// is for. A file that is not there is not made.
func CanWrite(name string) error {
	if name == "" {
		return nil
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if info, err = os.Stat(filepath.Dir(name)); err == nil && !info.IsDir() {
			err = errors.New("not a directory")
		}
	case err != nil:
	case info.IsDir():
		err = ErrDirectory
	case info.Mode().IsRegular(): // who reads a pipe would take it for the whole
		var f *os.File
		if f, err = os.OpenFile(name, os.O_WRONLY, 0); err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", finding.Quote(name), WithoutPath(err))
	}
	return nil
}

// WriteWhole has write make the whole of a file.
func WriteWhole(name string, write func(io.Writer) error) error {
	f, err := privacy.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// EscapeJSON escapes every character of a JSON text that a person would not see.
// Outside of ASCII, JSON has characters in strings only.
func EscapeJSON(src []byte) []byte {
	var dst []byte
	done := 0
	for i := 0; i < len(src); {
		r, n := utf8.DecodeRune(src[i:])
		if r >= 0x7F && ucd.Of(r)&(ucd.Hidden|ucd.Flagged) != 0 {
			dst = append(dst, src[done:i]...)
			if r1, r2 := utf16.EncodeRune(r); r1 != utf8.RuneError {
				dst = fmt.Appendf(dst, `\u%04x\u%04x`, r1, r2)
			} else {
				dst = fmt.Appendf(dst, `\u%04x`, r)
			}
			done = i + n
		}
		i += n
	}
	if dst == nil {
		return src
	}
	return append(dst, src[done:]...)
}

// QuotedPath returns err with the path that it names quoted.
func QuotedPath(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", finding.Quote(pe.Path), pe.Err)
	}
	return err
}
