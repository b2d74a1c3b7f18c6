// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

func sseConn(t *testing.T, url string) ReadConn {
	t.Helper()
	up, err := NewSSE(url, HTTPOptions{Header: http.Header{"Authorization": {"Bearer x"}}})
	if err != nil {
		t.Fatal(err)
	}
	c := Pull(up)
	t.Cleanup(func() { c.Close() })
	return c
}

func sseRequest(t *testing.T, c ReadConn, n int64, method, params string) *Message {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	out := NewRequest(IntID(n), method, []byte(params))
	if err := c.Write(ctx, out); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := c.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if m.ID == IntID(n) {
			return m
		}
	}
}

// TestSSEServer talks to the SDK's server of this transport.
func TestSSEServer(t *testing.T) {
	t.Parallel()
	h := mcp.NewSSEHandler(func(*http.Request) *mcp.Server {
		return mcp.NewServer(&mcp.Implementation{Name: "old", Version: "1"}, nil)
	}, nil)
	srv := httptest.NewServer(h)
	defer srv.Close()
	c := sseConn(t, srv.URL)
	m := sseRequest(t, c, 1, "initialize", `{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
	if m.Result.Get("serverInfo").Get("name").Text() != "old" {
		t.Fatalf("%s", m.Result.Raw())
	}
	note := NewRequest(ID{}, "notifications/initialized", nil)
	if err := c.Write(context.Background(), note); err != nil {
		t.Fatal(err)
	}
	if m := sseRequest(t, c, 2, "ping", `{}`); m.Kind != Response {
		t.Errorf("%+v", m)
	}
	c.Close()
	if _, err := c.Read(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("Read after Close: %v", err)
	}
	if err := c.Write(context.Background(), note); !errors.Is(err, ErrClosed) {
		t.Errorf("Write after Close: %v", err)
	}
}

// TestSSEBad: what is no such server is told, and costs nobody else anything.
func TestSSEBad(t *testing.T) {
	t.Parallel()
	stolen := make(chan string, 1)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen <- r.Header.Get("Authorization") }))
	defer thief.Close()
	stream := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, body)
		}
	}
	for name, tc := range map[string]struct {
		h    http.HandlerFunc
		code int
	}{
		"other origin":   {stream("event: endpoint\ndata: " + thief.URL + "/x\n\n"), codeBadAnswer},
		"scheme-less":    {stream("event: endpoint\ndata: //evil.example/x\n\n"), codeBadAnswer},
		"credentials":    {stream("event: endpoint\ndata: http://u:p@HOST/x\n\n"), codeBadAnswer},
		"other event":    {stream("event: message\ndata: {}\n\n"), codeBadAnswer},
		"ends":           {stream(": hello\n\n"), codeCut},
		"not a stream":   {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }, codeBadAnswer},
		"no such thing":  {http.NotFound, codeStatus},
		"who are you":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, codeUnauthorized},
		"somewhere else": {http.RedirectHandler(thief.URL, http.StatusFound).ServeHTTP, codeStatus},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(tc.h)
			defer srv.Close()
			c := sseConn(t, srv.URL)
			m := sseRequest(t, c, 1, "ping", `{}`)
			code, _ := m.Error.Get("code").Int64()
			if !m.Local || int(code) != tc.code {
				t.Errorf("%+v %s", m, m.Error.Raw())
			}
		})
	}
	select {
	case s := <-stolen:
		t.Errorf("credentials went to another origin: %q", s)
	default:
	}
}

// TestSSEOpensAgain: requests under way end with their stream; the next request
// opens another one, and repeats the handshake.
func TestSSEOpensAgain(t *testing.T) {
	t.Parallel()
	type stream struct {
		out chan string
		end chan bool
	}
	var mu sync.Mutex
	var all []*stream
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if r.Method == http.MethodGet {
			s := &stream{make(chan string, 8), make(chan bool)}
			all = append(all, s)
			n := len(all)
			mu.Unlock()
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: endpoint\ndata: /post?s=%d\n\ndata: junk\n\n", n)
			for {
				w.(http.Flusher).Flush()
				select {
				case text := <-s.out:
					io.WriteString(w, "data: "+text+"\n\n")
				case <-s.end:
					return
				case <-r.Context().Done():
					return
				}
			}
		}
		defer mu.Unlock()
		b, _ := io.ReadAll(r.Body)
		m, _ := Decode(b, strictjson.Limits{})
		got = append(got, r.URL.Query().Get("s")+" "+m.Method)
		if r.URL.Query().Get("s") != strconv.Itoa(len(all)) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		if m.Kind == Request && m.Method != "silent" {
			all[len(all)-1].out <- string(NewResult(m.ID, []byte(`{"protocolVersion":"2024-11-05","capabilities":{"tools":{}}}`)).Append(nil))
		}
	}))
	t.Cleanup(srv.Close)
	c := sseConn(t, srv.URL)
	var v *Violation
	sseRead := func() *Message {
		t.Helper()
		m, err := c.Read(t.Context())
		for errors.As(err, &v) {
			m, err = c.Read(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	send(t, c, NewRequest(IntID(1), "initialize", []byte(clientParams)))
	if m := sseRead(); m.Kind != Response {
		t.Fatalf("%s", m.Append(nil))
	}
	send(t, c, note(methodInitialized))
	send(t, c, request(2, "silent"))
	waittest.Until(t, "the request", func() bool { mu.Lock(); defer mu.Unlock(); return slices.Contains(got, "1 silent") })
	close(all[0].end)
	if m := sseRead(); m.ID != IntID(2) || !m.Local || !errors.Is(m.Cause, errStreamEnded) {
		t.Fatalf("%s, %v", m.Append(nil), m.Cause)
	}
	for n := range int64(4) {
		send(t, c, request(10+n, "tools/call"))
	}
	changed := 0
	for answers := 0; answers < 4; {
		switch m := sseRead(); {
		case m.Method == "notifications/tools/list_changed" && answers == 0:
			changed++
		case m.Kind == Response:
			answers++
		default:
			t.Fatalf("%s, %v", m.Append(nil), m.Cause)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if changed != 1 || len(all) != 2 || got[3] != "2 initialize" || got[4] != "2 "+methodInitialized {
		t.Errorf("%d changes, %d streams, %q", changed, len(all), got)
	}
}

// TestSSERoom: a server that never ends an exchange does not have all room in the end.
func TestSSERoom(t *testing.T) {
	for name, tc := range map[string]struct {
		headers, answers bool
	}{"no end of what is accepted": {true, true}, "answered, never accepted": {false, true}, "neither": {false, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := make(chan string, 2*maxInFlight)
			end := make(chan bool)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					var m struct{ ID int }
					json.NewDecoder(r.Body).Decode(&m)
					if tc.answers {
						out <- fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}}\n\n", m.ID)
					}
					if tc.headers {
						w.WriteHeader(http.StatusAccepted)
						io.WriteString(w, "x")
						w.(http.Flusher).Flush()
					}
					select {
					case <-end:
					case <-r.Context().Done():
					}
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, "event: endpoint\ndata: /post\n\n")
				for {
					w.(http.Flusher).Flush()
					select {
					case s := <-out:
						io.WriteString(w, s)
					case <-r.Context().Done():
						return
					}
				}
			}))
			t.Cleanup(srv.Close)
			t.Cleanup(func() { close(end) })
			c := sseConn(t, srv.URL)
			go func() {
				for {
					if _, err := c.Read(context.Background()); err != nil {
						return
					}
				}
			}()
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			for n := range int64(maxInFlight) {
				if err := c.Write(ctx, NewRequest(IntID(n), "ping", nil)); err != nil {
					t.Fatal(err)
				}
			}
			last := NewRequest(IntID(maxInFlight), "ping", nil)
			if !tc.answers { // whoever gives up says so
				last = NewRequest(ID{}, "notifications/cancelled", nil)
				last.Route.Cancels = IntID(7)
			}
			if err := c.Write(ctx, last); err != nil {
				t.Errorf("no room: %v", err)
			}
		})
	}
}
