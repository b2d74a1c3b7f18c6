// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

var sseTests = []struct{ name, in, want string }{
	{"LF", "data: a\n\ndata: b\n\n", "a|b"},
	{"CR", "data: a\r\rdata: b\r\r", "a|b"},
	{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", "a|b"},
	{"mixed ends", "data: a\rdata: b\ndata: c\r\n\r\n", "a\nb\nc"},
	{"BOM", "\ufeffdata: a\n\n", "a"},
	{"second BOM is part of a name", "\ufeff\ufeffdata: a\n\ndata: b\n\n", "b"},
	{"comment", ": keep-alive\n\ndata: a\n: x\ndata: b\n\n", "a\nb"},
	{"one space", "data:  a\n\ndata:b\n\n", " a|b"},
	{"no colon", "data\n\n", ""},
	{"empty data lines", "data\ndata\n\n", "\n"},
	{"unknown fields", "foo: x\ndata: a\nDATA: b\n data: c\n\n", "a"},
	{"event name", "event: ping\ndata: a\n\nevent: message\ndata: b\n\n", "ping=a|message=b"},
	{"name is of one event", "event: e\n\ndata: a\n\n", "a"},
	{"cut", "data: a\n\ndata: b\n", "a"},
	{"cut in a line", "data: a\n\ndata: b", "a"},
	{"nothing", "", ""},
	{"empty lines", "\n\r\n\r\r\n\n", ""},
}

func allEvents(r io.Reader, limit int) (got []string, er *eventReader, err error) {
	er = &eventReader{r: r, max: limit}
	for {
		ev, err := er.next()
		if err != nil {
			return got, er, err
		}
		s := string(ev.data)
		if ev.name != "" {
			s = ev.name + "=" + s
		}
		got = append(got, s)
		PutBuffer(ev.data)
	}
}

func TestEvents(t *testing.T) {
	for _, tt := range sseTests {
		for name, r := range map[string]io.Reader{
			"whole":    strings.NewReader(tt.in),
			"bytes":    iotest.OneByteReader(strings.NewReader(tt.in)),
			"with end": iotest.DataErrReader(strings.NewReader(tt.in)),
		} {
			got, _, err := allEvents(r, 1<<20)
			if s := strings.Join(got, "|"); s != tt.want || err != io.EOF {
				t.Errorf("%s/%s: %q, %v; want %q", tt.name, name, s, err, tt.want)
			}
		}
	}
}

func TestEventFields(t *testing.T) {
	for _, tt := range []struct {
		in    string
		id    string
		retry time.Duration
	}{
		{"id: 7\ndata: a\n\n", "7", 0},
		{"id: 7\ndata: a\n\nid\n\n", "", 0},
		{"id: 7\n\n", "7", 0},
		{"id: 7\n", "", 0},
		{"id: a\x00b\n\n", "", 0},
		{"id: a\u00e9\n\n", "", 0},
		{"id: " + strings.Repeat("i", maxEventID+1) + "\n\n", "", 0},
		{"retry: 1500\n\n", "", 1500 * time.Millisecond},
		{"retry: 99999999999999999999999\n", "", maxRetry},
		{"retry: 5x\nretry: -5\nretry:\n\n", "", 0},
	} {
		_, er, _ := allEvents(strings.NewReader(tt.in), 1<<20)
		if er.lastID != tt.id || er.retry != tt.retry {
			t.Errorf("%.40q: id %q, retry %v", tt.in, er.lastID, er.retry)
		}
	}
}

func TestEventBounds(t *testing.T) {
	const limit = 1 << 20
	for _, tt := range []struct {
		name string
		r    io.Reader
		want error
	}{
		{"at the bound", endless("data: ", limit, "\n\n"), io.EOF},
		{"one line", endless("data: ", 100<<20, "\n\n"), errEventTooLong},
		{"one name", endless("", 100<<20, "\n\n"), errEventTooLong},
		{"many lines", strings.NewReader(strings.Repeat("data: x\n", limit)), errEventTooLong},
		{"many empty lines", strings.NewReader(strings.Repeat("data\n", 2*limit)), errEventTooLong},
		{"endless comment", endless(":", 100<<20, ""), io.EOF},
		{"no progress", neverReader{}, io.ErrNoProgress},
	} {
		if _, er, err := allEvents(tt.r, limit); !errors.Is(err, tt.want) || cap(er.line) > 4*limit {
			t.Errorf("%s: %v, want %v (%d bytes held)", tt.name, err, tt.want, cap(er.line))
		}
	}
}

func FuzzEvents(f *testing.F) {
	for _, tt := range sseTests {
		f.Add([]byte(tt.in), 3)
	}
	f.Fuzz(func(t *testing.T, b []byte, chunk int) {
		want, _, wantErr := allEvents(bytes.NewReader(b), 200)
		got, er, err := allEvents(&chunked{b, 1 + max(0, chunk)%50}, 200)
		if fmt.Sprint(got) != fmt.Sprint(want) || (err == io.EOF) != (wantErr == io.EOF) {
			t.Fatalf("in pieces %q (%v), whole %q (%v)", got, err, want, wantErr)
		}
		if !validHeaderValue(er.lastID) || er.retry > maxRetry {
			t.Fatalf("id %q, retry %v", er.lastID, er.retry)
		}
		for _, s := range got {
			if strings.Contains(s, "\r") {
				t.Fatalf("a line end in %q", s)
			}
		}
	})
}

func TestHeaderEncoding(t *testing.T) {
	for _, tt := range []struct{ plain, header string }{
		{"search", "search"},
		{"two words, (1)", "two words, (1)"},
		{"", ""},
		{" lead", "=?base64?IGxlYWQ=?="},
		{"trail ", "=?base64?dHJhaWwg?="},
		{"\ttab", "=?base64?CXRhYg==?="},
		{"a\r\nX-Evil: 1", "=?base64?YQ0KWC1FdmlsOiAx?="},
		{"\u65e5\u672c", "=?base64?5pel5pys?="},
		{"=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="},
	} {
		if got := encodeHeader(tt.plain); got != tt.header {
			t.Errorf("encodeHeader(%q) = %q, want %q", tt.plain, got, tt.header)
		}
		if got, ok := decodeHeader(tt.header); got != tt.plain || !ok {
			t.Errorf("decodeHeader(%q) = %q, %v", tt.header, got, ok)
		}
	}
	for _, bad := range []string{"=?base64?!?=", "=?base64?YQ?="} {
		if _, ok := decodeHeader(bad); ok {
			t.Errorf("decodeHeader(%q) was accepted", bad)
		}
	}
}

func FuzzHeaderEncoding(f *testing.F) {
	f.Add("=?base64??=")
	f.Fuzz(func(t *testing.T, s string) {
		h := encodeHeader(s)
		if back, ok := decodeHeader(h); back != s || !ok || !validHeaderValue(h) {
			t.Fatalf("%q became %q became %q", s, h, back)
		}
	})
}
