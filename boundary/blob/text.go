// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
	"golang.org/x/text/transform"
)

// Weight says what counts in a reading.
type Weight uint8

// The weights.
const (
	Whole  Weight = iota // everything: this is how the text is meant to be read
	Hidden               // control tokens and hidden characters, but not control characters
	Tokens               // control tokens only
)

// A Reading is a blob as one reader sees it.
type Reading struct {
	Weight Weight

	body []byte            // behind the byte order mark
	mark []byte            // the byte order mark
	enc  encoding.Encoding // nil: UTF-8
	only bool              // to look at: what is found here cannot be removed here
}

// Text returns what the reader sees, without a byte order mark. It is decoded at each call,
// so that no two readings are in memory at a time.
func (r *Reading) Text() string {
	if r.enc == nil {
		return string(r.body)
	}
	// The size comes first: a blob is as large as a message may be, and growing would copy it.
	size, err := io.Copy(io.Discard, r.enc.NewDecoder().Reader(bytes.NewReader(r.body)))
	if err != nil {
		return strings.ToValidUTF8(string(r.body), "\ufffd")
	}
	var b strings.Builder
	b.Grow(int(size))
	_, _ = io.Copy(&b, r.enc.NewDecoder().Reader(bytes.NewReader(r.body))) // as before
	return strings.ToValidUTF8(b.String(), "\ufffd")
}

// reads reports whether the reader of body sees text, without a copy of it.
func (r *Reading) reads(body []byte, text string) bool {
	d := r.enc.NewDecoder().Reader(bytes.NewReader(body))
	var buf [4 << 10]byte
	for {
		n, err := d.Read(buf[:])
		if !strings.HasPrefix(text, string(buf[:n])) {
			return false
		}
		text = text[n:]
		if err != nil {
			return err == io.EOF && text == ""
		}
	}
}

// UTF8 reports whether the reading is of UTF-8.
func (r *Reading) UTF8() bool { return r.enc == nil }

// Encode returns the bytes for which the reader sees text, never nil if ok. ok is false where
// the character set cannot spell it.
func (r *Reading) Encode(text string) (plain []byte, ok bool) {
	switch {
	case r.only:
		return nil, false
	case r.enc == nil:
		return append(append([]byte{}, r.mark...), text...), true
	}
	var b bytes.Buffer
	b.Grow(len(r.mark) + len(r.body))
	b.Write(r.mark)
	if _, err := b.ReadFrom(transform.NewReader(strings.NewReader(text), r.enc.NewEncoder())); err != nil {
		return nil, false
	}
	return b.Bytes(), r.reads(b.Bytes()[len(r.mark):], text)
}

// A Content is what is known of a blob.
type Content struct {
	Readings []Reading // none: not text
	// Unknown: the type names a character set that this package cannot decode.
	Unknown bool
}

// Read returns the readings of a blob of that media type.
func Read(plain []byte, mediaType string) Content {
	t, charsets := parseType(mediaType)
	return read(plain, classOf(t), charsets)
}

func read(plain []byte, class class, charsets []string) Content {
	named, unknown := encodings(charsets)
	if class == binary || class == unnamed && !looksText(plain, named) {
		return Content{Unknown: unknown}
	}
	return Content{Readings: readings(plain, named, charsets), Unknown: unknown}
}

// looksText reports whether bytes of a type that says nothing are text.
func looksText(plain []byte, named []encoding.Encoding) bool {
	if enc, _ := marked(plain); enc != nil || len(named) > 0 || utf16Guess(plain) != nil {
		return true
	}
	return utf8.Valid(plain) && bytes.IndexByte(plain, 0) < 0
}

// prefix is how much of a blob shows whether it is text.
const prefix = 4 << 10

// ReadBase64 is Read of what s spells, whose form is not Ambiguous. It decodes no picture.
func ReadBase64(s, mediaType string) Content {
	t, charsets := parseType(mediaType)
	return readBase64(s, classOf(t), charsets)
}

func readBase64(s string, class class, charsets []string) Content {
	if !mayBeText(s, class, charsets) {
		_, unknown := encodings(charsets)
		return Content{Unknown: unknown}
	}
	return read(Decode(s), class, charsets)
}

// mayBeText reports, from the beginning of a base64 string alone, whether read could
// find text in it.
func mayBeText(s string, class class, charsets []string) bool {
	switch class {
	case textual:
		return true
	case binary:
		return false
	}
	if named, _ := encodings(charsets); len(named) > 0 || len(s) <= prefix {
		return true
	}
	head := Decode(s[:prefix])
	if enc, _ := marked(head); enc != nil || utf16Guess(head) != nil {
		return true
	}
	for i := 0; i < 4 && !utf8.Valid(head); i++ { // the cut may go through a character
		head = head[:len(head)-1]
	}
	return utf8.Valid(head) && bytes.IndexByte(head, 0) < 0
}

// readings returns what readers see, the intended reading first.
func readings(plain []byte, named []encoding.Encoding, charsets []string) []Reading {
	clean := utf8.Valid(plain) && bytes.IndexByte(plain, 0) < 0
	enc, mark := marked(plain)
	var list []Reading
	switch body := plain[len(mark):]; {
	case mark != nil && enc == nil: // UTF-8 with a mark
		clean = utf8.Valid(body)
		list = append(list, utf8Reading(body, mark, !clean && len(named) > 0))
	case mark != nil:
		list = append(list, decoded(enc, body, mark, Whole))
		if len(body) >= 2 && body[0] == 0 && body[1] == 0 && len(mark) == 2 && mark[0] == 0xff {
			list = append(list, decoded(wide32le, body[2:], plain[:4], Whole))
		}
	case len(named) == 0 && utf16Guess(plain) != nil:
		list = append(list, decoded(utf16Guess(plain), plain, nil, Whole))
	case len(named) == 0 && !utf8.Valid(plain):
		list = append(list, decoded(charmap.Windows1252, plain, nil, Hidden))
	}
	for _, enc := range named {
		weight := Whole
		if clean && !wide(enc) {
			weight = Tokens // it is UTF-8, whatever its type says
		} else if mark != nil {
			weight = Hidden
		}
		list = append(list, decoded(enc, plain, nil, weight))
	}
	for _, c := range charsets {
		if c == "utf-16" && mark == nil { // some readers begin with the high byte
			list = append(list, decoded(wide16be, plain, nil, Hidden))
		}
	}
	if mark == nil || enc != nil {
		list = append(list, asUTF8(plain, clean, list))
	}
	return list
}

// asUTF8 is what a reader sees who takes everything for UTF-8.
func asUTF8(plain []byte, clean bool, others []Reading) Reading {
	r := utf8Reading(plain, nil, false)
	if clean || len(others) == 0 {
		return r
	}
	r.Weight = Hidden
	// Ill-formed bytes would not survive. Where another character set is certain they must.
	r.only = others[0].Weight == Whole
	return r
}

func utf8Reading(body, mark []byte, only bool) Reading {
	return Reading{body: body, mark: mark, only: only}
}

func decoded(enc encoding.Encoding, body, mark []byte, weight Weight) Reading {
	return Reading{Weight: weight, body: body, mark: mark, enc: enc}
}

var (
	wide16le = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	wide16be = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	wide32le = utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)
	wide32be = utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)
)

// wide reports whether ASCII is not spelled as ASCII.
func wide(enc encoding.Encoding) bool {
	b, err := enc.NewEncoder().Bytes([]byte("<|a|>"))
	return err != nil || string(b) != "<|a|>"
}

// marked returns the byte order mark of a blob and what it stands for, nil for UTF-8.
func marked(b []byte) (encoding.Encoding, []byte) {
	switch {
	case bytes.HasPrefix(b, []byte{0xef, 0xbb, 0xbf}):
		return nil, b[:3]
	case bytes.HasPrefix(b, []byte{0, 0, 0xfe, 0xff}):
		return wide32be, b[:4]
	case bytes.HasPrefix(b, []byte{0xff, 0xfe}):
		return wide16le, b[:2]
	case bytes.HasPrefix(b, []byte{0xfe, 0xff}):
		return wide16be, b[:2]
	}
	return nil, nil
}

// utf16Guess takes bytes for UTF-16 if every other one is mostly zero, as in Latin text,
// and the rest is not.
func utf16Guess(b []byte) encoding.Encoding {
	if len(b) < 2 || len(b)%2 != 0 {
		return nil
	}
	var zeros [2]int
	for i, c := range b[:min(len(b), prefix)] {
		if c == 0 {
			zeros[i%2]++
		}
	}
	half := min(len(b), prefix) / 2
	switch {
	case zeros[1] > half/2 && zeros[0] <= half/16:
		return wide16le
	case zeros[0] > half/2 && zeros[1] <= half/16:
		return wide16be
	}
	return nil
}

// encodings returns the character sets that are named and are not UTF-8.
func encodings(labels []string) (list []encoding.Encoding, unknown bool) {
	for _, label := range labels {
		switch label {
		case "", "utf-8", "utf8", "us-ascii", "ascii", "unicode-1-1-utf-8", "utf-8-sig":
			continue
		case "utf-16", "utf-16le", "utf16", "utf-16-le":
			list = append(list, wide16le)
			continue
		case "utf-16be", "utf-16-be":
			list = append(list, wide16be)
			continue
		case "utf-32le", "utf-32-le":
			list = append(list, wide32le)
			continue
		case "utf-32", "utf32":
			list = append(list, wide32le, wide32be)
			continue
		case "utf-32be", "utf-32-be":
			list = append(list, wide32be)
			continue
		}
		enc, err := htmlindex.Get(label)
		if err != nil || enc == encoding.Replacement {
			enc, err = ianaindex.IANA.Encoding(label)
		}
		if err != nil || enc == nil {
			unknown = true
		} else {
			list = append(list, enc)
		}
	}
	return list, unknown
}

// parseType returns the media type and every charset that it names, in lower case. It takes
// what a strict parser refuses: readers do.
func parseType(s string) (t string, charsets []string) {
	t, params, _ := strings.Cut(s, ";")
	t = strings.ToLower(strings.Trim(t, " \t\r\n\f"))
	for len(charsets) < maxCharsets && params != "" {
		var p string
		p, params, _ = strings.Cut(params, ";")
		name, label, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.Trim(name, " \t\r\n\f"), "charset") {
			charsets = append(charsets, strings.ToLower(strings.Trim(label, " \t\r\n\f\"'")))
		}
	}
	return t, charsets
}

// maxCharsets bounds how many readings a type can ask for.
const maxCharsets = 2

type class uint8

const (
	unnamed class = iota // the type says nothing: text if it looks like it
	binary
	textual
)

// textTypes are the types of applications whose bytes a model may read.
var textTypes = map[string]bool{"application/json": true, "application/xml": true, "application/javascript": true, "application/ecmascript": true,
	"application/x-javascript": true, "application/yaml": true, "application/x-yaml": true, "application/toml": true, "application/sql": true,
	"application/graphql": true, "application/xhtml": true, "application/rtf": true, "application/x-sh": true, "application/x-httpd-php": true,
	"application/typescript": true, "application/x-ndjson": true, "application/jsonl": true, "application/x-www-form-urlencoded": true,
	"application/x-tex": true, "application/x-latex": true, "application/x-subrip": true, "application/csv": true, "model/vnd.mermaid": true}

// classOf says how bytes of a media type are read. Only a type of pictures, sound, fonts
// or packed files is binary: a reader that does not know a type looks at the bytes.
func classOf(t string) class {
	kind, sub, found := strings.Cut(t, "/")
	if !found {
		return unnamed
	}
	if kind == "text" || kind == "message" || textTypes[t] {
		return textual
	}
	for _, suffix := range []string{"+xml", "+json", "+yaml", "+json-seq", "+csv"} {
		if strings.HasSuffix(sub, suffix) {
			return textual
		}
	}
	switch kind {
	case "image", "audio", "video", "font":
		return binary
	}
	switch sub {
	case "pdf", "zip", "gzip", "wasm", "x-tar", "x-7z-compressed", "postscript":
		return binary
	}
	return unnamed
}
