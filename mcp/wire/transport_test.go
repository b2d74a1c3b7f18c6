// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// TestPool: Conns that share a Pool share its connections, the end of one does not end
// the others', and with the last one none rests.
func TestPool(t *testing.T) {
	t.Parallel()
	var dialled, closed atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, err := Decode(body, defaultLimits)
		if err != nil {
			t.Error(err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(NewResult(m.ID, []byte("{}")).Append(nil))
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			dialled.Add(1)
		case http.StateClosed:
			closed.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	opt := HTTPOptions{Pool: NewPool(HTTPOptions{})}
	last, err := NewHTTP(server.URL, opt)
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(3) {
		up, err := NewHTTP(server.URL, opt)
		if err != nil {
			t.Fatal(err)
		}
		c := Pull(up)
		id := IntID(n)
		if err := c.Write(t.Context(), NewRequest(id, "ping", nil)); err != nil {
			t.Fatal(err)
		}
		if m, err := c.Read(t.Context()); err != nil || m.ID != id || !m.Whole {
			t.Fatalf("%+v %v", m, err)
		}
		c.Close()
	}
	if n := dialled.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	Pull(last).Close() // which waits for the end
	waittest.Until(t, "the connection is closed", func() bool { return closed.Load() > 0 })
}

// TestRelated: what comes on a request's stream says which request that is.
func TestRelated(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}\n\n")
	}))
	defer server.Close()
	up, err := NewHTTP(server.URL, HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := Pull(up)
	defer c.Close()
	id := IntID(5)
	if err := c.Write(t.Context(), NewRequest(id, "x", nil)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if m, err := c.Read(t.Context()); err != nil || m.Related != id || m.Whole {
			t.Errorf("%+v %v", m, err)
		}
	}
}

// TestListensFirst: the next message waits until the server is listened to,
// because many a server drops what it says before.
func TestListensFirst(t *testing.T) {
	t.Parallel()
	var listening, early atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			time.Sleep(50 * time.Millisecond)
			listening.Store(true)
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		body, _ := io.ReadAll(r.Body)
		if m, err := Decode(body, defaultLimits); err == nil && m.Kind == Request {
			early.Store(!listening.Load())
			w.Header().Set("Content-Type", "application/json")
			w.Write(NewResult(m.ID, []byte("{}")).Append(nil))
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	defer server.Close()
	up, err := NewHTTP(server.URL, HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := Pull(up)
	defer c.Close()
	id := IntID(5)
	for _, out := range []*Message{
		NewRequest(ID{}, "notifications/initialized", nil),
		NewRequest(id, "x", nil),
	} {
		if err := c.Write(t.Context(), out); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Read(t.Context()); err != nil || early.Load() {
		t.Errorf("asked before it was listened to: %t, %v", early.Load(), err)
	}
}
