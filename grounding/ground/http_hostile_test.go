// SPDX-License-Identifier: Apache-2.0

package ground_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// TestHTTPLarge: 100 MB cost no memory, be they one line or 100,000.
func TestHTTPLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("300 MB")
	}
	a := newAdapter(t, ground.Options{Now: testClock})
	url := serveHTTP(t, a, ground.HTTPOptions{Auth: everybody{}}) + "/ground/attestations"
	first := append(numbered(t, 1), '\n')
	line := append(bytes.Repeat([]byte("x"), 1023), '\n')
	for name, c := range map[string]struct {
		contentType string
		body        io.Reader
		status      int
		lines       int
	}{
		"one line":   {"application/jsonl", io.MultiReader(bytes.NewReader(first), io.LimitReader(zeros{}, 100<<20), strings.NewReader("\n"), bytes.NewReader(first)), 200, 3},
		"many lines": {"application/jsonl", &repeated{line: line, n: 100 << 10}, 200, 100 << 10},
		"document":   {"application/json", io.LimitReader(zeros{}, 100<<20), 413, 1},
	} {
		t.Run(name, func(t *testing.T) {
			before := liveBytes()
			body := &measured{Reader: c.body}
			res := request(t, "POST", url, c.contentType, body)
			got, err := receipts(t, res.Body)
			if err != nil || res.StatusCode != c.status || len(got) != c.lines {
				t.Errorf("status %d, %d receipts, %v", res.StatusCode, len(got), err)
			}
			body.mu.Lock()
			defer body.mu.Unlock()
			if res.StatusCode == 200 && body.times < 20 { // else it shows nothing
				t.Errorf("the heap was measured %d times", body.times)
			}
			if body.most > before+50<<20 { // a server that keeps what comes has 100
				t.Errorf("%d MB are in use, %d before", body.most>>20, before>>20)
			}
		})
	}
}

// liveBytes are the bytes of the heap that are in use.
func liveBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A measured body notes the most bytes that are in use, once for each 4 MiB that are sent.
type measured struct {
	io.Reader
	mu    sync.Mutex
	sent  int
	times int
	most  uint64
}

func (b *measured) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sent += n; b.sent>>22 >= b.times {
		b.times++
		b.most = max(b.most, liveBytes())
	}
	return n, err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type repeated struct {
	line []byte
	n    int
	rest []byte
}

func (r *repeated) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.n == 0 {
			return 0, io.EOF
		}
		r.n--
		r.rest = r.line
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// TestHTTPSlow: who sends too slowly is cut off, and holds up nobody.
func TestHTTPSlow(t *testing.T) {
	a := newAdapter(t, ground.Options{Now: testClock})
	url := serveHTTP(t, a, ground.HTTPOptions{Auth: everybody{}, MCP: mcpOptions, Patience: 300 * time.Millisecond})
	for _, c := range []struct{ path, contentType, want string }{
		{"/ground/attestations", "application/json", "408"},
		{"/ground/attestations", "application/jsonl", ""},
		{"/ground/events", "application/json", "408"},
		{"/ground/mcp", "application/json", "408"},
		{"/nowhere", "application/json", "404"}, // refused without a look at the body
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nAccept: */*\r\nContent-Type: %s\r\nContent-Length: 1000\r\n\r\n", c.path, allScopes, c.contentType)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Millisecond):
					conn.Write([]byte("x"))
				}
			}
		}()
		began := time.Now()
		conn.SetReadDeadline(began.Add(30 * time.Second))
		answer, err := io.ReadAll(conn)
		if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
			t.Errorf("%s %s: the connection stays", c.path, c.contentType)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s %s: took %s", c.path, c.contentType, took)
		}
		if got, _, _ := strings.Cut(strings.TrimPrefix(string(answer), "HTTP/1.1 "), " "); c.want != "" && got != c.want {
			t.Errorf("%s %s: %.200q, want %s", c.path, c.contentType, answer, c.want)
		}
		close(stop)
		<-stopped
		conn.Close()
	}
}

// TestHTTPDeaf: a client that sends and does not read is cut off. What its own system tells such
// a client, and when, is no matter: with a receive window this small that may take minutes.
func TestHTTPDeaf(t *testing.T) {
	a := newAdapter(t, ground.Options{Now: testClock})
	srv := httptest.NewUnstartedServer(a.Handler(ground.HTTPOptions{Auth: everybody{}, Patience: 300 * time.Millisecond}))
	var closed atomic.Bool
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			closed.Store(true)
		}
	}
	srv.Start()
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	fmt.Fprintf(conn, "POST /ground/attestations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/jsonl\r\nContent-Length: 100000000\r\n\r\n", allScopes)
	go func() {
		lines := bytes.Repeat([]byte("{\n"), 1<<12)
		for range 100000000 / len(lines) {
			if _, err := conn.Write(lines); err != nil {
				return
			}
		}
	}()
	waittest.Until(t, "the connection is closed", closed.Load)
}

// TestHTTPBusy: only so many ingestions run at once, of which one principal alone has half.
func TestHTTPBusy(t *testing.T) {
	a := newAdapter(t, ground.Options{Now: testClock})
	url := serveHTTP(t, a, ground.HTTPOptions{Auth: everybody{}})
	var conns []net.Conn
	for range 8 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
		fmt.Fprintf(conn, "POST /ground/attestations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/jsonl\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n", allScopes)
		if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil { // it is under way
			t.Fatal(err)
		}
	}
	res := request(t, "POST", url+"/ground/attestations", "application/json", bytes.NewReader(numbered(t, 1)))
	if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
		t.Errorf("%d", res.StatusCode)
	}
	for _, c := range conns {
		c.Close()
	}
	waittest.Until(t, "there is room again", func() bool {
		return request(t, "POST", url+"/ground/attestations", "application/json", bytes.NewReader(numbered(t, 1))).StatusCode == 201
	})
}

// TestHTTPStop: a server that stops ends a stream between two batches, and its
// answer cannot be taken for a whole one.
func TestHTTPStop(t *testing.T) {
	a := newAdapter(t, ground.Options{Now: testClock})
	ctx, cancel := context.WithCancel(t.Context())
	srv := httptest.NewUnstartedServer(a.Handler(ground.HTTPOptions{Auth: everybody{}}))
	srv.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	srv.Start()
	defer srv.Close()
	defer http.DefaultClient.CloseIdleConnections()
	r, w := io.Pipe()
	defer w.Close()
	go w.Write(append(numbered(t, 0), '\n'))
	res := request(t, "POST", srv.URL+"/ground/attestations", "application/jsonl", r)
	dec := json.NewDecoder(res.Body)
	var got lineReceipt
	if err := dec.Decode(&got); err != nil || !got.Accepted {
		t.Fatalf("%+v %v", got, err)
	}
	cancel()
	if err := dec.Decode(&got); err == nil || errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the answer ends as if it were whole: %v", err)
	}
}
