// SPDX-License-Identifier: Apache-2.0

package era

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// FuzzSequence lets both sides say anything in any order. An input is lines: the
// first names the translator, others begin with c (client), s (server), v (the
// server's, unreadable) or t (time passes).
func FuzzSequence(f *testing.F) {
	fill := strings.NewReplacer("META", metaOf(`{"elicitation":{},"roots":{}}`), "{…", `{"jsonrpc":"2.0",`, "VERSION", "2025-03-26")
	seed := func(kind, script string) {
		var b strings.Builder
		b.WriteString(kind)
		for line := range strings.Lines(fill.Replace(script)) {
			line = strings.TrimSpace(line)
			if len(line) > 2 && line[1] == '>' {
				b.WriteString("\n" + line[:1] + strings.TrimSpace(line[2:]))
			}
		}
		f.Add([]byte(b.String()))
	}
	for _, kind := range []string{"modern", "legacy", "adapt", "upstream"} {
		seed(kind, calledAs+"\nc> "+retry+"\ns> {…\"id\":1073741826,\"result\":{\"content\":[]}}")
		seed(kind, asked+"\nc> {…\"id\":1073741827,\"result\":{\"roots\":[]}}\nc> {…\"id\":1073741826,\"result\":{\"action\":\"accept\"}}\nt> 1m")
		seed(kind, greetedAs+`
	c> {…"id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1"]},META}}
	s> {…"id":1073741826,"result":{}}
	s> {…"method":"notifications/tools/list_changed"}
	s> {…"id":1,"method":"roots/list"}
	c> {…"method":"notifications/cancelled","params":{"requestId":2}}
	v> 1073741827`)
		seed(kind, opened+`
	c> {…"method":"notifications/initialized"}
	c> {…"id":2,"method":"resources/subscribe","params":{"uri":"a:b"}}
	s> {…"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["a:b"]},"_meta":{"io.modelcontextprotocol/subscriptionId":1073741827}}}
	s> {…"id":1073741826,"result":{}}
	t> 1h`)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		lines := bytes.Split(script, []byte{'\n'})
		if len(lines) > 200 {
			return
		}
		g := newStage(t, string(lines[0]), Options{DangerouslyAllowSampling: true})
		owed := map[wire.ID]int{} // answers that the client may get
		for _, line := range lines[1:] {
			if len(line) == 0 {
				continue
			}
			rest := line[1:]
			switch line[0] {
			case 'c':
				out, err := g.lend(string(rest))
				if err != nil {
					continue
				}
				out.Route = mcpmsg.RouteOf(out.Method, out.Params, nil)
				if out.Kind == wire.Request {
					if owed[out.ID] > 0 {
						continue // a relay sees to that
					}
					owed[out.ID]++
				}
				g.tr.client(out, g.now)
			case 's':
				m, err := g.lend(string(rest))
				if err != nil {
					continue
				}
				g.tr.server(m, g.now)
			case 'v':
				m, err := wire.Decode([]byte(`{"jsonrpc":"2.0","id":`+string(rest)+`,"result":{}}`), testLimits)
				if err != nil {
					continue
				}
				g.tr.violation(&wire.Violation{Code: wire.CodeParse, Reason: "r", Kind: wire.Response, ID: m.ID}, g.now)
			case 't':
				g.after(time.Minute)
			}
			g.turn()
			g.judge(owed)
		}
	})
}

// judge checks what was said since the last time.
func (g *stage) judge(owed map[wire.ID]int) {
	for _, it := range g.s.up {
		out := it.m
		m, err := wire.Decode(out.Append(nil), testLimits)
		if err != nil {
			g.t.Fatalf("server gets %q: %v", out.Append(nil), err)
		}
		if m.Kind != out.Kind || m.ID != out.ID || m.Method != out.Method {
			g.t.Fatalf("server gets %s as %+v", out.Append(nil), out)
		}
	}
	for _, it := range g.s.down {
		if it.m == nil {
			continue
		}
		if _, err := wire.Decode([]byte(rawOf(it.m)), testLimits); err != nil {
			g.t.Fatalf("client gets %s: %v", rawOf(it.m), err)
		}
		if lm, isLegacy := g.tr.(*toLegacy); isLegacy && !lm.native && it.m.Kind != wire.Request {
			if it.m.Kind == wire.Notification {
				continue
			}
			if owed[it.m.ID]--; owed[it.m.ID] < 0 {
				g.t.Fatalf("client gets an answer too many: %s", rawOf(it.m))
			}
			continue
		}
		if it.m.Kind == wire.Response || it.m.Kind == wire.ErrorResponse {
			owed[it.m.ID] = 0
		}
	}
	g.s.up, g.s.down = nil, nil
}

// FuzzOpen: whatever a client presents, only what was sealed for it, and in time, is
// opened; and that to what it was.
func FuzzOpen(f *testing.F) {
	s := testSealer(f, "key")
	now := time.Unix(1_800_000_000, 0)
	s.now = func() time.Time { return now }
	f.Add("state", "files\x00alice", "", uint8(0))
	f.Add("", "", s.seal("state", "files\x00alice"), uint8(7))
	f.Add("\u202e", "a", "====", uint8(255))
	f.Fuzz(func(t *testing.T, state, owner, presented string, at uint8) {
		_, _ = s.open(presented, owner)
		sealed := s.seal(state, owner)
		if got, ok := s.open(sealed, owner); !ok || got != state {
			t.Fatalf("%q came back as %q, %v", state, got, ok)
		}
		if _, ok := s.open(sealed, owner+"x"); ok {
			t.Fatal("opened for another")
		}
		b, err := base64.RawURLEncoding.DecodeString(sealed)
		if err != nil {
			t.Fatal(err)
		}
		b[int(at)%len(b)] ^= 1 << (at % 8)
		if _, ok := s.open(base64.RawURLEncoding.EncodeToString(b), owner); ok {
			t.Fatal("opened although changed")
		}
		now = now.Add(sealWait)
		if _, ok := s.open(sealed, owner); ok {
			t.Fatal("opened after its time")
		}
		now = now.Add(-sealWait)
	})
}
