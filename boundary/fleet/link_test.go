// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/logtest"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

func player(name, r string) Server {
	return Server{Name: name, Dial: Command(role(r), nil), Child: true, Config: config(name)}
}

// TestEndedAtProbe: that a server ends when it is asked for its revision is one line of no
// warning; that it ends at anything else is a warning with what it wrote.
func TestEndedAtProbe(t *testing.T) {
	for _, tc := range []struct{ method, want, not string }{
		{mcpmsg.Discover, "asked for a newer revision", "connection to the server lost"},
		{"tools/list", `standard_error="[no session]"`, "asked for a newer revision"},
	} {
		var log logtest.Buffer
		p := player("p", "picky")
		p.Said = func() []string { return []string{"no session"} }
		f := fleetOf(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, p)
		l := read(newLink(t.Context(), f.get("p"), ""))
		ask := func(n int64, method string) *wire.Message {
			id := wire.IntID(n)
			if err := l.Write(t.Context(), wire.NewRequest(id, method, nil)); err != nil {
				t.Fatal(err)
			}
			m, err := l.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		if m := ask(1, tc.method); m.Kind != wire.ErrorResponse {
			t.Errorf("%s: kind %v", tc.method, m.Kind)
		}
		n := int64(1)
		waittest.Until(t, "the server answers", func() bool { n++; return ask(n, "initialize").Kind == wire.Response })
		if s := log.String(); strings.Count(s, tc.want) != 1 || strings.Contains(s, tc.not) {
			t.Errorf("%s: %s", tc.method, s)
		}
		l.Close()
	}
}

// TestRestart: a session outlives the process behind it.
func TestRestart(t *testing.T) {
	var log logtest.Buffer
	changed := make(chan bool, 8)
	f := fleetOf(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, player("p", "good"))
	s := connect(t, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- true },
	}, one(f, "p"))
	first := call(t, s, "pid", "")
	if again := call(t, s, "pid", ""); again != first {
		t.Fatalf("another process: %s, then %s", first, again)
	}
	for range 3 {
		if _, err := tryCall(s, "pid", "die"); err == nil || !strings.Contains(err.Error(), textLost) {
			t.Fatalf("call that kills: %v", err)
		}
		select {
		case <-changed:
		case <-time.After(patience):
			t.Fatal("nobody says that the tools may have changed")
		}
		second := call(t, s, "pid", "")
		if second == first {
			t.Fatal("the same process")
		}
		first = second
	}
	if h := f.Health()[0]; h.State != Up || h.Failures != 0 || h.Connections != 1 {
		t.Errorf("health: %+v", h)
	}
	if !strings.Contains(log.String(), "exit code 4") {
		t.Errorf("log does not say how it ended:\n%s", log.String())
	}
}

// TestGone: while there is no server, everything is answered at once with a constant error.
func TestGone(t *testing.T) {
	for _, r := range []string{"quitter", "missing"} {
		t.Run(r, func(t *testing.T) {
			srv := player("p", r)
			if r == "missing" {
				c := role(r)
				c.Args[0] = "/nowhere/server"
				srv.Dial = Command(c, nil)
			}
			f := fleetOf(t, Options{firstWait: time.Hour, mostWait: time.Hour}, srv)
			l := read(newLink(f.ctx, f.get("p"), ""))
			defer l.Close()
			began := time.Now()
			request(t, l, 1, "initialize", `{}`)
			m, err := l.Read(context.Background())
			if err != nil || !m.Local {
				t.Fatalf("%+v, %v", m, err)
			}
			if d := time.Since(began); d > 20*time.Second {
				t.Errorf("answered after %v", d)
			}
			h := f.Health()[0] // told a moment after the client was
			waittest.Until(t, "the server is down", func() bool { h = f.Health()[0]; return h.State == Down })
			if h.Why == "" {
				t.Errorf("health: %+v", h)
			}
		})
	}
}

// TestShared: one process for all sessions, each with ids of its own.
func TestShared(t *testing.T) {
	srv := player("p", "good")
	srv.Shared = true
	f := fleetOf(t, Options{}, srv)
	var sessions []*mcp.ClientSession
	for range 8 {
		sessions = append(sessions, connect(t, nil, one(f, "p")))
	}
	want := call(t, sessions[0], "pid", "")
	var wg sync.WaitGroup
	for _, s := range sessions {
		wg.Go(func() {
			for range 50 {
				if got, err := tryCall(s, "pid", ""); got != want || err != nil {
					t.Errorf("%s, %v, want %s", got, err, want)
					return
				}
			}
		})
	}
	wg.Wait()
	if got := call(t, sessions[1], "pid", "ask"); got != textShared {
		t.Errorf("the server's question was answered %q", got)
	}
	if h := f.Health()[0]; h.Connections != 1 {
		t.Errorf("%d connections", h.Connections)
	}

	// Its death is told to whoever waits, and the next has a new one.
	if _, err := tryCall(sessions[2], "pid", "die"); err == nil {
		t.Error("no error of a call that kills")
	}
	waittest.Until(t, "a new process", func() bool {
		got, err := tryCall(sessions[3], "pid", "")
		return err == nil && got != want
	})
	if got := call(t, sessions[2], "pid", ""); got == want {
		t.Error("the old process answers")
	}
}

// TestSharedFlood: notifications of one call do not stop another session.
func TestSharedFlood(t *testing.T) {
	srv := player("p", "good")
	srv.Shared = true
	f := fleetOf(t, Options{}, srv)
	a, b := connect(t, nil, one(f, "p")), connect(t, nil, one(f, "p"))
	want := call(t, a, "pid", "")
	if got := call(t, a, "pid", "flood"); got != want {
		t.Errorf("%q", got)
	}
	if got := call(t, b, "pid", ""); got != want {
		t.Errorf("%q", got)
	}
}

// TestChildren: no more processes than allowed, and room again when one has ended.
func TestChildren(t *testing.T) {
	f := fleetOf(t, Options{Children: 1}, player("p", "good"))
	l := read(newLink(f.ctx, f.get("p"), ""))
	request(t, l, 1, "ping", `{}`)
	if m, err := l.Read(context.Background()); err != nil || m.Local {
		t.Fatalf("%+v, %v", m, err)
	}
	request(t, l, 2, "tools/call", `{"name":"pid","arguments":{"text":"hang"}}`) // so that it is not idle
	second := read(newLink(f.ctx, f.get("p"), ""))
	defer second.Close()
	request(t, second, 1, "ping", `{}`)
	if m, err := second.Read(context.Background()); err != nil || !m.Local || !strings.Contains(string(m.Error.Raw()), textFull) {
		t.Fatalf("%+v, %v", m, err)
	}
	l.Close()
	waittest.Until(t, "room", func() bool {
		request(t, second, 1, "ping", `{}`)
		m, err := second.Read(context.Background())
		for err == nil && m.ID.IsZero() {
			m, err = second.Read(context.Background())
		}
		return err == nil && !m.Local
	})
}

// TestSetEnds: a server that is another now ends its sessions, and no others.
func TestSetEnds(t *testing.T) {
	a, b := player("a", "good"), player("b", "good")
	f := fleetOf(t, Options{}, a, b)
	sa, sb := connect(t, nil, one(f, "a")), connect(t, nil, one(f, "b"))
	call(t, sa, "pid", "")
	want := call(t, sb, "pid", "")
	a.Identity = "another"
	b.Prefix = "bee"
	if err := f.Set([]Server{a, b}); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the end of the session", func() bool {
		_, err := tryCall(sa, "pid", "")
		return err != nil
	})
	if got := call(t, sb, "pid", ""); got != want {
		t.Error("the other session did not go on")
	}
}

func TestSetMistakes(t *testing.T) {
	f := fleetOf(t, Options{})
	err := f.Set([]Server{
		{Name: "-a", Dial: Command(role("good"), nil), Config: config("a")},
		{Name: "a_b", Dial: Command(role("good"), nil), Config: config("a")},
		{Name: "a.b", Dial: Command(role("good"), nil), Config: config("a")},
		{Name: "c"},
		{Name: "c", Dial: Command(role("good"), nil), Config: config("a")},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"server 1:", "a_b and a.b would have the same prefix a-b_", "server c: incomplete", "two of that name"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	if len(f.Health()) != 0 {
		t.Error("something has changed")
	}
}

// TestAuto: a server of the old transport, found out by its refusal of the new one.
func TestAuto(t *testing.T) {
	for name, h := range map[string]http.Handler{
		"old": mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return toolServer("s", "who") }, nil),
		"new": mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return toolServer("s", "who") }, nil),
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(h)
			defer srv.Close()
			dial, err := URL(wire.AutoTransport, srv.URL, wire.HTTPOptions{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			f := fleetOf(t, Options{Translate: translate}, Server{Name: "s", Dial: dial, Config: config("s")})
			for range 2 {
				t.Run("session", func(t *testing.T) {
					if got := call(t, connect(t, nil, one(f, "s")), "who", "x"); got != "s/who/x" {
						t.Errorf("%q", got)
					}
				})
			}
		})
	}
	if _, err := URL(wire.AutoTransport, "ftp://x", wire.HTTPOptions{}, nil); err == nil {
		t.Error("no error of a URL that is none")
	}
}

// TestAutoAgain: what a server speaks is not known for ever.
func TestAutoAgain(t *testing.T) {
	offered := func(*http.Request) *mcp.Server { return toolServer("s", "who") }
	is := new(atomic.Pointer[http.Handler])
	becomes := func(h http.Handler) { is.Store(&h) }
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*is.Load()).ServeHTTP(w, r) }))
	defer srv.Close()
	dial, err := URL(wire.AutoTransport, srv.URL, wire.HTTPOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	local := func() bool {
		t.Helper()
		conn, err := dial.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		request(t, conn, 1, "initialize", `{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
		ctx, stop := context.WithTimeout(t.Context(), patience)
		defer stop()
		m, err := conn.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return m.Local
	}
	becomes(http.NotFoundHandler())
	if !local() {
		t.Error("an answer of nobody")
	}
	becomes(mcp.NewStreamableHTTPHandler(offered, nil))
	if local() {
		t.Error("a server that was away is taken for one of the old transport")
	}
	becomes(mcp.NewSSEHandler(offered, nil))
	for range 2 {
		if local() {
			t.Error("a server of the old transport is not reached")
		}
	}
	becomes(mcp.NewStreamableHTTPHandler(offered, nil))
	if first, second := local(), local(); !first || second {
		t.Errorf("a server that has left the old transport: refused %v, then %v", first, second)
	}
}

// TestWhy: an operator is told the whole reason, escaped, and no novel.
func TestWhy(t *testing.T) {
	for text, want := range map[string]string{
		"a: b: \"c\"":                    `a: b: "c"`,
		"\x1b[31m\u202e\n\xff":           `\x1b[31m\u202e\n\ufffd`,
		strings.Repeat("a", maxWhy):      strings.Repeat("a", maxWhy),
		strings.Repeat("\u202e", maxWhy): strings.Repeat(`\u202e`, maxWhy)[:maxWhy] + "...",
	} {
		if got := why(errors.New(text)); got != want {
			t.Errorf("%+q: %s", text, got)
		}
	}
	if got := why(fmt.Errorf("read: %w", io.EOF)); got != "connection closed" {
		t.Error(got)
	}
}

// feed is a Conn whose server a test plays.
type feed struct {
	said   chan *wire.Message
	heard  chan *wire.Message
	closed chan struct{}
	once   sync.Once
}

func newFeed() *feed {
	return &feed{said: make(chan *wire.Message), heard: make(chan *wire.Message, 8), closed: make(chan struct{})}
}

func (f *feed) Read(ctx context.Context) (*wire.Message, error) {
	select {
	case m := <-f.said:
		return m, nil
	case <-f.closed:
		return nil, wire.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *feed) Write(_ context.Context, m *wire.Message) error {
	f.heard <- m
	return nil
}

func (f *feed) Close() error {
	f.once.Do(func() { close(f.closed) })
	return nil
}

// TestSharedRelated: over HTTP a notification comes on the stream of a request. Sessions do not
// know the number of that request, which may be that of another one of theirs.
func TestSharedRelated(t *testing.T) {
	server := newFeed()
	f := fleetOf(t, Options{}, Server{Name: "s", Config: config("s"), Shared: true,
		Dial: func(context.Context) (wire.Conn, error) { return wire.Push(server), nil }})
	a, b := read(f.get("s").session("")), read(f.get("s").session(""))
	defer a.Close()
	defer b.Close()
	request(t, a, 7, "tools/call", `{"name":"t","_meta":{"progressToken":"p"}}`)
	ours := (<-server.heard).ID
	for _, tt := range []struct {
		method, params string
		to             []wire.ReadConn
	}{
		{"notifications/progress", `{"progressToken":1,"progress":1}`, []wire.ReadConn{a}},
		{"notifications/message", `{"level":"info","data":1}`, []wire.ReadConn{a, b}},
	} {
		m := own(wire.NewRequest(wire.ID{}, tt.method, []byte(tt.params)))
		m.Related = ours
		server.said <- m
		for _, c := range tt.to {
			got, err := c.Read(t.Context())
			if err != nil || got.Method != tt.method || !got.Related.IsZero() {
				t.Errorf("%s: %+v, %v", tt.method, got, err)
			}
		}
	}
}
