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

// fake is the Conn of a server that a test plays.
type fake struct {
	in     chan item
	out    chan *wire.Message
	closed chan struct{}
	once   sync.Once
	deaf   bool // it takes nothing
}

func newFake() *fake {
	return &fake{in: make(chan item, 4096), out: make(chan *wire.Message, 4096), closed: make(chan struct{})}
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
	f.in <- item{m: m}
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

func TestUpstream(t *testing.T) {
	const ours, again = `{"jsonrpc":"2.0","id":1073741825,`, `{"jsonrpc":"2.0","id":1073741826,`
	for _, tt := range []struct {
		name  string
		say   []string
		err   error
		era   wire.Era
		fails bool
	}{
		{"modern", []string{ours + `"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}`}, nil, wire.Modern, false},
		{"no such method", []string{ours + `"error":{"code":-32601,"message":"x"}}`}, nil, wire.Legacy, false},
		{"asked again", []string{ours + notNow + `}`, again + `"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}`}, nil, wire.Modern, false},
		{"asked for ever", []string{ours + notNow + `}`, again + notNow + `}`}, nil, wire.Legacy, false},
		{"another revision", []string{ours + `"error":{"code":-32022,"message":"","data":{"supported":["2025-11-25"]}}}`}, nil, wire.Legacy, false},
		{"code 0", []string{ours + `"error":{"code":0,"message":""}}`}, nil, wire.Legacy, false},
		{"wrong shape", []string{ours + `"result":{"supportedVersions":"2026-07-28","capabilities":[]}}`}, nil, wire.Legacy, false},
		{"no overlap", []string{ours + `"result":{"supportedVersions":["2027-01-01"],"capabilities":{}}}`}, nil, wire.Legacy, false},
		{"talks first", []string{`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`, ours + `"error":{"code":1,"message":""}}`}, nil, wire.Legacy, false},
		{"silence", nil, nil, wire.Legacy, false},
		{"unreadable", nil, &wire.Violation{Code: wire.CodeParse, Reason: "not strict JSON"}, wire.Legacy, false},
		{"gone", nil, io.EOF, wire.Legacy, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			defer f.Close()
			for _, line := range tt.say {
				f.say(t, line)
			}
			if tt.err != nil {
				f.in <- item{err: tt.err}
			}
			patience := 10 * time.Second
			if tt.name == "silence" || tt.name == "unreadable" {
				patience = 50 * time.Millisecond
			}
			c, era, err := Upstream(t.Context(), f, Options{Patience: patience})
			if (err != nil) != tt.fails || era != tt.era {
				t.Fatalf("era %v, %v", era, err)
			}
			if err != nil {
				return
			}
			defer c.Close()
			if tt.name == "talks first" {
				write(t, c, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
				return
			}
			if tt.name == "unreadable" {
				if _, err := c.Read(t.Context()); !errors.As(err, new(*wire.Violation)) {
					t.Errorf("violation lost: %v", err)
				}
			}
		})
	}
}

// TestFloods lets a server talk to a client that does not listen, and take nothing.
func TestFloods(t *testing.T) {
	f := newFake()
	f.deaf = true
	c := asModern(f, Options{})
	for i := range 4000 {
		f.say(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
	}
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if _, err := c.Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	c.mu.Lock()
	queued := len(c.out)
	c.mu.Unlock()
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
	servers, conns := []*fake{newFake(), newFake()}, []*Conn{}
	for i, f := range servers {
		c := asModern(f, Options{})
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
	c := asModern(f, Options{hold: 20 * time.Millisecond, Patience: time.Second})
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
		call := string(g.s.up[0].ID.Append(nil))
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
