// SPDX-License-Identifier: Apache-2.0

package eventstream

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

var cases = []struct{ name, in, want string }{
	{"LF", "data: a\n\ndata: b\n\n", "|a;|b"},
	{"CR", "data: a\r\rdata: b\r\r", "|a;|b"},
	{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", "|a;|b"},
	{"mixed ends", "data: a\rdata: b\ndata: c\r\n\r\n", "|a\nb\nc"},
	{"byte order mark", "\ufeffdata: a\n\n", "|a"},
	{"byte order mark before a comment", "\ufeff: x\ndata: a\n\n", "|a"},
	{"byte order mark alone", "\ufeff\n\ndata: a\n\n", "|a"},
	{"second mark is part of a name", "\ufeff\ufeffdata: a\n\ndata: b\n\n", "|b"},
	{"mark behind a comment is part of a name", ": x\n\ufeffdata: a\n\ndata: b\n\n", "|b"},
	{"mark behind an empty line is part of a name", "\n\ufeffdata: a\n\ndata: b\n\n", "|b"},
	{"comment", ": keep-alive\n\ndata: a\n: x\ndata: b\n\n", "|a\nb"},
	{"one space", "data:  a\n\ndata:b\n\n", "| a;|b"},
	{"no colon", "data\n\n", "|"},
	{"empty data lines", "data\ndata\n\n", "|\n"},
	{"unknown fields", "foo: x\ndata: a\nDATA: b\n data: c\n\n", "|a"},
	{"event name", "event: ping\ndata: a\n\nevent: message\ndata: b\n\n", "ping|a;message|b"},
	{"long name", "event: " + strings.Repeat("n", 70) + "\ndata\n\n", strings.Repeat("n", MaxName) + "|"},
	{"name is of one event", "event: e\n\ndata: a\n\n", "|a"},
	{"cut", "data: a\n\ndata: b\n", "|a"},
	{"cut in a line", "data: a\n\ndata: b", "|a"},
	{"nothing", "", ""},
	{"empty lines", "\n\r\n\r\r\n\n", ""},
}

func all(r *Reader) (got []string, err error) {
	for {
		e, err := r.Next()
		if err != nil {
			return got, err
		}
		got = append(got, e.Name+"|"+string(e.Data))
	}
}

func TestReader(t *testing.T) {
	for _, tt := range cases {
		for name, r := range map[string]io.Reader{
			"whole":    strings.NewReader(tt.in),
			"bytes":    iotest.OneByteReader(strings.NewReader(tt.in)),
			"with end": iotest.DataErrReader(strings.NewReader(tt.in)),
		} {
			got, err := all(&Reader{R: r})
			if s := strings.Join(got, ";"); s != tt.want || err != io.EOF {
				t.Errorf("%s/%s: %q, %v; want %q", tt.name, name, s, err, tt.want)
			}
		}
		if got := strings.Join(byTheBook(tt.in), ";"); got != tt.want {
			t.Errorf("%s: the reading of the standard is %q", tt.name, got)
		}
	}
}

func TestFields(t *testing.T) {
	for _, tt := range []struct {
		in    string
		id    string
		retry time.Duration
	}{
		{"id: 7\ndata: a\n\n", "7", 0},
		{"id: 7\ndata: a\n\nid\n\n", "", 0},
		{"id: 7\n\n", "7", 0},
		{"id: 7\n", "", 0},
		{"id: 7\n\ndata: a\n\n", "7", 0},
		{"id: a\x00b\n\n", "", 0},
		{"id: a\u00e9\n\n", "", 0},
		{"id: a\xff\n\n", "", 0},
		{"id: " + strings.Repeat("i", MaxID+1) + "\n\n", "", 0},
		{"retry: 1500\n\n", "", 1500 * time.Millisecond},
		{"retry: 99999999999999999999999\n", "", MaxRetry},
		{"retry: 5x\nretry: -5\nretry:\n\n", "", 0},
	} {
		r := &Reader{R: strings.NewReader(tt.in)}
		if _, err := all(r); r.LastID() != tt.id || r.Retry() != tt.retry || err != io.EOF {
			t.Errorf("%.40q: id %q, retry %v, %v", tt.in, r.LastID(), r.Retry(), err)
		}
	}
}

// repeated is s, n times.
type repeated struct {
	s string
	n int
}

func (r *repeated) Read(p []byte) (n int, err error) {
	for ; r.n > 0 && n+len(r.s) <= len(p); r.n-- {
		n += copy(p[n:], r.s)
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }

func TestBounds(t *testing.T) {
	const limit = 1 << 20
	for _, tt := range []struct {
		name string
		r    io.Reader
		want error
	}{
		{"at the bound", io.MultiReader(strings.NewReader("data: "), &repeated{"x", limit}, strings.NewReader("\n\n")), io.EOF},
		{"one line", io.MultiReader(strings.NewReader("data: "), &repeated{"x", 100 << 20}), ErrTooLong},
		{"one name", &repeated{"x", 100 << 20}, ErrTooLong},
		{"many lines", &repeated{"data: x\n", limit}, ErrTooLong},
		{"many empty lines", &repeated{"data\n", 2 * limit}, ErrTooLong},
		{"endless comment", io.MultiReader(strings.NewReader(":"), &repeated{"x", 100 << 20}), io.EOF},
		{"many comments", &repeated{": x\n", 10 << 20}, io.EOF},
		{"no progress", silent{}, io.ErrNoProgress},
	} {
		r := &Reader{R: tt.r} // Max is 1 MiB
		if _, err := all(r); !errors.Is(err, tt.want) || cap(r.line)+cap(r.ev.Data) > 4*limit {
			t.Errorf("%s: %v, want %v (%d bytes held)", tt.name, err, tt.want, cap(r.line)+cap(r.ev.Data))
		}
	}
}

func TestOdd(t *testing.T) {
	for line, want := range map[string]bool{
		"data: a": false, "data: \"a\u00a0\tb\"": false, ": comment": false, "id: 1": false, "retry: x": false, "event: e": false,
		"Data: a": true, " data: a": true, "foo": true, "data: a\vdata: b": true, "data: \u2028": true, ": \u0085data: b": true, "event: \x1e": true,
	} {
		for _, raw := range []bool{true, false} {
			d := &Decoder{Raw: raw}
			d.Feed([]byte(line + "\nevent: x\n\nevent: y\n\n"))
			e, _, _ := d.Next()
			next, _, _ := d.Next()
			if e.Odd != (want && raw) || next.Odd {
				t.Errorf("%q: odd %t, the next one %t", line, e.Odd, next.Odd)
			}
		}
	}
}

// pieces feeds a Decoder with at most n bytes at a time.
func pieces(d *Decoder, src []byte, n int) (events []Event, err error) {
	for len(src) > 0 {
		k := min(n, len(src))
		d.Feed(bytes.Clone(src[:k]))
		for {
			e, ok, err := d.Next()
			if err != nil {
				return events, err
			}
			if !ok {
				break
			}
			e.Raw = bytes.Clone(e.Raw)
			events = append(events, e)
		}
		src = src[k:]
	}
	return events, nil
}

func said(events []Event) (out []string) {
	for _, e := range events {
		if e.HasData {
			out = append(out, e.Name+"|"+string(e.Data))
		}
	}
	return out
}

// byTheBook reads a whole text as the standard words it.
func byTheBook(text string) (out []string) {
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(text, "\n")
	name, any := "", false
	var data []string
	for _, line := range lines[:len(lines)-1] {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if any {
				out = append(out, name+"|"+strings.Join(data, "\n"))
			}
			name, any, data = "", false, nil
		case field == "data":
			data, any = append(data, value), true
		case field == "event":
			name = value[:min(len(value), MaxName)]
		}
	}
	return out
}

// moved is an Append whose old memory is written over, as that of a pool may be.
func moved(b, more []byte) []byte {
	grown := append(append(make([]byte, 0, len(b)+len(more)), b...), more...)
	for i := range b[:cap(b)] {
		b[:cap(b)][i] = '!'
	}
	return grown
}

// FuzzDecoder: a stream is cut into the events that the standard describes, however it
// comes in; with Raw its bytes are all there, and without Raw the events are the same.
func FuzzDecoder(f *testing.F) {
	for _, tt := range cases {
		f.Add([]byte(tt.in), 3)
	}
	f.Add([]byte("data: a\n\ndata:b\r\n\r\nevent: x\rdata: c\rdata: d\r\r: comment\n\ndata"), 1)
	f.Fuzz(func(t *testing.T, src []byte, n int) {
		n = 1 + max(0, n)%50
		want := byTheBook(string(src))
		for _, size := range []int{len(src) + 1, n, 1} {
			d := &Decoder{Raw: true}
			events, err := pieces(d, src, size)
			if got := said(events); err != nil || !slices.Equal(got, want) {
				t.Errorf("in pieces of %d: %q, %v; by the book %q", size, got, err, want)
			}
			var raw []byte
			for _, e := range events {
				raw = append(raw, e.Raw...)
			}
			if raw = append(raw, d.Rest()...); !bytes.Equal(raw, src) {
				t.Errorf("in pieces of %d: %q became %q", size, src, raw)
			}
			plain := &Decoder{Append: moved}
			events, err = pieces(plain, src, size)
			if got := said(events); err != nil || !slices.Equal(got, want) {
				t.Errorf("without Raw, in pieces of %d: %q, %v; by the book %q", size, got, err, want)
			}
			if plain.LastID() != d.LastID() || plain.Retry() != d.Retry() || d.Retry() > MaxRetry || strings.ContainsFunc(d.LastID(), unprintable) {
				t.Errorf("ids %q and %q, retry %v and %v", plain.LastID(), d.LastID(), plain.Retry(), d.Retry())
			}
		}
		small := &Decoder{Max: 20}
		events, _ := pieces(small, src, n)
		for i, s := range said(events) {
			if i >= len(want) || s != want[i] {
				t.Errorf("under a bound event %d is %q", i, s)
			}
		}
	})
}

func BenchmarkReader(b *testing.B) {
	for name, text := range map[string]string{
		"tokens":     strings.Repeat("event: message\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word\"}}]}\n\n", 1000),
		"one line":   "data: " + strings.Repeat("x", 1<<20) + "\n\n",
		"bare CRs":   strings.Repeat("data: x\r\r", 10_000),
		"empty data": strings.Repeat("data\n", 10_000) + "\n",
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := all(&Reader{R: strings.NewReader(text), Decoder: Decoder{Max: 4 << 20}}); err != io.EOF {
					b.Fatal(err)
				}
			}
		})
	}
}
