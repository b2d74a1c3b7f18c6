// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// elsewhere is a Forwarder that answers every request in one way, and notes it.
type elsewhere struct {
	out  Forwarded
	seen []Forwardable
	body []string
}

func (e *elsewhere) Forward(w http.ResponseWriter, _ *http.Request, of Forwardable) Forwarded {
	of.State = strings.Clone(of.State) // it is the request's memory
	e.seen, e.body = append(e.seen, of), append(e.body, string(of.Body))
	if e.out == Answered {
		w.WriteHeader(http.StatusTeapot)
	}
	return e.out
}

// TestForwarder: a Forwarder is asked about every request of a session, about initialize and about modern
// requests, with the body as it came; what it says of the others becomes an error with the id of the request.
func TestForwarder(t *testing.T) {
	t.Parallel()
	const call = `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x"}}`
	const modern = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","requestState":"s","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	const begin = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`
	for _, tt := range []struct {
		name, method, body string
		header             []string
		want               Forwardable
		lost               string // what a client gets where the answer is lost
	}{
		{"call", "POST", call, []string{"Mcp-Session-Id", "s1"}, Forwardable{Session: "s1"}, `{"jsonrpc":"2.0","id":"a","error":{"code":7410,`},
		{"batch", "POST", "[" + call + "]", []string{"Mcp-Session-Id", "s1"}, Forwardable{Session: "s1"}, `{"jsonrpc":"2.0","id":null,"error":{"code":7410,`},
		{"no message", "POST", "{", []string{"Mcp-Session-Id", "s1"}, Forwardable{Session: "s1"}, `{"jsonrpc":"2.0","id":null,"error":{"code":7410,`},
		{"listen", "GET", "", []string{"Mcp-Session-Id", "s1"}, Forwardable{Session: "s1"}, `{"jsonrpc":"2.0","id":null,"error":{"code":7410,`},
		{"end", "DELETE", "", []string{"Mcp-Session-Id", "s1"}, Forwardable{Session: "s1"}, `{"jsonrpc":"2.0","id":null,"error":{"code":7410,`},
		{"begin", "POST", begin, nil, Forwardable{Begins: true}, `{"jsonrpc":"2.0","id":0,"error":{"code":7410,`},
		{"modern", "POST", modern, []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "x"}, Forwardable{State: "s"}, `{"jsonrpc":"2.0","id":1,"error":{"code":7410,`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, out := range []Forwarded{Answered, Unreachable, Unanswered} {
				e := &elsewhere{out: out}
				b := newBench(t, func(o *FrontOptions) { o.Forwarder = e })
				req, err := http.NewRequest(tt.method, b.http.URL, strings.NewReader(tt.body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Accept", "application/json, text/event-stream")
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("X-Principal", "alice")
				for i := 0; i < len(tt.header); i += 2 {
					req.Header.Set(tt.header[i], tt.header[i+1])
				}
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil {
					t.Fatal(err)
				}
				if len(e.seen) != 1 {
					t.Fatalf("asked %d times", len(e.seen))
				}
				got := e.seen[0]
				if got.Session != tt.want.Session || got.State != tt.want.State || got.Begins != tt.want.Begins || got.Principal != "alice" || e.body[0] != tt.body || got.Has() {
					t.Errorf("asked about %+v, %q", got, e.body[0])
				}
				if !got.GiveUp() {
					t.Error("a session that is not here cannot be given up")
				}
				switch {
				case out == Answered && resp.StatusCode != http.StatusTeapot:
					t.Errorf("%d %s", resp.StatusCode, answer)
				case out == Unanswered && !strings.HasPrefix(string(answer), tt.lost):
					t.Errorf("%s, want %s", answer, tt.lost)
				case out == Unreachable && !strings.Contains(string(answer), `"code":7409`):
					t.Errorf("%s", answer)
				}
				if b.f.Sessions() != 0 {
					t.Error("a session has begun here")
				}
			}
		})
	}
}

// TestForwarderLongOpening: where other processes must be able to serve a session, one that they cannot
// bring back does not begin.
func TestForwarderLongOpening(t *testing.T) {
	t.Parallel()
	e := &elsewhere{}
	b := newBench(t, func(o *FrontOptions) { o.Forwarder = e })
	long := strings.Repeat("x", maxOpening)
	resp := b.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"x":"` + long + `"}}}`)
	if body := all(t, resp); resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.HasPrefix(body, `{"jsonrpc":"2.0","id":0,"error":`) || len(e.seen) > 0 || b.f.Sessions() != 0 {
		t.Errorf("%d %.200q, asked %d times", resp.StatusCode, body, len(e.seen))
	}
}

// TestForwarderCloseIf: a session that another process may have taken over ends here.
func TestForwarderCloseIf(t *testing.T) {
	t.Parallel()
	e := &elsewhere{}
	b := newBench(t, func(o *FrontOptions) { o.Forwarder = e })
	v, id := b.begin("2025-06-18")
	e.out = Unreachable
	b.f.CloseIf(func(string) bool { return false })
	if b.f.Sessions() != 1 {
		t.Fatal("no session")
	}
	b.f.CloseIf(func(other string) bool { return other == id })
	if b.f.Sessions() != 0 {
		t.Error("the session is open")
	}
	_ = v
}

// TestForwarderGiveUp: a session in which a call is under way is not given up.
func TestForwarderGiveUp(t *testing.T) {
	t.Parallel()
	e := &elsewhere{}
	b := newBench(t, func(o *FrontOptions) { o.Forwarder = e })
	v, id := b.begin("2025-06-18")
	got := make(chan *http.Response, 1)
	go func() {
		got <- b.post(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}`, "Mcp-Session-Id", id)
	}()
	call := v.read()
	of := e.seen[len(e.seen)-1]
	if !of.Has() || of.GiveUp() || b.f.Sessions() != 1 {
		t.Fatal("a session with a call was given up")
	}
	v.result(call, `{"content":[]}`)
	all(t, <-got)
	waittest.Until(t, "the answer is written", of.GiveUp)
	if of.Has() || b.f.Sessions() != 0 {
		t.Error("the session is open")
	}
}

// TestForwarderUnnamed: where other processes must be able to serve a session, one of which they cannot be
// told does not begin, however the answer to initialize arrives: its id would be known here only.
func TestForwarderUnnamed(t *testing.T) {
	t.Parallel()
	const result = `{"protocolVersion":"2025-11-25","capabilities":{}}`
	for name, deal := range map[string]func(v *server, m *Message){
		"a body":                func(v *server, m *Message) { a := NewResult(m.ID, []byte(result)); a.Whole = true; v.write(a) },
		"an event":              func(v *server, m *Message) { v.result(m, result) },
		"a notification before": func(v *server, m *Message) { v.notify(m.ID, "soon"); v.result(m, result) },
		"a server that takes its time": func(v *server, m *Message) {
			time.Sleep(150 * time.Millisecond)
			_ = v.s.Write(t.Context(), NewResult(m.ID, []byte(result)))
		},
		"a server that does not answer":  func(*server, *Message) {},
		"a server that refuses, in time": nil,
	} {
		t.Run(name, func(t *testing.T) {
			l, next := processes(t, func(o *FrontOptions) {
				o.Forwarder = &elsewhere{}
				o.keepAlive = 20 * time.Millisecond
				if strings.HasPrefix(name, "a body") || strings.HasPrefix(name, "an event") || deal == nil {
					o.keepAlive = time.Minute
				}
			})
			l.goAway(errors.New("no store"))
			b := next()
			want := `"code":7409`
			if deal == nil {
				deal, want = func(v *server, m *Message) { v.write(NewError(m.ID, []byte(`{"code":7603,"message":"refused"}`))) }, `"code":7603`
			}
			got := make(chan *http.Response, 1)
			go func() { got <- b.post(initializeBody) }()
			v := b.next()
			deal(v, v.read())
			resp := <-got
			if body := all(t, resp); resp.StatusCode != http.StatusOK || resp.Header.Get("Mcp-Session-Id") != "" ||
				!strings.Contains(body, `"id":0,"error":{`+want) || strings.Contains(body, "protocolVersion") {
				t.Errorf("%d %v %q", resp.StatusCode, resp.Header, body)
			}
			if m, err := v.conn.Read(t.Context()); !errors.Is(err, io.EOF) {
				t.Errorf("the server is still served: %v, %v", m, err)
			}
			if b.f.Sessions() != 0 {
				t.Errorf("%d sessions", b.f.Sessions())
			}
			l.goAway(nil)
			if _, id := b.begin("2025-11-25"); !strings.HasPrefix(id, "session-") {
				t.Errorf("the next session is %q", id)
			}
		})
	}
}
