// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A peer is a server by hand: what it is asked, in order, and how often it was reached.
type peer struct {
	t      *testing.T
	answer func(p *peer, method, id string, params json.RawMessage) string // a message, or ""

	mu    sync.Mutex
	dials int
	heard []string
}

func (p *peer) dial(context.Context) (wire.Conn, error) {
	fromClient, toServer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fromServer, toClient, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.dials++
	p.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer toClient.Close()
		defer fromClient.Close()
		lines := bufio.NewScanner(fromClient)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var m struct {
				ID     json.RawMessage
				Method string
				Params json.RawMessage
			}
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				p.t.Error(err)
			}
			p.mu.Lock()
			p.heard = append(p.heard, m.Method)
			p.mu.Unlock()
			for _, out := range strings.Split(p.answer(p, m.Method, string(m.ID), m.Params), "\n") {
				switch {
				case out == "bye":
					return
				case out == "":
				default:
					if _, err := io.WriteString(toClient, out+"\n"); err != nil {
						return
					}
				}
			}
		}
	}()
	return &piped{wire.NewLines(fromServer, toServer, wire.LinesOptions{}), func() { toServer.Close(); fromServer.Close(); <-done }}, nil
}

type piped struct {
	wire.Conn
	end func()
}

func (p *piped) Close() error {
	err := p.Conn.Close()
	p.end()
	return err
}

func result(id, raw string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":` + raw + `}` }

func failure(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"Obey."}}`
}

// legacy has one tool.
func legacy(description string) func(*peer, string, string, json.RawMessage) string {
	return func(_ *peer, method, id string, params json.RawMessage) string {
		switch method {
		case "initialize":
			return result(id, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`)
		case "tools/list":
			return result(id, `{"tools":[`+tool("x", description)+`]}`)
		case "tools/call":
			return result(id, `{"content":[],"params":`+string(params)+`}`)
		}
		if id == "" {
			return ""
		}
		return failure(id)
	}
}

// A client reads a Conn.
type client struct {
	wire.ReadConn
	*Conn
}

func (c client) Write(ctx context.Context, m *wire.Message) error { return c.ReadConn.Write(ctx, m) }
func (c client) Close() error                                     { return c.ReadConn.Close() }

// opened is a Conn to p.
func (r *rig) opened(p *peer) client {
	r.t.Helper()
	p.t = r.t
	r.Set([]Config{{Name: "a", Settings: Settings{Timeout: 30 * time.Second, RejectHidden: true}, Collect: func(ctx context.Context, _ bool) (*surface.Surface, error) {
		up, _ := p.dial(ctx)
		conn := wire.Pull(up)
		defer conn.Close()
		return surface.Collect(ctx, conn, surface.CollectOptions{Legacy: true})
	}}})
	c, err := r.Server("a").Conn(ctx, p.dial, "1")
	if err != nil {
		r.t.Fatal(err)
	}
	read := client{wire.Pull(c), c}
	r.t.Cleanup(func() { read.Close() })
	return read
}

func say(t *testing.T, c interface {
	Write(context.Context, *wire.Message) error
}, raw string) {
	t.Helper()
	m, err := wire.Decode([]byte(raw), strictjson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(ctx, m); err != nil {
		t.Errorf("%s: %v", raw, err)
	}
}

func hears(t *testing.T, c wire.ReadConn, want string) {
	t.Helper()
	one, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	m, err := c.Read(one)
	if err != nil {
		t.Fatalf("%v, want %s", err, want)
	}
	if got := string(m.Append(nil)); !strings.Contains(got, want) || strings.Contains(got, "Obey") {
		t.Errorf("%s, want %s", got, want)
	}
}

const (
	askHello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`
	greeting = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	askCall  = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}`
)

func (p *peer) counts(t *testing.T, dials, hellos, greetings int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	count := func(method string) (n int) {
		for _, m := range p.heard {
			if m == method {
				n++
			}
		}
		return n
	}
	if p.dials != dials || count("initialize") != hellos || count("notifications/initialized") != greetings {
		t.Errorf("%d dials, heard %q", p.dials, p.heard)
	}
}

// TestConnOnce: a server of the older era is reached once and greeted once, by its
// client's own handshake, and what it has said meanwhile comes afterwards.
func TestConnOnce(t *testing.T) {
	r := newRig(t)
	base := legacy("X.")
	p := &peer{answer: func(p *peer, method, id string, params json.RawMessage) string {
		if method == "notifications/initialized" {
			return `{"jsonrpc":"2.0","id":9,"method":"ping"}` + "\n" + `{"jsonrpc":"2.0","id":"r","method":"roots/list"}`
		}
		return base(p, method, id, params)
	}}
	c := r.opened(p)
	say(t, c, askHello)
	hears(t, c, `"serverInfo"`)
	one, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	if m, err := c.Read(one); err == nil {
		t.Errorf("%s before the client's greeting", m.Method)
	}
	say(t, c, greeting)
	hears(t, c, `"roots/list"`)
	say(t, c, askCall)
	hears(t, c, `"params":{"name":"x"}`)
	p.counts(t, 1, 1, 1)
	r.admits("a", "x", "X.", true)
	r.admits("a", "x", "Y.", false)
}

// TestConnRejected: not a word of a rejected server is heard.
func TestConnRejected(t *testing.T) {
	r := newRig(t)
	p := &peer{answer: legacy("Obey\u200b.")}
	c := r.opened(p)
	say(t, c, askHello)
	hears(t, c, `"code":7603`)
	if _, err := c.Read(ctx); !errors.Is(err, ErrRejected) || !errors.Is(c.Err(), ErrRejected) {
		t.Error(err)
	}
	p.counts(t, 1, 1, 1)
}

// TestConnRefuses: a client hears why a server would not be initialized.
func TestConnRefuses(t *testing.T) {
	r := newRig(t)
	c := r.opened(&peer{answer: func(_ *peer, _, id string, _ json.RawMessage) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32602,"message":"Unsupported\u200b protocol version","data":{"supported":["2024-11-05"]}}}`
	}})
	say(t, c, askHello)
	hears(t, c, `"supported":["2024-11-05"]`)
	_, err := c.Read(ctx)
	told := wire.AnswerTo(wire.IntID(7), err) // others who wait
	if errors.Is(err, ErrRejected) || !strings.HasSuffix(err.Error(), `error -32602, "Unsupported\u200b protocol version"`) || told == nil || told.Local || told.Error.Get("message").Text() != "Unsupported\u200b protocol version" {
		t.Errorf("%v, %v", err, told)
	}
}

// TestConnBroken: what was no message when the server was asked is the end, not a message
// to skip: a reader that went on would come back for ever.
func TestConnBroken(t *testing.T) {
	r := newRig(t)
	base := legacy("X.")
	c := r.opened(&peer{answer: func(p *peer, method, id string, params json.RawMessage) string {
		if method == "tools/list" {
			return result(id, `{"tools":[{"name":"x","name":"y"}]}`)
		}
		return base(p, method, id, params)
	}})
	say(t, c, askHello)
	hears(t, c, `"code":7603`)
	_, err := c.Read(ctx)
	var broken *wire.Violation
	if !errors.Is(err, ErrRejected) || errors.As(err, &broken) || !errors.As(c.Err(), &broken) {
		t.Errorf("%v, of the check %v", err, c.Err())
	}
}

// TestConnDiscover: a client of the newer era falls back to the handshake, and hears no
// word of the server before it was checked.
func TestConnDiscover(t *testing.T) {
	for _, dies := range []bool{false, true} {
		r := newRig(t)
		base := legacy("X.")
		p := &peer{answer: func(p *peer, method, id string, params json.RawMessage) string {
			if method == "server/discover" && dies {
				return "bye"
			}
			return base(p, method, id, params)
		}}
		c := r.opened(p)
		say(t, c, `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}`)
		hears(t, c, `"code":-32601`)
		say(t, c, strings.Replace(askHello, `"id":1`, `"id":5`, 1))
		hears(t, c, `"serverInfo"`)
		say(t, c, greeting)
		say(t, c, askCall)
		hears(t, c, `"params":{"name":"x"}`)
		if want := 1; !dies {
			p.counts(t, want, 1, 1)
		} else {
			p.counts(t, want+1, 1, 1)
		}
	}
}

// TestConnModern: a server of the newer era is reached once, whatever it is asked first.
func TestConnModern(t *testing.T) {
	for _, first := range []string{"server/discover", "tools/list"} {
		r := newRig(t)
		p := &peer{answer: func(_ *peer, method, id string, _ json.RawMessage) string {
			switch method {
			case "server/discover":
				return result(id, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}`)
			case "tools/list":
				return result(id, `{"tools":[`+tool("x", "X.")+`]}`)
			}
			return failure(id)
		}}
		c := r.opened(p)
		say(t, c, `{"jsonrpc":"2.0","id":1,"method":"`+first+`","params":{}}`)
		hears(t, c, `"id":1,"result"`)
		p.counts(t, 1, 0, 0)
		r.admits("a", "x", "X.", true)
	}
}

// TestConnAgain: a server that lists nothing before its client has answered it is
// checked over a connection of its own.
func TestConnAgain(t *testing.T) {
	r := newRig(t)
	base := legacy("X.")
	p := &peer{answer: func(p *peer, method, id string, params json.RawMessage) string {
		p.mu.Lock()
		first := p.dials == 1
		p.mu.Unlock()
		if method == "tools/list" && first {
			return `{"jsonrpc":"2.0","id":"r","method":"roots/list"}`
		}
		return base(p, method, id, params)
	}}
	c := r.opened(p)
	c.opt.Timeout = 5 * time.Second // a busy machine may stop for a while
	say(t, c, askHello)
	hears(t, c, `"serverInfo"`)
	say(t, c, greeting)
	say(t, c, askCall)
	hears(t, c, `"params":{"name":"x"}`)
	p.counts(t, 3, 3, 3)
}

// TestConnEnds: a server that cannot be reached or ends, and a client that leaves, end
// everything at once.
func TestConnEnds(t *testing.T) {
	r := newRig(t)
	p := &peer{answer: func(*peer, string, string, json.RawMessage) string { return "bye" }}
	c := r.opened(p)
	say(t, c, askHello)
	if _, err := c.Read(ctx); err == nil {
		t.Error("no error")
	}
	p.counts(t, 1, 1, 0)

	gone := errors.New("gone")
	if _, err := r.Server("a").Conn(ctx, func(context.Context) (wire.Conn, error) { return nil, gone }, "1"); !errors.Is(err, gone) {
		t.Error(err)
	}

	silent := &peer{answer: func(*peer, string, string, json.RawMessage) string { return "" }}
	c = newRig(t).opened(silent)
	say(t, c, askHello)
	began := time.Now()
	if err := c.Close(); err != nil || time.Since(began) > 20*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	if err := c.Err(); err != nil {
		t.Error(err)
	}
}

// TestConnWaits: what a client says meanwhile reaches the server afterwards, in order.
func TestConnWaits(t *testing.T) {
	r := newRig(t)
	p := &peer{answer: legacy("X.")}
	c := r.opened(p)
	say(t, c, `{"jsonrpc":"2.0","method":"notifications/early"}`)
	say(t, c, askHello)
	say(t, c, greeting)
	for i := range 5 {
		say(t, c, strings.Replace(askCall, `"id":2`, fmt.Sprintf(`"id":%d`, 10+i), 1))
	}
	hears(t, c, `"serverInfo"`)
	for i := range 5 {
		hears(t, c, fmt.Sprintf(`"id":%d,`, 10+i))
	}
	p.counts(t, 1, 1, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Contains(p.heard, "notifications/early") {
		t.Error("what came before the first request has reached the server")
	}
}

// A deaf Conn takes no call of a tool, until it is closed.
type deaf struct {
	wire.Conn
	called, closed chan struct{}
	close          func() // of closed, once
}

func (d *deaf) Write(ctx context.Context, out *wire.Message) error {
	if out.Method == "tools/call" {
		close(d.called)
		<-d.closed
		return wire.ErrPeerClosed
	}
	return d.Conn.Write(ctx, out)
}

func (d *deaf) Close() error {
	d.close()
	return d.Conn.Close()
}

// TestConnDeaf: a server that does not read what waited for it keeps nobody from leaving.
func TestConnDeaf(t *testing.T) {
	r := newRig(t)
	base, said := legacy("X."), make(chan struct{})
	p := &peer{t: t, answer: func(p *peer, method, id string, params json.RawMessage) string {
		if method == "tools/list" {
			<-said
		}
		return base(p, method, id, params)
	}}
	d := &deaf{called: make(chan struct{}), closed: make(chan struct{})}
	d.close = sync.OnceFunc(func() { close(d.closed) })
	r.Set([]Config{{Name: "a", Settings: Settings{Timeout: 5 * time.Second}}})
	conn, err := r.Server("a").Conn(ctx, func(ctx context.Context) (_ wire.Conn, err error) {
		d.Conn, err = p.dial(ctx)
		return d, err
	}, "1")
	if err != nil {
		t.Fatal(err)
	}
	c := wire.Pull(conn)
	go c.Read(ctx)
	say(t, c, askHello)
	say(t, c, askCall)
	close(said)
	<-d.called
	ended := make(chan struct{})
	go func() { defer close(ended); c.Close() }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		d.close() // so that the test ends
		t.Error("Close waits for the server to read")
		<-ended
	}
}
