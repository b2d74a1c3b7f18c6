// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// TestFrontResume: a client that lost a stream gets what it missed of it, of no
// other, and only in its own session.
func TestFrontResume(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v, id := b.begin("2025-11-25")
	session := []string{"Mcp-Session-Id", id}
	ctx, cut := context.WithCancel(t.Context())
	got := make(chan *http.Response, 1)
	go func() { got <- b.do(ctx, http.MethodPost, listBody, session...) }()
	m := v.read()
	v.notify(m.ID, "first")
	resp := <-got
	first := events(t, resp.Body, 1)
	if len(first) != 1 {
		t.Fatal(first)
	}
	last, _, _ := strings.Cut(first[0], " ")
	cut()
	resp.Body.Close()
	waittest.Until(t, "the response that was cut off has ended", func() bool {
		v.s.mu.Lock()
		defer v.s.mu.Unlock()
		for _, st := range v.s.streams {
			if st.turn != 0 {
				return false
			}
		}
		return true
	})
	v.notify(m.ID, "second")
	// The other stream's message is not this one's.
	go func() { o := v.read(); v.notify(o.ID, "other"); v.result(o, `{"other":1}`) }()
	all(t, b.post(strings.Replace(listBody, "7", "8", 1), session...))
	v.result(m, `{"mine":1}`)
	for range 2 { // as often as one likes
		resp = b.do(t.Context(), http.MethodGet, "", append(session, "Last-Event-ID", last)...)
		got := strings.Join(events(t, resp.Body, -1), "\n")
		if !strings.Contains(got, "second") || !strings.Contains(got, "mine") || strings.Contains(got, "other") || strings.Contains(got, "first") {
			t.Errorf("again: %s", got)
		}
	}
	_, foreign := b.begin("2025-11-25")
	if resp := b.do(t.Context(), http.MethodGet, "", "Mcp-Session-Id", foreign, "Last-Event-ID", last); resp.StatusCode != 400 {
		t.Errorf("another session: %d %s", resp.StatusCode, all(t, resp))
	}
}

// TestFrontTakeover: whoever comes last listens; the one before is let go, and
// nothing is lost in between.
func TestFrontTakeover(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v, id := b.begin("2025-06-18")
	before := b.do(t.Context(), http.MethodGet, "", "Mcp-Session-Id", id)
	for i := range 50 {
		next := b.do(t.Context(), http.MethodGet, "", "Mcp-Session-Id", id)
		v.notify(ID{}, fmt.Sprint("note ", i))
		if got := all(t, before); strings.Contains(got, "data") {
			t.Errorf("the one before heard %q", got)
		}
		if got := events(t, next.Body, 1); len(got) != 1 || !strings.Contains(got[0], fmt.Sprint("note ", i)) {
			t.Errorf("%d: %q", i, got)
		}
		before = next
	}
	before.Body.Close()
}

// TestFrontLongCall: an answer that is long in coming becomes a stream that can
// be resumed; whether the client stays is its own affair.
func TestFrontLongCall(t *testing.T) {
	t.Parallel()
	for version, primed := range map[string]bool{"2025-11-25": true, "2025-06-18": false} {
		b := newBench(t, func(o *FrontOptions) { o.keepAlive = 20 * time.Millisecond })
		v, id := b.begin(version)
		told := make(chan struct{})
		resp := b.postTo(v, listBody, []string{"Mcp-Session-Id", id}, func(m *Message) {
			go func() {
				select {
				case <-told: // the stream is there and has been kept alive
				case <-time.After(time.Minute):
				}
				v.result(m, "{}")
			}()
		})
		body, isTold := "", false
		for r := bufio.NewReader(resp.Body); ; {
			line, err := r.ReadString('\n')
			if body += line; err != nil {
				break
			}
			if line == ":\n" && !isTold {
				close(told)
				isTold = true
			}
		}
		if strings.Contains(body, "id: 2-0\ndata:\n\n") != primed || !strings.Contains(body, "\n:\n") || !strings.Contains(body, `"result":{}`) {
			t.Errorf("%s: %q", version, body)
		}
	}
}

func TestFrontClosedStream(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	// Legacy: nothing is cancelled.
	v, id := b.begin("2025-11-25")
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { b.do(ctx, http.MethodPost, listBody, "Mcp-Session-Id", id); close(done) }()
	m := v.read()
	leave()
	<-done
	quiet, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if m, err := v.conn.Read(quiet); err == nil {
		t.Errorf("after the client left: %s", m.Append(nil))
	}
	v.result(m, "{}")

	// Modern: the request is cancelled.
	ctx, leave = context.WithCancel(t.Context())
	done = make(chan struct{})
	go func() {
		b.do(ctx, http.MethodPost, modernBody("tools/list", ""), "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list")
		close(done)
	}()
	v = b.next()
	m = v.read()
	leave()
	<-done
	cancelled := v.read()
	if got, _ := IDOf(cancelled.Params.Get("requestId")); cancelled.Method != "notifications/cancelled" || got != m.ID {
		t.Errorf("after the client left: %+v", cancelled)
	}
	v.result(m, "{}") // too late, which is nobody's fault
}

// TestFrontCancelled: a request that the legacy client cancels has no answer to wait for.
func TestFrontCancelled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v, id := b.begin("2025-11-25")
	got := make(chan *http.Response, 1)
	go func() { got <- b.post(listBody, "Mcp-Session-Id", id) }()
	v.read()
	all(t, b.postTo(v, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, []string{"Mcp-Session-Id", id}, func(*Message) {}))
	if body := all(t, <-got); strings.Contains(body, "data") {
		t.Errorf("%q", body)
	}
}

// TestFrontSlowBody: a client that dribbles its body is not waited for.
func TestFrontSlowBody(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *FrontOptions) { o.patience = 500 * time.Millisecond })
	conn, err := net.Dial("tcp", b.http.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: */*\r\nContent-Length: 1000\r\n\r\n{")
	conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 408 || !resp.Close {
		t.Errorf("%d", resp.StatusCode)
	}
}

// TestFrontSlowReader: a client that does not read keeps nobody waiting, and
// what waits for it is bounded.
func TestFrontSlowReader(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *FrontOptions) { o.patience = 200 * time.Millisecond; o.MaxBody = 1 << 20 })
	v, id := b.begin("2025-11-25")
	conn, err := net.Dial("tcp", b.http.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: */*\r\nMcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n%s", id, len(listBody), listBody)
	m := v.read()
	big := fmt.Appendf(nil, `{"data":"%s"}`, strings.Repeat("x", 1<<16))
	start := time.Now()
	for range 1000 {
		note := NewRequest(ID{}, "n", bytes.Clone(big))
		note.Related = m.ID
		v.write(note)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("Write took %v", took)
	}
	v.s.mu.Lock()
	for _, st := range v.s.streams {
		if st.size > 5<<20 {
			t.Errorf("%d bytes wait", st.size)
		}
	}
	v.s.mu.Unlock()
	v.result(m, "{}")
}

// TestFrontPlaceless: what no client is there to hear is kept within bounds,
// and a request among it is answered.
func TestFrontPlaceless(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v, _ := b.begin("2025-11-25")
	var writer sync.WaitGroup
	writer.Go(func() { // the answer comes in the midst of it
		v.write(NewRequest(IntID(4), "roots/list", nil))
		for range 3 * maxQueued {
			v.notify(ID{}, "x")
		}
	})
	if m := v.read(); m.Kind != ErrorResponse || m.ID != IntID(4) {
		t.Errorf("%+v", m)
	}
	writer.Wait()
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	if n := len(v.s.streams[0].queue); n > maxQueued {
		t.Errorf("%d wait", n)
	}
}

// TestFrontBytes: all that is held for all clients is bounded; an answer for
// which there is no room is refused, not dropped.
func TestFrontBytes(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *FrontOptions) { o.replay = 1 << 20 })
	b.memory = intake.NewBudget(1 << 20)
	v, id := b.begin("2025-11-25")
	note := strings.Repeat("x", 1<<16)
	for range 64 {
		v.notify(ID{}, note)
	}
	if n := b.memory.Used(); n > 1<<20 || n < 1<<19 {
		t.Errorf("%d bytes are held", n)
	}
	resp := b.postTo(v, listBody, []string{"Mcp-Session-Id", id}, func(m *Message) {
		v.result(m, `{"a":"`+strings.Repeat("x", 1<<18)+`"}`)
	})
	if body := all(t, resp); !strings.Contains(body, `"id":7`) || !strings.Contains(body, "7408") {
		t.Errorf("%.100s", body)
	}
	for range 4 {
		v.notify(ID{}, note)
	}
	rest := (1 << 20) - b.memory.Used()
	if err := b.memory.Take("another", rest); err != nil {
		t.Fatal(err)
	}
	if resp := b.post(listBody, "Mcp-Session-Id", id); resp.StatusCode != 503 {
		t.Errorf("body: %d", resp.StatusCode)
	}
	b.memory.Give("another", rest)
}
