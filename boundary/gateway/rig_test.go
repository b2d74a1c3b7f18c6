// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/logtest"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

func TestMain(m *testing.M) {
	code := m.Run()
	database.Stop()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// collectSeldom lets garbage grow to four times the live heap until the test ends: a test of
// many short messages otherwise spends a third of its time on collections.
func collectSeldom(t *testing.T) {
	percent := debug.SetGCPercent(400)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
}

// A peer is one end of a conversation that a test plays by hand, line by line.
type peer struct {
	t     *testing.T
	w     io.WriteCloser
	lines chan string
}

func newPeer(t *testing.T, r io.Reader, w io.WriteCloser) *peer {
	p := &peer{t: t, w: w, lines: make(chan string, 4096)}
	go func() {
		defer close(p.lines)
		br := bufio.NewReader(r)
		for {
			line, err := br.ReadString('\n')
			if err != nil {
				return
			}
			p.lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	return p
}

func (p *peer) send(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.w, line+"\n"); err != nil {
		p.t.Fatalf("send: %v", err)
	}
}

// next returns the next line that the peer received.
func (p *peer) next() string {
	p.t.Helper()
	select {
	case line, open := <-p.lines:
		if !open {
			p.t.Fatal("the other side closed the connection")
		}
		return line
	case <-time.After(30 * time.Second):
		p.t.Fatal("no message came")
	}
	panic("unreachable")
}

// none fails if a line comes soon.
func (p *peer) none() {
	p.t.Helper()
	select {
	case line, open := <-p.lines:
		if open {
			p.t.Fatalf("unexpected message %s", line)
		}
	case <-time.After(50 * time.Millisecond):
	}
}

// A rig is a gateway between two peers.
type rig struct {
	t              *testing.T
	client, server *peer
	sink           *memory
	log            *logtest.Buffer
	key            frame.Key
	done           chan error
}

// memory is a Sink for tests.
type memory struct {
	mu   sync.Mutex
	list []Decision
}

func (m *memory) Record(d Decision) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append(m.list, d)
	return nil
}

func (m *memory) all() []Decision {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Decision(nil), m.list...)
}

var testLimits = strictjson.Limits{MendSurrogates: true}

// newRig starts a gateway. adjust may change its configuration.
func newRig(t *testing.T, adjust ...func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, sink: &memory{}, log: &logtest.Buffer{}, done: make(chan error, 1)}
	r.key, _ = frame.NewKey(bytes.Repeat([]byte{7}, 32))
	cfg := Config{Name: "srv", Key: r.key, Sink: r.sink, Log: slog.New(slog.NewTextHandler(r.log, nil))}
	for _, f := range adjust {
		f(&cfg)
	}
	fromClient, clientW := io.Pipe()
	clientR, toClient := io.Pipe()
	fromServer, serverW := io.Pipe()
	serverR, toServer := io.Pipe()
	r.client, r.server = newPeer(t, clientR, clientW), newPeer(t, serverR, serverW)
	front := wire.Pull(wire.NewLines(fromClient, toClient, wire.LinesOptions{}))
	up := wire.Pull(wire.NewLines(fromServer, toServer, wire.LinesOptions{Limits: testLimits}))
	ctx, stop := context.WithCancel(context.Background())
	go func() { r.done <- Run(ctx, wire.Push(front), wire.Push(up), cfg) }()
	t.Cleanup(func() {
		stop()
		clientW.Close()
		serverW.Close()
		if r.done != nil {
			<-r.done
		}
		for range r.client.lines {
		}
		for range r.server.lines {
		}
	})
	return r
}

// end waits for Run to return.
func (r *rig) end() error {
	r.t.Helper()
	select {
	case err := <-r.done:
		r.done = nil
		return err
	case <-time.After(30 * time.Second):
		r.t.Fatal("Run does not return")
	}
	panic("unreachable")
}

// request lets the client ask and returns the id under which the server hears of it.
func (r *rig) request(id, method, params string) (upstreamID string) {
	r.t.Helper()
	if params == "" {
		params = "{}"
	}
	r.client.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`)
	return r.awaits(method)
}

// awaits returns the id of the next request that the server hears, answering
// the gateway's own question for the tools.
func (r *rig) awaits(method string) string {
	r.t.Helper()
	for {
		m := parse(r.t, r.server.next())
		got := m.str("method")
		if got == "tools/list" && method != "tools/list" {
			r.server.send(`{"jsonrpc":"2.0","id":` + string(m["id"]) + `,"result":` + testTools + `}`)
			continue
		}
		if got != method {
			r.t.Fatalf("server heard %s, want %s", got, method)
		}
		return string(m["id"])
	}
}

const testTools = `{"tools":[{"name":"read","inputSchema":{"type":"object"}},{"name":"look","inputSchema":{"type":"object"}}]}`

// result relays the answer to a request and returns what the client got.
func (r *rig) result(upstreamID, result string) message {
	r.t.Helper()
	r.server.send(`{"jsonrpc":"2.0","id":` + upstreamID + `,"result":` + result + `}`)
	return parse(r.t, r.client.next())
}

type message map[string]json.RawMessage

func parse(t *testing.T, line string) message {
	t.Helper()
	var m message
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatalf("not JSON: %v: %q", err, line)
	}
	return m
}

func (m message) str(name string) string {
	var s string
	_ = json.Unmarshal(m[name], &s)
	return s
}

// at walks into nested objects and arrays and returns the raw value.
func (m message) at(path ...any) json.RawMessage {
	raw, _ := json.Marshal(m)
	for _, p := range path {
		switch p := p.(type) {
		case string:
			var o map[string]json.RawMessage
			_ = json.Unmarshal(raw, &o)
			raw = o[p]
		case int:
			var a []json.RawMessage
			_ = json.Unmarshal(raw, &a)
			if p >= len(a) {
				return nil
			}
			raw = a[p]
		}
	}
	return raw
}

func (m message) text(path ...any) string {
	var s string
	_ = json.Unmarshal(m.at(path...), &s)
	return s
}
