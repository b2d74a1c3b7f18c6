// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// TestShare: one hoarder has half, two have a third each, whoever comes finds something,
// and what was given back is there again.
func TestShare(t *testing.T) {
	s := NewShare(96)
	grab := func(who string) (n int64) {
		for s.Take(who, 1) == nil {
			n++
		}
		return n
	}
	if n := grab("a"); n != 48 {
		t.Errorf("one alone has %d", n)
	}
	if n := grab("b"); n != 24 {
		t.Errorf("the second has %d", n)
	}
	if s.Take("a", 1) != ErrGreedy || s.Take("c", 13) != nil || s.Take("d", 12) != ErrFull || s.Take("d", 11) != nil || s.Take("e", 1) != ErrFull {
		t.Errorf("%+v", s)
	}
	s.Give("a", 48)
	s.Give("c", 13)
	s.Give("d", 11)
	if n := grab("b"); n != 24 {
		t.Errorf("then the second has %d more", n)
	}
	s.Give("b", 48)
	if n := grab(""); n != 96 || s.Take("", 1) != ErrFull {
		t.Errorf("nobody in particular has %d", n)
	}
	s.Give("", 96)
	if s.used != 0 || len(s.by) != 0 {
		t.Errorf("%+v", s)
	}
}

// TestShareOdd: what is left is never less than what somebody has.
func TestShareOdd(t *testing.T) {
	for _, total := range []int64{1, 3, 97} {
		s, n := NewShare(total), int64(0)
		for s.Take("a", 1) == nil {
			n++
		}
		if want := max(total/2, 1); n != want {
			t.Errorf("of %d one has %d", total, n)
		}
	}
	if s := new(Share); s.Take("a", 0) != nil || s.Take("a", 1) != ErrFull {
		t.Error("the zero Share has something")
	}
}

// TestSharePlaces: with few places each still gets the first.
func TestSharePlaces(t *testing.T) {
	s := NewShare(2)
	if s.Take("a", 1) != nil || s.Take("a", 1) != ErrGreedy || s.Take("b", 1) != nil || s.Take("c", 1) != ErrFull {
		t.Errorf("%+v", s)
	}
}

// TestRoom: a body that has as many bytes as it may fits in the least bound there is, and
// never takes more than that.
func TestRoom(t *testing.T) {
	for _, most := range []int{1, 4095, 4096, 4097, 10_000, 1 << 20} {
		s := NewShare(Least(most))
		r := &room{of: s, who: "a", most: most}
		body := bytes.Repeat([]byte("x"), most)
		var all []byte
		for from := iotest.HalfReader(bytes.NewReader(body)); ; {
			var err error
			if all, err = r.more(all); err != nil {
				t.Fatalf("%d: %v", most, err)
			}
			n, err := from.Read(all[len(all):cap(all)])
			all = all[:len(all)+n]
			if err == io.EOF {
				break
			}
		}
		if !bytes.Equal(all, body) || s.used != int64(cap(all)) || s.used > int64(most)+1 {
			t.Errorf("%d: %d bytes in %d, %d taken", most, len(all), cap(all), s.used)
		}
		r.leave()
		if fmt.Sprint(s.used, len(s.by)) != "0 0" {
			t.Errorf("%d: %d, %v", most, s.used, s.by)
		}
	}
}

// TestReaderLeaves: the body of a request that is refused has no room, although its client
// may take seconds to read the refusal.
func TestReaderLeaves(t *testing.T) {
	gone := iotest.ErrReader(errors.New("gone"))
	for name, c := range map[string]struct {
		total  int64
		body   io.Reader
		length int64
		want   error // nil: another one
	}{
		"full":               {6 << 10, strings.NewReader(strings.Repeat("x", 8<<10)), 8 << 10, ErrFull},
		"greedy":             {10 << 10, strings.NewReader(strings.Repeat("x", 8<<10)), 8 << 10, ErrGreedy},
		"too long":           {64 << 10, strings.NewReader(strings.Repeat("x", 17<<10)), -1, ErrTooLong},
		"too long, declared": {64 << 10, strings.NewReader(""), 17 << 10, ErrTooLong},
		"gone":               {64 << 10, io.MultiReader(strings.NewReader("x"), gone), -1, nil},
	} {
		rd := &Reader{Share: NewShare(c.total), Most: 16 << 10, Patience: time.Minute}
		r := httptest.NewRequest(http.MethodPost, "/", c.body)
		r.ContentLength = c.length
		body, done, err := rd.Read(httptest.NewRecorder(), r, "a")
		if err == nil || c.want != nil && err != c.want || body != nil || rd.Share.used != 0 || len(rd.Share.by) != 0 {
			t.Errorf("%s: %v, %d bytes; %d are taken", name, err, len(body), rd.Share.used)
		}
		if done(); rd.Share.used != 0 {
			t.Errorf("%s: %d are taken", name, rd.Share.used)
		}
	}
}
