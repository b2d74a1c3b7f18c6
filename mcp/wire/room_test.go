// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// TestArrivalsHaveRoom: each transport counts the memory of a message from its arrival until its release. A
// message that exceeds the memory is refused, and the next one is read.
func TestArrivalsHaveRoom(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	long := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"a":%q}}`, strings.Repeat("x", size))
	short := `{"jsonrpc":"2.0","id":2,"result":{}}`
	budget := intake.NewBudget(16 * size)
	room := func() *intake.Room { return budget.Room("a") }
	full, scarce := budget.Room("others"), 16*size-int64(size)
	for name, read := range map[string]func() (*Message, error){
		"line": func() (*Message, error) {
			l := NewLines(nil, io.Discard, LinesOptions{})
			lr := lineReader{r: strings.NewReader(long + "\n" + short + "\n"), max: 4 * size, in: arrival{ctx: t.Context(), newRoom: room, patience: time.Millisecond}}
			p := &pulled{Conn: l, in: make(chan incoming, 4), ended: make(chan struct{}), closed: make(chan struct{})}
			l.to.start(p)
			line, owned, err := lr.next()
			if err != nil {
				if v := new(Violation); !errors.As(err, &v) || v.Reason != reasonNoRoom || v.ID != IntID(1) {
					return nil, err
				}
				if line, _, next := lr.next(); string(line) != short || lr.in.takeRoom() != nil {
					t.Errorf("behind the line: %s, %v", line, next)
				}
				return nil, intake.ErrFull
			}
			l.decode(line, owned, lr.in.takeRoom())
			return (<-p.in).m, nil
		},
		"event": func() (*Message, error) {
			er := newEvents(t.Context(), nil, defaultLimits, room)
			er.in.patience = time.Millisecond
			er.R = heldReader{strings.NewReader("data: " + long + "\n\n"), er}
			ev, err := er.Next()
			if err != nil {
				return nil, err
			}
			m, v := er.message(ev)
			if v != nil {
				return nil, v
			}
			return m, nil
		},
		"body": func() (*Message, error) {
			in := arrival{ctx: t.Context(), newRoom: room, patience: time.Millisecond}
			b, err := readWhole(bytes.NewReader([]byte(long)), -1, 4*size, in.reserve)
			if err != nil {
				in.takeRoom().Leave()
				return nil, err
			}
			m, err := Decode(b.Bytes(), defaultLimits)
			m.buf, m.room = b, in.takeRoom()
			return m, err
		},
	} {
		m, err := read()
		if err != nil || m.ID != IntID(1) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if n := budget.Used(); n < size || n > 4*size {
			t.Errorf("%s: %d bytes are counted for %d", name, n, size)
		}
		if m.Release(); budget.Used() != 0 {
			t.Errorf("%s: %d bytes are counted for a message that was released", name, budget.Used())
		}
		if err := full.Take(scarce); err != nil {
			t.Fatal(err)
		}
		if _, err := read(); !errors.Is(err, intake.ErrFull) || budget.Used() != scarce {
			t.Errorf("%s: %v where there is no memory; %d are taken", name, err, budget.Used()-scarce)
		}
		full.Give(scarce)
	}
	if r := bodyRefusal(intake.ErrGreedy); r.code != CodeNoRoom {
		t.Errorf("a client is told %d", r.code)
	}
}

// TestAnswerSharesRoom: the answer to a request is counted together with the request, so that a large one may have
// the whole budget, and both are given back.
func TestAnswerSharesRoom(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":{"a":%q}}`, strings.Repeat("y", 1<<20))
	}))
	defer srv.Close()
	budget := intake.NewBudget(8 << 20)
	c, err := NewHTTP(srv.URL, HTTPOptions{Room: budget.Room, Principal: "a", noListen: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got := Pull(c)
	m := NewRequest(IntID(1), "tools/call", []byte(`{}`))
	m.room = budget.Room("a")
	if err := m.room.Add(t.Context(), 5<<20); err != nil { // more than half
		t.Fatal(err)
	}
	if err := c.Write(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	answer, err := got.Read(t.Context())
	if err != nil || answer.Kind != Response || budget.Used() < 7<<20 {
		t.Fatalf("%v, %v; %d are taken", answer, err, budget.Used())
	}
	answer.Release()
	waittest.Until(t, "all is given back", func() bool { return budget.Used() == 0 })
}
