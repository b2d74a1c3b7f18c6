// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A recording is one exchange on a cassette. The package comment is the format.
type recording struct {
	path    string // the format's, behind the base URL
	request []byte
	status  int         // 0: there was no answer
	header  [][2]string // of kept names, in their order
	answer  []byte      // as far as it came
	end     string      // one of the ends
}

// The ends of an exchange.
const (
	endWhole       = "whole"       // the answer came to its end
	endCut         = "cut"         // the connection broke
	endTimeout     = "timeout"     // it was given up: too slow
	endStopped     = "stopped"     // this side had read enough
	endUnreachable = "unreachable" // no answer, no connection
	endCertificate = "certificate"
)

var ends = []string{endWhole, endCut, endTimeout, endStopped, endUnreachable, endCertificate}

// kept are the headers of an answer that this package reads.
var kept = []string{"Content-Type", "Content-Encoding", "Retry-After", "Retry-After-Ms"}

// A cassetteKey says which request a recording answers: the SHA-256 of path, a line
// feed, and the bytes of the request, which one Request spells in one way.
type cassetteKey [sha256.Size]byte

func keyOf(path string, request []byte) cassetteKey {
	h := sha256.New()
	io.WriteString(h, path+"\n")
	h.Write(request)
	return cassetteKey(h.Sum(nil))
}

// first is the first line of every cassette.
const first = `{"cassette":"pellucid-llm","version":1}`

// appendLine appends rec as one line of ASCII.
func (rec *recording) appendLine(dst []byte) []byte {
	key := keyOf(rec.path, rec.request)
	dst = append(dst, `{"key":"`...)
	dst = hex.AppendEncode(dst, key[:])
	dst = appendASCII(append(dst, `","path":`...), rec.path)
	dst = appendBytes(append(dst, ',', '"'), "request", rec.request)
	dst = strconv.AppendInt(append(dst, `,"status":`...), int64(rec.status), 10)
	dst = append(dst, `,"header":{`...)
	for i, h := range rec.header {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendASCII(dst, h[0])
		dst = appendASCII(append(dst, ':'), h[1])
	}
	dst = appendBytes(append(dst, `},"`...), "answer", rec.answer)
	sum := sha256.Sum256(rec.answer)
	dst = append(dst, `,"sum":"`...)
	dst = hex.AppendEncode(dst, sum[:])
	dst = append(dst, `","end":"`...)
	return append(dst, rec.end+"\"}\n"...)
}

// appendBytes appends name, its opening quote being there, and bytes as text, or
// where they are none as name64 and base64.
func appendBytes(dst []byte, name string, b []byte) []byte {
	if utf8.Valid(b) {
		return appendASCII(append(dst, name+`":`...), string(b))
	}
	dst = append(dst, name+`64":"`...)
	return append(base64.StdEncoding.AppendEncode(dst, b), '"')
}

// appendASCII appends s as a JSON string in which everything but printable ASCII is
// escaped: what a stranger has said may hide nothing from whoever opens the file.
func appendASCII(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	unit := func(u rune) {
		dst = append(dst, '\\', 'u', digits[u>>12&15], digits[u>>8&15], digits[u>>4&15], digits[u&15])
	}
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r >= 0x10000:
			unit(0xD800 + (r-0x10000)>>10)
			unit(0xDC00 + (r-0x10000)&0x3FF)
		case r < ' ' || r > '~':
			unit(r)
		default:
			dst = append(dst, byte(r))
		}
	}
	return append(dst, '"')
}

// The bounds of a cassette.
const (
	maxLine     = 512 << 20 // bytes: two of maxBytes in which all is escaped
	maxCassette = 1 << 30   // bytes
)

// A CassetteError says what is wrong with a cassette, and where. It holds nothing
// of it.
type CassetteError struct {
	line int // from 1
	why  string
}

// Error is constant text and the line.
func (e *CassetteError) Error() string {
	return fmt.Sprintf("llm: cassette: line %d: %s", e.line, e.why)
}

// readCassette calls f with every recording, in their order.
func readCassette(r io.Reader, f func(recording)) error {
	n, all := 0, 0
	lines := newLines(r)
	for {
		line, err := lines.next()
		switch {
		case err == io.EOF && n == 0:
			return &CassetteError{1, "is missing"}
		case err == io.EOF:
			return nil
		}
		n++
		all += len(line) + 1
		switch {
		case errors.Is(err, errLine):
			return &CassetteError{n, "is too long, or has no end"}
		case err != nil:
			return fmt.Errorf("llm: cassette: %w", err)
		case all > maxCassette:
			return &CassetteError{n, "goes beyond 1 GiB"}
		case n == 1:
			if string(line) != first {
				return &CassetteError{1, "is not that of a cassette of version 1"}
			}
			continue
		}
		rec, why := parseRecording(line)
		if why != "" {
			return &CassetteError{n, why}
		}
		f(rec)
	}
}

var errLine = errors.New("llm: a line too long, or without end")

// A lines reads lines that end with a line feed, the last one too.
type lines struct {
	r   io.Reader
	buf []byte
	off int // what lies before is given away
	eof bool
}

func newLines(r io.Reader) *lines { return &lines{r: r} }

// next is the next line, valid until the next call, or io.EOF.
func (l *lines) next() ([]byte, error) {
	scanned := l.off
	for {
		if i := bytes.IndexByte(l.buf[scanned:], '\n'); i >= 0 {
			line := l.buf[l.off : scanned+i]
			l.off = scanned + i + 1
			return line, nil
		}
		if len(l.buf)-l.off > maxLine || l.eof && len(l.buf) > l.off {
			return nil, errLine
		}
		if l.eof {
			return nil, io.EOF
		}
		l.buf = append(l.buf[:0], l.buf[l.off:]...)
		scanned, l.off = len(l.buf), 0
		if err := l.fill(); err != nil {
			return nil, err
		}
	}
}

func (l *lines) fill() error {
	if len(l.buf) == cap(l.buf) {
		l.buf = append(make([]byte, 0, max(64<<10, 2*cap(l.buf))), l.buf...)
	}
	n, err := l.r.Read(l.buf[len(l.buf):cap(l.buf)])
	l.buf = l.buf[:len(l.buf)+n]
	if err == io.EOF {
		l.eof, err = true, nil
	}
	return err
}

// members are all that a line may have.
var members = map[string]bool{
	"key": true, "path": true, "request": true, "request64": true, "status": true,
	"header": true, "answer": true, "answer64": true, "sum": true, "end": true,
}

// parseRecording reads a line, or says what is wrong with it. The key and the sum
// are checked, so that a request or an answer that was edited is found.
func parseRecording(line []byte) (rec recording, why string) {
	var d strictjson.Doc
	if d.Reset(line, strictjson.Limits{Bytes: maxLine}) != nil || d.Root().Kind() != '{' {
		return rec, "is not a strict JSON object"
	}
	v := d.Root()
	for name := range v.Members() {
		if !members[name.Text()] {
			return rec, "has a member that there is none of"
		}
	}
	f := lineFields{v: v}
	rec.path, rec.end = f.text("path"), f.text("end")
	rec.request, rec.answer = f.bytes("request"), f.bytes("answer")
	if m := v.Get("status"); m.Exists() {
		n, ok := m.Int64()
		f.bad = f.bad || !ok || n < 0 || n > 599
		rec.status = int(n)
	}
	for name, value := range v.Get("header").Members() {
		if value.Kind() != '"' || !slices.Contains(kept, name.Text()) {
			return rec, "has a header that is not kept"
		}
		rec.header = append(rec.header, [2]string{name.Text(), string([]byte(value.Text()))})
	}
	sum, key := sha256.Sum256(rec.answer), keyOf(rec.path, rec.request)
	unanswered := rec.end == endUnreachable || rec.end == endCertificate
	switch {
	case f.bad || v.Get("header").Kind() != '{':
		return rec, "has a member of another type"
	case f.text("key") != hex.EncodeToString(key[:]):
		return rec, "has a key that is not that of its request"
	case f.text("sum") != hex.EncodeToString(sum[:]):
		return rec, "has a sum that is not that of its answer"
	case !slices.Contains(ends, rec.end):
		return rec, "ends in no known way"
	case rec.status != 0 && (rec.status < 200 || rec.status > 599) || unanswered && rec.status != 0:
		return rec, "has no such status"
	case rec.status == 0 && (rec.end == endWhole || rec.end == endCut || len(rec.answer) > 0):
		return rec, "has an answer without a status"
	}
	return rec, ""
}

// lineFields reads members of a line; bad: one is not of its type.
type lineFields struct {
	v   strictjson.Value
	bad bool
}

func (f *lineFields) text(name string) string {
	m := f.v.Get(name)
	f.bad = f.bad || m.Exists() && m.Kind() != '"'
	return strings.Clone(m.Text())
}

// bytes is a member that stands there as text, or in base64 under name64 where it is not UTF-8.
func (f *lineFields) bytes(name string) []byte {
	plain, coded := f.v.Get(name), f.v.Get(name+"64")
	if plain.Exists() == coded.Exists() {
		f.bad = true
		return nil
	}
	if plain.Exists() {
		return []byte(f.text(name))
	}
	b, err := base64.StdEncoding.Strict().DecodeString(f.text(name + "64"))
	if err != nil || utf8.Valid(b) { // one spelling
		f.bad = true
	}
	return b
}
