// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// rested makes a session one in which nothing has happened for longer than in fact.
func (b *bench) rested(id, principal string, longer time.Duration) {
	b.t.Helper()
	s := b.f.lookup(id, principal)
	waittest.Until(b.t, "the session rests", func() bool { _, rests := s.rests(); return rests }) // its first answer is here before the exchange has left
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touched = s.touched.Add(-longer)
}

// TestFrontSessions: there is room for so many, and those that rest make room.
func TestFrontSessions(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *FrontOptions) { o.Sessions = 2 })
	_, first := b.begin("2025-11-25", "X-Principal", "ada")
	b.rested(first, "ada", time.Millisecond)
	_, second := b.begin("2025-11-25", "X-Principal", "ada")
	// Nobody makes room for a stranger so soon.
	if resp := b.post(initializeBody, "X-Principal", "bob"); resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("stranger: %d", resp.StatusCode)
	}
	ctx, stop := context.WithCancel(t.Context())
	listen := b.do(ctx, http.MethodGet, "", "Mcp-Session-Id", first, "X-Principal", "ada")
	b.rested(second, "ada", 0)
	b.begin("2025-11-25", "X-Principal", "ada")
	stop()
	listen.Body.Close()
	if resp := b.post(listBody, "X-Principal", "ada", "Mcp-Session-Id", second); resp.StatusCode != 404 {
		t.Errorf("the one that rested: %d", resp.StatusCode)
	}
	if b.f.lookup(first, "ada") == nil {
		t.Error("the one that listens is gone")
	}
}

// TestFrontHoarder: who opens one session after the other does not end those of others,
// however long they rest; who has none gets room from whoever has most.
func TestFrontHoarder(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *FrontOptions) { o.Sessions = 3 })
	rested := func(id, principal string) { b.rested(id, principal, 2*strangerRest) }
	_, quiet := b.begin("2025-11-25", "X-Principal", "ada")
	rested(quiet, "ada")
	var last string
	for range 4 {
		_, last = b.begin("2025-11-25", "X-Principal", "bob")
	}
	if b.f.lookup(quiet, "ada") == nil {
		t.Fatal("the other's session is gone")
	}
	rested(last, "bob")
	b.begin("2025-11-25", "X-Principal", "eve")
	if b.f.lookup(quiet, "ada") == nil || b.f.lookup(last, "bob") != nil {
		t.Error("who has one made room, and not who has two")
	}
}

func TestFrontIdle(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v, id := b.begin("2025-11-25")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	listen := b.do(ctx, http.MethodGet, "", "Mcp-Session-Id", id)
	b.f.opt.Idle = 100 * time.Millisecond // now that its client listens: it could have ended before
	v.s.mu.Lock()
	v.s.touched = v.s.touched.Add(-time.Minute)
	v.s.mu.Unlock()
	v.s.checkIdle()
	if b.f.Sessions() != 1 {
		t.Error("ended while its client listened")
	}
	stop()
	listen.Body.Close()
	soon, stop2 := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop2()
	if _, err := v.conn.Read(soon); err != io.EOF {
		t.Errorf("Read: %v", err)
	}
	if b.f.Sessions() != 0 {
		t.Error("still there")
	}
}

func TestFrontShutdown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v, id := b.begin("2025-11-25")
	got := make(chan *http.Response, 1)
	go func() { got <- b.post(listBody, "Mcp-Session-Id", id) }()
	m := v.read()
	go func() {
		<-v.conn.(*pulled).ended
		v.ended(nil)
	}()
	done := make(chan error, 1)
	go func() { done <- b.f.Shutdown(t.Context()) }()
	waittest.Until(t, "the Front ends", b.f.isDraining)
	for _, body := range []string{initializeBody, strings.Replace(listBody, "7", "8", 1)} {
		headers := []string{"Mcp-Session-Id", id}
		if body == initializeBody {
			headers = nil
		}
		if resp := b.post(body, headers...); resp.StatusCode != 503 {
			t.Errorf("while draining: %d", resp.StatusCode)
		}
	}
	// The client still answers, and is answered.
	if resp := b.postTo(v, `{"jsonrpc":"2.0","id":1,"result":{}}`, []string{"Mcp-Session-Id", id}, func(*Message) {}); resp.StatusCode != 202 {
		t.Errorf("response while draining: %d", resp.StatusCode)
	}
	v.result(m, `{"a":1}`)
	if body := all(t, <-got); !strings.Contains(body, `"a":1`) {
		t.Errorf("%s", body)
	}
	if err := <-done; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	// And one that cannot wait.
	b = newBench(t)
	v, id = b.begin("2025-11-25")
	go func() { got <- b.post(listBody, "Mcp-Session-Id", id) }()
	v.read()
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer stop()
	if err := b.f.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	if resp := <-got; resp.StatusCode != 404 {
		t.Errorf("cut: %d %s", resp.StatusCode, all(t, resp))
	}
}

// TestFrontUnavailable: a session that cannot be served is not left open.
func TestFrontUnavailable(t *testing.T) {
	t.Parallel()
	var notices sync.Map
	b := newBench(t, func(o *FrontOptions) {
		o.Accept = func(_ context.Context, _ *FrontSession, ended func(error)) { ended(errors.New("no\u202e server")) }
		o.Notice = func(line string) { notices.Store(line, true) }
	})
	for _, resp := range []*http.Response{b.post(initializeBody),
		b.post(modernBody("tools/list", ""), "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list")} {
		if body := all(t, resp); resp.StatusCode != 503 || resp.Header.Get("Mcp-Session-Id") != "" || strings.Contains(body, "no ") {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
	}
	if b.f.Sessions() != 0 {
		t.Errorf("%d sessions", b.f.Sessions())
	}
	notices.Range(func(line, _ any) bool {
		if strings.Contains(line.(string), "\u202e") {
			t.Errorf("raw in a notice: %+q", line)
		}
		return true
	})
}
