// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/intake"
)

// server is the other end of a FrontSession, played by a test.
type server struct {
	t     *testing.T
	s     *FrontSession
	conn  ReadConn // s
	ended func(error)
}

func (v *server) read() *Message {
	v.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	m, err := v.conn.Read(ctx)
	if err != nil {
		v.t.Errorf("Read: %v", err)
		return &Message{}
	}
	return m
}

func (v *server) result(m *Message, result string) {
	v.write(NewResult(m.ID, []byte(result)))
}

func (v *server) notify(related ID, text string) {
	m := NewRequest(ID{}, "notifications/message", fmt.Appendf(nil, `{"data":%q}`, text))
	m.Related = related
	v.write(m)
}

func (v *server) write(out *Message) {
	v.t.Helper()
	if err := v.s.Write(context.Background(), out); err != nil {
		v.t.Errorf("Write: %v", err)
	}
}

// bench is a Front whose sessions a test plays.
type bench struct {
	t        *testing.T
	f        *Front
	http     *httptest.Server
	sessions chan *server
	memory   *intake.Budget
}

func newBench(t *testing.T, adjust ...func(*FrontOptions)) *bench {
	b := &bench{t: t, sessions: make(chan *server, 1024), memory: intake.NewBudget(512 << 20)}
	opt := FrontOptions{
		Room:      func(principal string) *intake.Room { return b.memory.Room(principal) },
		keepAlive: time.Minute,
		Principal: func(r *http.Request) string { return r.Header.Get("X-Principal") },
		Accept: func(_ context.Context, s *FrontSession, ended func(error)) {
			b.sessions <- &server{t, s, Pull(s), ended}
		},
	}
	for _, f := range adjust {
		f(&opt)
	}
	b.f = NewFront(opt)
	b.http = httptest.NewServer(b.f)
	t.Cleanup(func() {
		for _, s := range b.f.all() {
			s.Close()
		}
		for len(b.sessions) > 0 {
			(<-b.sessions).s.Close()
		}
		b.http.Client().CloseIdleConnections()
		b.http.CloseClientConnections()
		b.http.Close()
		if n := b.memory.Used(); n != 0 {
			t.Errorf("%d bytes are held by nobody", n)
		}
	})
	return b
}

func (b *bench) next() *server {
	b.t.Helper()
	select {
	case v := <-b.sessions:
		b.t.Cleanup(func() { v.s.Close() })
		return v
	case <-time.After(30 * time.Second):
		b.t.Fatal("no session")
	}
	return nil
}

// do sends a request; headers are pairs, "" takes a header away.
func (b *bench) do(ctx context.Context, method, body string, headers ...string) *http.Response {
	b.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, b.http.URL, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		if req.Header.Del(headers[i]); headers[i+1] != "" {
			req.Header.Add(headers[i], headers[i+1])
		}
	}
	resp, err := b.http.Client().Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		b.t.Fatal(err)
	}
	return resp
}

func (b *bench) post(body string, headers ...string) *http.Response {
	b.t.Helper()
	return b.do(b.t.Context(), http.MethodPost, body, headers...)
}

func all(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

const initializeBody = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`

// begin opens a legacy session.
func (b *bench) begin(version string, headers ...string) (*server, string) {
	b.t.Helper()
	got := make(chan *http.Response, 1)
	go func() { got <- b.post(initializeBody, headers...) }()
	v := b.next()
	v.result(v.read(), `{"protocolVersion":"`+version+`","capabilities":{}}`)
	resp := <-got
	all(b.t, resp)
	id := resp.Header.Get("Mcp-Session-Id")
	if len(id) < 20 {
		b.t.Fatalf("session id %q", id)
	}
	return v, id
}

// events reads server-sent events, ids and data, until the stream ends or n have come.
func events(t *testing.T, r io.Reader, n int) (list []string) {
	t.Helper()
	lines := bufio.NewScanner(r)
	id := ""
	for lines.Scan() && len(list) != n {
		if v, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			id = v
		}
		if v, ok := strings.CutPrefix(lines.Text(), "data:"); ok {
			list, id = append(list, strings.TrimSpace(id+" "+strings.TrimSpace(v))), ""
		}
	}
	return list
}

const listBody = `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`

func modernBody(method, params string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + params +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
}

// postTo posts while v deals with the message.
func (b *bench) postTo(v *server, body string, headers []string, deal func(*Message)) *http.Response {
	b.t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); deal(v.read()) }()
	resp := b.post(body, headers...)
	<-done
	return resp
}
