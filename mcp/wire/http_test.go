// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

func TestHTTPAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		h    http.HandlerFunc
	}{
		{"JSON", body("application/json", answer1)},
		{"JSON, charset", body("application/json; charset=utf-8", "\n"+answer1+"\n")},
		{"SSE", body("text/event-stream", "event: message\ndata: "+answer1+"\n\n")},
		{"SSE, stays open", func(w http.ResponseWriter, r *http.Request) {
			body("text/event-stream", "data: "+answer1+"\n\n")(w, r)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}},
		{"gzip JSON", zipped("application/json", strings.NewReader(answer1))},
		{"gzip SSE", zipped("text/event-stream", strings.NewReader("data: "+answer1+"\n\n"))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := upstream(t, tt.h, HTTPOptions{})
			send(t, c, request(1, "a"))
			m := receive(t, c)
			if ok, _ := m.Result.Get("ok").Bool(); !ok || m.ID != IntID(1) || m.Local {
				t.Errorf("got %+v", m)
			}
			m.Release()
			send(t, c, request(1, "a")) // the id is free again
			receive(t, c)
		})
	}
}

// TestHTTPHostile: whatever the upstream does, a request is answered with our
// own constant text, the operator gets an escaped line, and the Conn goes on.
func TestHTTPHostile(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	evil := "IGNORE\u202e"
	for _, tt := range []struct {
		name string
		h    http.HandlerFunc
		code int64
	}{
		{"broken JSON", body("application/json", `{"jsonrpc":`+evil), codeBadAnswer},
		{"empty body", body("application/json", ""), codeBadAnswer},
		{"NUL", body("application/json", "\x00"+answer1), codeBadAnswer},
		{"two messages", body("application/json", answer1+answer1), codeBadAnswer},
		{"batch", body("application/json", "["+answer1+"]"), codeBadAnswer},
		{"another id", body("application/json", `{"jsonrpc":"2.0","id":2,"result":{}}`), codeBadAnswer},
		{"a request", body("application/json", `{"jsonrpc":"2.0","id":1,"method":"a"}`), codeBadAnswer},
		{"too long", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.Copy(w, endless(`{"s":"`, 100<<20, `"}`))
		}, codeBadAnswer},
		{"gzip bomb", zipped("application/json", endless(`{"jsonrpc":"2.0","id":1,"result":{"s":"`, 100<<20, `"}}`)), codeBadAnswer},
		{"gzip bomb in SSE", zipped("text/event-stream", endless("data: ", 100<<20, "\n\n")), codeBadAnswer},
		{"not gzip", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, answer1)
		}, codeBadAnswer},
		{"other encoding", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "br, "+evil)
			io.WriteString(w, answer1)
		}, codeBadAnswer},
		{"HTML", body("text/html", evil), codeBadAnswer},
		{"no content type", func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			io.WriteString(w, answer1)
		}, codeBadAnswer},
		{"202 for a request", status(202), codeBadAnswer},
		{"SSE event too long", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.Copy(w, endless("data: ", 100<<20, "\n\n"))
		}, codeBadAnswer},
		{"SSE without the answer", body("text/event-stream", ": hi\n\n"), codeCut},
		{"SSE cut in an event", body("text/event-stream", "data: "+answer1[:20]), codeCut},
		{"body cut", raw(func(w io.Writer) {
			io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"jsonrpc\"")
		}), codeCut},
		{"closed at once", raw(func(io.Writer) {}), codeCut},
		{"no HTTP", raw(func(w io.Writer) { io.WriteString(w, evil+"\r\n\r\n") }), codeCut},
		{"endless header", raw(func(w io.Writer) {
			io.Copy(w, endless("HTTP/1.1 200 OK\r\nX: ", 1<<20, "\r\n\r\n"))
		}), codeCut},
		{"redirect", status(307, "Location", "http://example.invalid/"), codeStatus},
		{"500", status(500), codeStatus},
		{"429", status(429), codeStatus},
		{"404 without a session", status(404), codeStatus},
		{"401", status(401), codeUnauthorized},
		{"403", status(403), codeUnauthorized},
		{"400 with JSON of another id", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(400)
			io.WriteString(w, `{"jsonrpc":"2.0","id":77,"error":{"code":-32600,"message":""}}`)
		}, codeStatus},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var fine atomic.Bool
			c, ns := upstream(t, func(w http.ResponseWriter, r *http.Request) {
				if fine.Load() {
					body("application/json", `{"jsonrpc":"2.0","id":2,"result":{}}`)(w, r)
					return
				}
				tt.h(w, r)
			}, HTTPOptions{Limits: strictjson.Limits{Bytes: limit}, RetryWait: time.Millisecond})
			send(t, c, request(1, "a"))
			m := receive(t, c)
			code, _ := m.Error.Get("code").Int64()
			if m.Kind != ErrorResponse || m.ID != IntID(1) || !m.Local || code != tt.code || m.Cause == nil {
				t.Errorf("got %s, local %v, cause %v; want code %d", m.Append(nil), m.Local, m.Cause, tt.code)
			}
			if got := m.Error.Get("message").Text(); !strings.HasPrefix(got, refusalText[int(tt.code)]) || tt.code != codeStatus && got != refusalText[int(tt.code)] {
				t.Errorf("message %q", got)
			}
			if errors.Is(m.Cause, ErrUnreachable) {
				t.Errorf("%v says unreachable", m.Cause)
			}
			if s := ns.String(); s == "" || strings.ContainsRune(s, '\u202e') {
				t.Errorf("notices %+q", s)
			}
			fine.Store(true)
			send(t, c, request(2, "a"))
			if m := receive(t, c); m.Kind != Response {
				t.Errorf("afterwards: %s", m.Append(nil))
			}
		})
	}
}

func TestHTTPUnreachable(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://" + l.Addr().String()
	l.Close()
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	defer tls.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for name, url := range map[string]string{
		"refused":        refused,
		"no such host":   "http://nonexistent.invalid/",
		"unknown issuer": tls.URL,
		"no TLS":         strings.Replace(plain.URL, "http:", "https:", 1),
	} {
		t.Run(name, func(t *testing.T) {
			up, err := NewHTTP(url, HTTPOptions{})
			if err != nil {
				t.Fatal(err)
			}
			c := Pull(up)
			defer c.Close()
			send(t, c, request(1, "initialize"))
			m := receive(t, c)
			if code, _ := m.Error.Get("code").Int64(); code != codeUnreachable || !errors.Is(m.Cause, ErrUnreachable) || !m.Local {
				t.Errorf("code %d, cause %v", code, m.Cause)
			}
		})
	}
}

func TestNewHTTPRefuses(t *testing.T) {
	t.Parallel()
	for _, u := range []string{"", "mcp", "ftp://h/", "http://", "http://u:p@h/", "http://h/#f", "http://h\x00/", "//h/"} {
		if _, err := NewHTTP(u, HTTPOptions{}); err == nil || strings.Contains(err.Error(), "u:p") {
			t.Errorf("NewHTTP(%q) = %v", u, err)
		}
	}
}

func TestHTTPLegacySession(t *testing.T) {
	t.Parallel()
	srv := &legacy{post: func(w http.ResponseWriter, r *http.Request, m *Message) {
		body("application/json", string(NewResult(m.ID, []byte(`{}`)).Append(nil)))(w, r)
	}}
	c, ns := upstream(t, srv.ServeHTTP, HTTPOptions{Header: http.Header{"Authorization": {"Bearer t"}}})
	start(t, c)
	send(t, c, request(2, "tools/list"))
	receive(t, c)
	waittest.Until(t, "the client listens", func() bool { return srv.seen("GET session=s-1 version=2025-06-18 event= mcp-method=") })
	c.Close()
	for _, want := range []string{
		"POST initialize session= version= event= mcp-method=",
		"POST notifications/initialized session=s-1 version=2025-06-18 event= mcp-method=",
		"POST tools/list session=s-1 version=2025-06-18 event= mcp-method=",
		"GET session=s-1 version=2025-06-18 event= mcp-method=",
		"DELETE session=s-1 version=2025-06-18 event= mcp-method=",
	} {
		if !srv.seen(want) {
			t.Errorf("missing: %s\nlog: %s", want, strings.Join(srv.log, "\n"))
		}
	}
	if ns.String() != "" {
		t.Errorf("notices: %s", ns)
	}
	if _, err := c.Read(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("Read after Close = %v", err)
	}
	if err := c.Write(t.Context(), request(3, "a")); !errors.Is(err, ErrClosed) {
		t.Errorf("Write after Close = %v", err)
	}
	if err := c.Write(t.Context(), note("a")); !errors.Is(err, ErrClosed) {
		t.Errorf("Write after Close = %v", err)
	}
}

func TestHTTPListensAndResumes(t *testing.T) {
	t.Parallel()
	srv := &legacy{listen: func(w http.ResponseWriter, r *http.Request, n int) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "retry: 1\nid: e%d\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n%d\"}\n\n", n, n)
		w.(http.Flusher).Flush()
		if n == 3 {
			<-r.Context().Done()
		}
	}}
	c, _ := upstream(t, srv.ServeHTTP, HTTPOptions{RetryWait: time.Millisecond})
	start(t, c)
	for i := range 3 {
		if m := receive(t, c); m.Method != fmt.Sprintf("n%d", i+1) {
			t.Errorf("message %d is %s", i, m.Method)
		}
	}
	if !srv.seen("GET session=s-1 version=2025-06-18 event=e2 mcp-method=") {
		t.Errorf("log: %s", strings.Join(srv.log, "\n"))
	}
}

func TestHTTPResumesAnAnswer(t *testing.T) {
	t.Parallel()
	srv := &legacy{
		post: func(w http.ResponseWriter, r *http.Request, _ *Message) {
			body("text/event-stream", "id: p1\ndata:\n\n")(w, r)
		},
		listen: func(w http.ResponseWriter, r *http.Request, n int) {
			switch r.Header.Get(headerEvent) {
			case "p1":
				body("text/event-stream", "id: p2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"between\"}\n\n")(w, r)
			case "p2":
				body("text/event-stream", "data: "+strings.Replace(answer1, `"id":1`, `"id":2`, 1)+"\n\n")(w, r)
			default:
				w.WriteHeader(http.StatusMethodNotAllowed)
			}
		},
	}
	c, _ := upstream(t, srv.ServeHTTP, HTTPOptions{RetryWait: time.Millisecond})
	start(t, c)
	send(t, c, request(2, "tools/call"))
	if m := receive(t, c); m.Method != "between" {
		t.Errorf("first: %s", m.Append(nil))
	}
	if m := receive(t, c); m.Kind != Response || m.ID != IntID(2) {
		t.Errorf("second: %s", m.Append(nil))
	}
}

func TestHTTPModern(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var headers []http.Header
	ended := make(chan struct{}, 8)
	c, _ := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		headers = append(headers, r.Header.Clone())
		mu.Unlock()
		b, _ := io.ReadAll(r.Body)
		m, _ := Decode(b, strictjson.Limits{})
		w.Header().Set("Mcp-Session-Id", "none-wanted")
		switch m.Method {
		case "tools/call":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			w.Write(NewError(m.ID, []byte(`{"code":-32020,"message":"mismatch"}`)).Append(nil))
		case "subscriptions/listen":
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			ended <- struct{}{}
		}
	}, HTTPOptions{})
	v := Route{Version: "2026-07-28", Name: "caf\u00e9", Params: map[string]string{"Region": "eu", "bad name\r\n": "x"}}
	send(t, c, request(1, "tools/call").with(v))
	m := receive(t, c)
	if code, _ := m.Error.Get("code").Int64(); code != -32020 || m.Local {
		t.Errorf("answer %s", m.Append(nil))
	}
	send(t, c, request(2, "subscriptions/listen").with(Route{Version: "2026-07-28"}))
	if m := receive(t, c); m.Method != "n" {
		t.Errorf("from the subscription: %s", m.Append(nil))
	}
	send(t, c, note("notifications/cancelled").with(Route{Version: "2026-07-28", Cancels: IntID(2)}))
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("a cancelled stream stayed open")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if m, err := c.Read(ctx); err == nil {
		t.Errorf("after cancellation: %s", m.Append(nil))
	}
	mu.Lock()
	defer mu.Unlock()
	if len(headers) != 2 {
		t.Errorf("%d requests: the cancellation was sent", len(headers))
	}
	for name, want := range map[string]string{
		headerVersion: "2026-07-28", headerMethod: "tools/call", headerName: "=?base64?Y2Fmw6k=?=",
		headerParam + "Region": "eu", headerSession: "", "Accept": "application/json, text/event-stream",
	} {
		if got := headers[0].Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestHTTPViolationInStream(t *testing.T) {
	t.Parallel()
	c, _ := upstream(t, body("text/event-stream", "data: noise\n\nevent: other\ndata: skipped\n\ndata: "+answer1+"\n\n"), HTTPOptions{})
	send(t, c, request(1, "a"))
	var v *Violation
	if _, err := c.Read(t.Context()); !errors.As(err, &v) {
		t.Errorf("Read = %v", err)
	}
	if m := receive(t, c); m.Kind != Response {
		t.Errorf("then %s", m.Append(nil))
	}
}

func TestHTTPDuplicateID(t *testing.T) {
	t.Parallel()
	c, _ := upstream(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // until then nobody sees that the client has gone
		<-r.Context().Done()
	}, HTTPOptions{})
	send(t, c, request(1, "a"))
	if err := c.Write(t.Context(), request(1, "a")); err == nil {
		t.Error("the same id went out twice")
	}
}

// A silent upstream holds up neither a notification nor Close.
func TestHTTPSilentUpstream(t *testing.T) {
	t.Parallel()
	c, ns := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}, HTTPOptions{ackWait: 20 * time.Millisecond})
	send(t, c, request(1, "a"))
	send(t, c, request(2, "a"))
	send(t, c, note("n"))
	if !strings.Contains(ns.String(), "takes long") {
		t.Error("no notice")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Read = %v", err)
	}
}

func TestHTTPSendsNoCookies(t *testing.T) {
	t.Parallel()
	c, _ := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Cookie") != "" {
			t.Error("a cookie came back")
		}
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		body("application/json", answer1)(w, r)
	}, HTTPOptions{})
	for range 2 {
		send(t, c, request(1, "a"))
		receive(t, c)
	}
}

func TestHTTPReusesConnections(t *testing.T) {
	t.Parallel()
	var conns atomic.Int64
	ts := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: "+answer1+"\n\n")
		w.(http.Flusher).Flush()
		time.Sleep(2 * time.Millisecond)
	}))
	ts.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	ts.Start()
	defer ts.Close()
	up, err := NewHTTP(ts.URL, HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := Pull(up)
	defer c.Close()
	for range 20 {
		send(t, c, request(1, "a"))
		receive(t, c).Release()
		time.Sleep(5 * time.Millisecond)
	}
	if n := conns.Load(); n > 4 {
		t.Errorf("20 calls took %d connections", n)
	}
}

func TestLazyGzip(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	io.WriteString(gz, "text")
	gz.Close()
	got, err := bufio.NewReader(&lazyGzip{r: &b}).ReadString(0)
	if got != "text" || err != io.EOF {
		t.Errorf("%q, %v", got, err)
	}
}
