// SPDX-License-Identifier: Apache-2.0

package era

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// unasked is a translator that fails the test where a message reaches it.
type unasked struct {
	translator
	t *testing.T
}

func (u unasked) client(m *wire.Message, _ time.Time) {
	u.t.Errorf("the client's %s is translated", m.Method)
}
func (u unasked) server(m *wire.Message, _ time.Time) {
	u.t.Errorf("the server's %v is translated", m.Kind)
}

const (
	legacyHello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	legacyCall  = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t"}}`
)

// TestPassage: a call and its answer pass by the translator where client and server speak the same era, and
// only there. A message of the other era on the same connection is translated all the same.
func TestPassage(t *testing.T) {
	modernCall := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t",` + metaOf(`{}`) + `}}`
	modernHello := `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + metaOf(`{}`) + `}}`
	for _, tt := range []struct {
		name, hello, call, other string
		wrap                     func(wire.Conn, Options) *Conn
		want                     passage
	}{
		{"legacy", legacyHello, legacyCall, modernCall, Adapt, legacyPassage},
		{"modern", modernHello, modernCall, "", Adapt, modernPassage},
		{"modern, asked before", modernCall, modernCall, "", Upstream, modernPassage},
		{"modern client, legacy server", modernCall, modernCall, "", asModern, noPassage},
		{"legacy client, modern server", legacyHello, legacyCall, "", asLegacy, noPassage},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := &echo{answers: make(chan *wire.Message, 8), result: []byte(`{"content":[{"type":"text","text":"x"}]}`)}
			conn := tt.wrap(wire.Push(e), Options{})
			c := wire.Pull(conn)
			defer c.Close()
			isOpen := func() bool { return passage(conn.passage.Load()) == tt.want }
			call := func(line string) *wire.Message {
				write(t, c, line)
				return read(t, c)
			}
			call(tt.hello)
			waittest.Until(t, "the passage is open", isOpen)
			if tt.want == noPassage {
				call(tt.call)
				waittest.Until(t, "the call is done", func() bool { conn.mu.Lock(); defer conn.mu.Unlock(); return conn.toClient.isIdle() })
				if !isOpen() {
					t.Error("what needs a translation passes without")
				}
				return
			}
			conn.mu.Lock()
			own := conn.t
			conn.t = unasked{own, t}
			conn.mu.Unlock()
			if m := call(tt.call); m.Kind != wire.Response {
				t.Errorf("answer: %v", m.Kind)
			}
			conn.mu.Lock()
			conn.t = own
			conn.mu.Unlock()
			if tt.other == "" {
				return
			}
			if m := call(tt.other); m.Result.Get("resultType").Text() != "complete" {
				t.Errorf("a call of the other era: %s", m.Body())
			}
			waittest.Until(t, "the passage is open again", isOpen)
		})
	}
}

// TestPassageLets: what a passage does not let through is for the translator.
func TestPassageLets(t *testing.T) {
	request := func(id int64, method, version string) *wire.Message {
		m := wire.NewRequest(wire.IntID(id), method, nil)
		m.Route.Version = version
		return m
	}
	notification := wire.NewRequest(wire.ID{}, mcpmsg.Progress, nil)
	answer, local := wire.NewResult(wire.IntID(3), []byte("{}")), wire.NewResult(wire.IntID(3), []byte("{}"))
	local.Local = true
	for _, tt := range []struct {
		name           string
		m              *wire.Message
		client, server string // of which passages it is let through
	}{
		{"call without a revision", request(3, mcpmsg.CallTool, ""), "legacy", ""},
		{"modern call", request(3, mcpmsg.CallTool, modernVersion), "modern", ""},
		{"discover", request(3, mcpmsg.Discover, ""), "modern", ""},
		{"initialize", request(3, mcpmsg.Initialize, ""), "", ""},
		{"call with an id of ours", request(firstID+3, mcpmsg.CallTool, ""), "", ""},
		{"progress", notification, "modern", "legacy modern"},
		{"cancellation", wire.NewCancellation(wire.IntID(3), "", false), "", "legacy modern"},
		{"answer", answer, "legacy", "legacy modern"},
		{"answer in the server's place", local, "legacy", ""},
		{"answer to a request of ours", wire.NewResult(wire.IntID(firstID+3), []byte("{}")), "legacy", ""},
	} {
		for p, name := range map[passage]string{noPassage: "none", legacyPassage: "legacy", modernPassage: "modern"} {
			if got := p.letsClient(tt.m); got != slices.Contains(strings.Fields(tt.client), name) {
				t.Errorf("%s of the client, %s: %v", tt.name, name, got)
			}
			if got := p.letsServer(tt.m); got != slices.Contains(strings.Fields(tt.server), name) {
				t.Errorf("%s of the server, %s: %v", tt.name, name, got)
			}
		}
	}
}
