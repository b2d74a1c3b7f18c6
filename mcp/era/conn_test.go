// SPDX-License-Identifier: Apache-2.0

package era

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

type heard struct {
	m   *wire.Message
	err error
}

// fake is the Conn of a server that a test plays.
type fake struct {
	in     chan heard
	out    chan *wire.Message
	closed chan struct{}
	once   sync.Once
	deaf   bool // it takes nothing
}

func newFake() *fake {
	return &fake{in: make(chan heard, 4096), out: make(chan *wire.Message, 4096), closed: make(chan struct{})}
}

func (f *fake) Read(ctx context.Context) (*wire.Message, error) {
	select {
	case it := <-f.in:
		return it.m, it.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-f.closed:
		return nil, io.EOF
	}
}

func (f *fake) Write(ctx context.Context, out *wire.Message) error {
	if f.deaf {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.closed:
			return wire.ErrPeerClosed
		}
	}
	f.out <- out
	return nil
}

func (f *fake) Close() error {
	f.once.Do(func() { close(f.closed) })
	return nil
}

func (f *fake) say(t testing.TB, line string) {
	t.Helper()
	m, err := wire.Decode([]byte(line), testLimits)
	if err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	f.in <- heard{m: m}
}

func write(t testing.TB, c wire.ReadConn, line string) {
	t.Helper()
	out, err := outgoing(line)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(t.Context(), out); err != nil {
		t.Fatalf("write: %v", err)
	}
}

func read(t testing.TB, c wire.ReadConn) *wire.Message {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	m, err := c.Read(ctx)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return m
}

// TestUpstream asks a server of which era it is before a modern client's first request.
func TestUpstream(t *testing.T) {
	const (
		ours, again = `{…"id":1073741825,`, `{…"id":1073741826,`
		probe       = `"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"pellucid","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
		ask    = `{…"id":1,"method":"tools/list","params":{META}}`
		legacy = `"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`
	)
	for _, tt := range []struct{ name, script string }{
		{"modern", "s> " + ours + `"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}` + "\ns< " + ask},
		{"no such method", "s> " + ours + `"error":{"code":-32601,"message":"x"}}` + "\ns< " + again + legacy},
		{"asked again", "s> " + ours + notNow + "}\ns< " + again + probe + "\ns> " + again + `"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}` + "\ns< " + ask},
		{"asked for ever", "s> " + ours + notNow + "}\ns< " + again + probe + "\ns> " + again + notNow + "}\ns< " + `{…"id":1073741827,` + legacy},
		{"another revision", "s> " + ours + `"error":{"code":-32022,"message":"","data":{"supported":["2025-11-25"]}}}` + "\ns< " + again + legacy},
		{"code 0", "s> " + ours + `"error":{"code":0,"message":""}}` + "\ns< " + again + legacy},
		{"wrong shape", "s> " + ours + `"result":{"supportedVersions":"2026-07-28","capabilities":[]}}` + "\ns< " + again + legacy},
		{"no overlap", "s> " + ours + `"result":{"supportedVersions":["2027-01-01"],"capabilities":{}}}` + "\ns< " + again + legacy},
		{"talks first", `s> {…"method":"notifications/message","params":{}}` + "\n" + `s> {…"id":1,"method":"ping"}` + "\n" + `s< {…"id":1,"result":{}}` +
			"\n" + `s> {…"id":2,"method":"roots/list"}` + "\n" + `s< {…"id":2,"error":{"code":-32601,"message":"pellucid: the client cannot be asked"}}` +
			"\ns> " + ours + `"error":{"code":1,"message":""}}` + "\ns< " + again + legacy},
		{"silence", "t> 9s\nt> 2s\ns< " + again + legacy},
	} {
		t.Run(tt.name, func(t *testing.T) {
			play(t, "upstream", Options{}, "c> "+ask+"\ns< "+ours+probe+"\n"+tt.script)
		})
	}
	for name, cause := range map[string]error{"unreachable": wire.ErrUnreachable, "gone": wire.ErrSessionGone} {
		t.Run(name, func(t *testing.T) {
			g := newStage(t, "upstream", Options{})
			g.client(`{"jsonrpc":"2.0","method":"notifications/x"}`)
			for _, id := range []string{"1", "2"} {
				g.client(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/list","params":{` + metaOf(`{}`) + `}}`)
			}
			// Of the three that wait, each is the one for which the server is asked.
			for n, want := range []string{"", `c< {"jsonrpc":"2.0","id":1,"error":{}}`, `c< {"jsonrpc":"2.0","id":2,"error":{}}`} {
				m := wire.NewError(wire.IntID(firstID+int64(n)+1), []byte("{}"))
				if err := m.Parse(); err != nil {
					t.Fatal(err)
				}
				m.Local, m.Cause = true, cause
				g.said()
				g.tr.server(m, g.now)
				g.turn()
				if said := strings.Join(g.said(), "\n"); want != "" && !strings.Contains(said, want) || (n < 2) != strings.Contains(said, probe[:30]) {
					t.Errorf("%d: %s", n, said)
				}
			}
		})
	}
}

// TestFloods lets a server talk to a client that does not listen, and take nothing.
func TestFloods(t *testing.T) {
	f := newFake()
	f.deaf = true
	era := asModern(wire.Push(f), Options{})
	c := wire.Pull(era)
	for i := range 4000 {
		f.say(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
	}
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if _, err := c.Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	era.mu.Lock()
	queued := len(era.toServer.wait)
	era.mu.Unlock()
	if queued > maxQueued+1 || queued == 0 {
		t.Errorf("%d answers wait for a server that does not read", queued)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Read(t.Context()); !errors.Is(err, wire.ErrClosed) {
		t.Errorf("read after close: %v", err)
	}
	out, _ := outgoing(`{"jsonrpc":"2.0","method":"x"}`)
	if err := c.Write(t.Context(), out); !errors.Is(err, wire.ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
}

// TestOtherPrincipal lets one session's handle be presented in another.
func TestOtherPrincipal(t *testing.T) {
	servers, conns := []*fake{newFake(), newFake()}, []wire.ReadConn{}
	for i, f := range servers {
		c := wire.Pull(asModern(wire.Push(f), Options{}))
		defer c.Close()
		conns = append(conns, c)
		write(t, c, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t",`+metaOf(`{"roots":{}}`)+`}}`)
		f.say(t, `{"jsonrpc":"2.0","id":1073741825,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
		if i == 0 {
			f.say(t, `{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
		}
	}
	state := read(t, conns[0]).Result.Get("requestState").Text()
	if len(state) != 32 {
		t.Fatalf("requestState %q", state)
	}
	retry := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","requestState":"` + state + `","inputResponses":{"ask-1":{"roots":[]}},` + metaOf(`{}`) + `}}`
	write(t, conns[1], retry)
	if code, _ := read(t, conns[1]).Error.Get("code").Int64(); code != wire.CodeParams {
		t.Errorf("another's handle: %d", code)
	}
	write(t, conns[0], retry)
	f := servers[0]
	for out := range f.out {
		if out.Kind == wire.Response {
			if string(out.Append(nil)) != `{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}` {
				t.Errorf("server got %s", out.Append(nil))
			}
			break
		}
	}
}

// TestExpiry proves that the clock of a Conn runs.
func TestExpiry(t *testing.T) {
	f := newFake()
	c := wire.Pull(asModern(wire.Push(f), Options{hold: 20 * time.Millisecond, Patience: time.Second}))
	defer c.Close()
	write(t, c, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t",`+metaOf(`{"roots":{}}`)+`}}`)
	f.say(t, `{"jsonrpc":"2.0","id":1073741825,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
	f.say(t, `{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
	read(t, c)
	for {
		select {
		case out := <-f.out:
			if out.Kind == wire.ErrorResponse && strings.Contains(string(out.Append(nil)), "7707") {
				return
			}
		case <-time.After(30 * time.Second):
			t.Fatal("the server is not told")
		}
	}
}

// TestParked proves that calls which wait for their clients are bounded in number and size.
func TestParked(t *testing.T) {
	for _, member := range []string{`"result":{"x":"`, `"error":{"code":1,"message":"`} {
		t.Run(member[1:6], func(t *testing.T) { testParked(t, member) })
	}
}

func testParked(t *testing.T, member string) {
	g := newStage(t, "modern", Options{parked: 3})
	g.client(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + metaOf(`{}`) + `}}`)
	g.server(`{"jsonrpc":"2.0","id":1073741825,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
	g.server(`{"jsonrpc":"2.0","id":1073741826,"result":{"tools":[]}}`)
	refused := 0
	for i := range 10 {
		g.said()
		g.client(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t",%s}}`, i+2, metaOf(`{"roots":{}}`)))
		call := string(g.s.up[0].m.ID.Append(nil))
		g.server(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"roots/list"}`, i))
		for _, line := range g.said() {
			if strings.Contains(line, `"code":7706`) {
				refused++
			}
		}
		g.server(`{"jsonrpc":"2.0","id":` + call + `,` + member + strings.Repeat("x", 20<<20) + `"}}`)
	}
	lt := g.tr.(*toLegacy)
	kept := 0
	for _, x := range lt.exchanges {
		kept += len(x.call.result.Body())
	}
	if refused != 7 || len(lt.exchanges) != 3 || kept > maxKept+1<<10 || kept != lt.kept {
		t.Errorf("%d refused, %d parked, %d bytes kept, %d counted", refused, len(lt.exchanges), kept, lt.kept)
	}
	g.after(time.Hour)
	if len(lt.exchanges)+len(lt.calls)+len(lt.byClient)+len(lt.byToken)+lt.kept != 0 {
		t.Errorf("left: %+v", lt)
	}
}
