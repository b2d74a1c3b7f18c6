package main

import (
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pellucid-mcp/pellucid/internal/ucd"
)

// writeJSON writes v and a line feed. What a terminal would not show as itself
// stands as an escape, so that a person can look at the output as well.
func writeJSON(w io.Writer, v any) error {
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	_, err = w.Write(append(escapeJSON(b), '\n'))
	return err
}

// escapeJSON escapes every character of a JSON text that a person would not see.
// Outside of ASCII, JSON has characters in strings only.
func escapeJSON(src []byte) []byte {
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
