// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// taking is a bench whose sessions' messages go to take, and whose ends go to the channel that is
// returned.
func taking(t *testing.T, take func(*FrontSession, *Message), adjust ...func(*FrontOptions)) (*bench, chan error) {
	ends := make(chan error, 64)
	b := newBench(t, append(adjust, func(o *FrontOptions) {
		o.Accept = func(_ context.Context, s *FrontSession, ended func(error)) {
			s.Start(taker{
				message: func(m *Message) { take(s, m) },
				ended: func(err error) {
					ends <- err
					ended(nil)
				},
			})
		}
	})...)
	return b, ends
}

// agree answers initialize, and says whether m is that.
func agree(s *FrontSession, m *Message) bool {
	if m.Method == methodInitialize {
		s.Write(context.Background(), NewResult(m.ID, []byte(`{"protocolVersion":"2025-11-25"}`)))
	}
	return m.Method == methodInitialize
}

const noteBody = `{"jsonrpc":"2.0","method":"notifications/n"}`

var modernHeaders = []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"}

// TestFrontManyAtOnce: the requests of one session do not wait for each other.
func TestFrontManyAtOnce(t *testing.T) {
	t.Parallel()
	const n = 8
	var all sync.WaitGroup
	all.Add(n)
	b, _ := taking(t, func(s *FrontSession, m *Message) {
		all.Done()
		all.Wait() // all are here
		s.Write(context.Background(), NewResult(m.ID, []byte(`{}`)))
	})
	var clients sync.WaitGroup
	for range n {
		clients.Go(func() {
			if body := resultOf(b.post(modernBody("tools/list", ""), modernHeaders...)); !strings.Contains(body, `"result":{}`) {
				t.Error(body)
			}
		})
	}
	clients.Wait()
	if b.f.Sessions() != 1 {
		t.Errorf("%d sessions", b.f.Sessions())
	}
}

func resultOf(resp *http.Response) string {
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

// TestFrontSlowReceiver: while a Receiver takes its time with a request, the client is kept alive;
// if it goes, the Receiver is told so when it has returned.
func TestFrontSlowReceiver(t *testing.T) {
	t.Parallel()
	here, hold, cancelled := make(chan *Message, 4), make(chan struct{}), make(chan *Message, 4)
	b, _ := taking(t, func(s *FrontSession, m *Message) {
		if m.Method == methodCancelled {
			cancelled <- m
			return
		}
		here <- m
		<-hold
	}, func(o *FrontOptions) { o.keepAlive = 20 * time.Millisecond })
	ctx, leave := context.WithCancel(t.Context())
	resp := b.do(ctx, http.MethodPost, modernBody("tools/list", ""), modernHeaders...)
	if alive := make([]byte, 8); true {
		if _, err := io.ReadFull(resp.Body, alive); err != nil || strings.Trim(string(alive), ":\n") != "" {
			t.Errorf("%q, %v", alive, err)
		}
	}
	m := <-here
	leave()
	resp.Body.Close()
	s := b.f.all()[0]
	waittest.Until(t, "the request is no longer awaited", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.pending) == 0
	})
	if len(cancelled) > 0 {
		t.Error("cancelled in the midst of the request")
	}
	close(hold)
	select {
	case c := <-cancelled:
		if id, _ := IDOf(c.Params.Get("requestId")); id != m.ID {
			t.Errorf("cancelled %v, want %v", id, m.ID)
		}
	case <-time.After(time.Minute):
		t.Error("not cancelled")
	}
}

// TestFrontSlowNotification: a client hears that its notification was accepted, also if the Receiver
// takes longer than a client waits; and that it was not, if there is no Receiver.
func TestFrontSlowNotification(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	b, ends := taking(t, func(s *FrontSession, m *Message) {
		if !agree(s, m) {
			<-hold
		}
	}, func(o *FrontOptions) { o.patience = 500 * time.Millisecond })
	resp := b.post(initializeBody)
	all(t, resp)
	id := resp.Header.Get("Mcp-Session-Id")
	if resp := b.post(noteBody, "Mcp-Session-Id", id); resp.StatusCode != http.StatusAccepted || resultOf(resp) != "" {
		t.Errorf("%d", resp.StatusCode)
	}
	if resp := b.do(t.Context(), http.MethodDelete, "", "Mcp-Session-Id", id); resp.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: %d", resp.StatusCode)
	}
	select {
	case err := <-ends:
		t.Errorf("Ended(%v) in the midst of a message", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(hold)
	if err := <-ends; !errors.Is(err, io.EOF) {
		t.Errorf("Ended(%v)", err)
	}
	// Nothing starts this one.
	b = newBench(t, func(o *FrontOptions) {
		o.patience = 500 * time.Millisecond
		o.Accept = func(context.Context, *FrontSession, func(error)) {}
	})
	resp = b.post(`{"jsonrpc":"2.0","method":"tools/list","params":{"_meta":{"`+keyVersion+`":"2026-07-28"}}}`, modernHeaders...)
	if body := all(t, resp); resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "7408") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// TestFrontLateInitialize: an answer to initialize that is long in coming names the session.
func TestFrontLateInitialize(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *FrontOptions) { o.keepAlive = 20 * time.Millisecond })
	got := make(chan *http.Response, 1)
	go func() { got <- b.post(initializeBody) }()
	v := b.next()
	m := v.read()
	resp := <-got // it has become a stream
	v.result(m, `{"protocolVersion":"2025-11-25"}`)
	if body := all(t, resp); !strings.Contains(body, "2025-11-25") || b.f.lookup(resp.Header.Get("Mcp-Session-Id"), "") == nil {
		t.Errorf("%q: %s", resp.Header.Get("Mcp-Session-Id"), body)
	}
}

// TestFrontRests: a session in which nothing is under way has no goroutine, and one that is served
// ends with the Front.
func TestFrontRests(t *testing.T) {
	const n = 50
	var served sync.WaitGroup
	served.Add(n)
	front := NewFront(FrontOptions{Sessions: n, Accept: func(_ context.Context, s *FrontSession, ended func(error)) {
		s.Start(taker{message: func(m *Message) { agree(s, m) }, ended: func(err error) {
			defer served.Done()
			ended(err)
		}})
	}})
	before := runtime.NumGoroutine()
	for range n {
		w := recorded(front, http.MethodPost, http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"}}, []byte(initializeBody))
		if w.Code != http.StatusOK {
			t.Fatal(w.Code)
		}
	}
	waittest.Until(t, "the sessions have no goroutine", func() bool { return runtime.NumGoroutine() <= before })
	if front.Sessions() != n {
		t.Errorf("%d sessions, want %d", front.Sessions(), n)
	}
	if err := front.Shutdown(t.Context()); err != nil || front.live.Load() != 0 {
		t.Errorf("%v; %d are served", err, front.live.Load())
	}
	served.Wait()
}

// TestFrontNeverServed: a session that ends before its first message is not counted for ever.
func TestFrontNeverServed(t *testing.T) {
	t.Parallel()
	front := NewFront(FrontOptions{Accept: func(context.Context, *FrontSession, func(error)) { t.Error("accepted") }})
	s := front.begin("")
	s.Close()
	s.accept()
	if n := front.live.Load(); n != 0 {
		t.Errorf("%d", n)
	}
}
