// SPDX-License-Identifier: Apache-2.0

package era

import (
	"testing"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

const discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}`

// notNow refuses the revision that it names.
const notNow = `"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"],"requested":"2026-07-28"}}`

func TestAdapt(t *testing.T) {
	for _, tt := range []struct{ name, script string }{
		{"modern client, modern server", `
	c> {…"id":1,"method":"server/discover","params":{META}}
	s< {…"id":1,"method":"server/discover","params":{META}}
	c> {…"id":2,"method":"tools/list","params":{META}}
	s> {…"id":1,"result":` + discovered + `}
	s< {…"id":2,"method":"tools/list","params":{META}}
	c< {…"id":1,"result":` + discovered + `}`},
		{"modern client that does not discover", `
	c> {…"id":1,"method":"tools/list","params":{META}}
	s< {…"id":1073741825,"method":"server/discover","params":{META}}
	s> {…"id":1073741825,"result":` + discovered + `}
	s< {…"id":1,"method":"tools/list","params":{META}}`},
		{"modern client, modern server that wants to be asked again", `
	c> {…"id":1,"method":"server/discover","params":{META}}
	s< {…"id":1,"method":"server/discover","params":{META}}
	s> {…"id":1,` + notNow + `}
	c< {…"id":1,` + notNow + `}
	c> {…"id":2,"method":"server/discover","params":{META}}
	s< {…"id":2,"method":"server/discover","params":{META}}
	s> {…"id":2,"result":` + discovered + `}
	c< {…"id":2,"result":` + discovered + `}`},
		{"modern client that does not discover, modern server that wants to be asked again", `
	c> {…"id":1,"method":"tools/list","params":{META}}
	s< {…"id":1073741825,"method":"server/discover","params":{META}}
	s> {…"id":1073741825,` + notNow + `}
	s< {…"id":1073741826,"method":"server/discover","params":{META}}
	s> {…"id":1073741826,"result":` + discovered + `}
	s< {…"id":1,"method":"tools/list","params":{META}}`},
		{"a server that wants to be asked for ever", `
	c> {…"id":1,"method":"tools/list","params":{META}}
	s< {…"id":1073741825,"method":"server/discover","params":{META}}
	s> {…"id":1073741825,` + notNow + `}
	s< {…"id":1073741826,"method":"server/discover","params":{META}}
	s> {…"id":1073741826,` + notNow + `}
	s< {…"id":1073741827,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`},
		{"modern client, legacy server", `
	c> {…"id":1,"method":"server/discover","params":{META}}
	s< {…"id":1,"method":"server/discover","params":{META}}
	s> {…"id":1,"error":{"code":0,"message":"what?"}}
	s< {…"id":1073741825,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"roots":{}},"clientInfo":{"name":"c","version":"1"}}}
	s> {…"id":1073741825,"result":{"protocolVersion":"2024-11-05","capabilities":{}}}
	s< {…"method":"notifications/initialized"}
	c< {…"id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}`},
		{"a legacy server that does not know what to say", `
	c> {…"id":1,"method":"server/discover","params":{META}}
	s< {…"id":1,"method":"server/discover","params":{META}}
	t> 11s
	s< {…"id":1073741825,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"roots":{}},"clientInfo":{"name":"c","version":"1"}}}
	s> {…"id":1,"error":{"code":-32601,"message":"late"}}`},
		{"a server that lies about what it speaks", `
	c> {…"id":1,"method":"server/discover","params":{META}}
	s< {…"id":1,"method":"server/discover","params":{META}}
	s> {…"id":1,"result":{"supportedVersions":["2030-01-01"],"capabilities":{}}}
	s< {…"id":1073741825,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"roots":{}},"clientInfo":{"name":"c","version":"1"}}}
	s> {…"id":1073741825,"result":{"protocolVersion":"2030-01-01","capabilities":{}}}
	c< {…"id":1,"error":{"code":7702,"message":"pellucid: the server could not be initialized"}}`},
		{"a server that speaks neither, and then does", `
	c> {…"id":1,"method":"server/discover","params":{META}}
	s< {…"id":1,"method":"server/discover","params":{META}}
	s> {…"id":1,"error":{"code":1,"message":""}}
	s< {…"id":1073741825,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"roots":{}},"clientInfo":{"name":"c","version":"1"}}}
	s> {…"id":1073741825,"error":{"code":1,"message":""}}
	c< {…"id":1,"error":{"code":7702,"message":"pellucid: the server could not be initialized"}}
	c> {…"id":2,"method":"server/discover","params":{META}}
	s< {…"id":2,"method":"server/discover","params":{META}}
	s> {…"id":2,"result":` + discovered + `}
	c< {…"id":2,"result":` + discovered + `}`},
		{"legacy client, legacy server", `
	c> {…"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{}}}
	s< {…"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{}}}
	s> {…"method":"notifications/message","params":{"level":"info","data":1}}
	c< {…"method":"notifications/message","params":{"level":"info","data":1}}
	s> {…"id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{}}}
	c< {…"id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{}}}
	c> {…"method":"notifications/initialized"}
	s< {…"method":"notifications/initialized"}
	s> {…"id":1,"method":"sampling/createMessage","params":{}}
	c< {…"id":1,"method":"sampling/createMessage","params":{}}
	c> {…"id":1,"result":{}}
	s< {…"id":1,"result":{}}`},
		{"legacy client, modern server", `
	c> {…"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"tasks":{}},"clientInfo":{"name":"c","version":"1"}}}
	s< {…"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"tasks":{}},"clientInfo":{"name":"c","version":"1"}}}
	s> {…"id":1,"error":{"code":-32601,"message":"gone"}}
	s< {…"id":1073741825,"method":"server/discover","params":{` + metaOf(`{}`) + `}}
	s> {…"id":1073741825,"result":` + discovered + `}
	c< {…"id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"server","version":"0"}}}`},
		{"legacy client, no server at all", `
	c> {…"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{}}}
	s< {…"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{}}}
	s> {…"id":1,"error":{"code":-32603,"message":"broken"}}
	s< {…"id":1073741825,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/clientCapabilities":{}}}}
	t> 11s
	c< {…"id":1,"error":{"code":-32603,"message":"broken"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) { play(t, "adapt", Options{}, tt.script) })
	}
}

// TestClientOfTheOtherEra is what a translator does that has nothing to translate.
func TestClientOfTheOtherEra(t *testing.T) {
	for _, tt := range []struct{ before, script string }{
		{"modern", greetedAs + `
	c> {…"id":2,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
	c< {…"id":2,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{},"tasks":{},"x":1.50},"serverInfo":{"name":"s","version":"2"},"instructions":"\u0041"}}
	c> {…"method":"notifications/initialized"}
	c> {…"id":3,"method":"ping"}
	s< {…"id":3,"method":"ping"}
	s> {…"id":3,"result":{}}
	c< {…"id":3,"result":{}}
	s> {…"id":1,"method":"roots/list"}
	c< {…"id":1,"method":"roots/list"}
	c> {…"id":1,"result":{"roots":[]}}
	s< {…"id":1,"result":{"roots":[]}}`},
		{"legacy", `
	c> {…"id":1,"method":"tools/call","params":{"name":"t",META}}
	s< {…"id":1,"method":"tools/call","params":{"name":"t",META}}
	s> {…"id":1,"result":{"resultType":"input_required","requestState":"x"}}
	c< {…"id":1,"result":{"resultType":"input_required","requestState":"x"}}`},
	} {
		t.Run(tt.before, func(t *testing.T) { play(t, tt.before, Options{}, tt.script) })
	}
}

// TestViolations lets the server's answers be unreadable.
func TestViolations(t *testing.T) {
	read := func(g *stage, id wire.ID) *wire.Violation {
		t.Helper()
		g.s.up, g.s.down = nil, nil
		g.tr.violation(&wire.Violation{Code: wire.CodeParse, Reason: "r", Kind: wire.Response, ID: id}, g.now)
		g.turn()
		for _, it := range g.s.down {
			if it.v != nil {
				return it.v
			}
		}
		return nil
	}
	g := newStage(t, "modern", Options{})
	g.client(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + metaOf(`{}`) + `}}`)
	if v := read(g, wire.IntID(firstID+1)); v == nil || !v.ID.IsZero() {
		t.Errorf("handshake: %+v", v)
	}
	if len(g.s.down) != 2 || g.s.down[0].m.Kind != wire.ErrorResponse {
		t.Errorf("handshake: client got %v", g.said())
	}
	g = newStage(t, "modern", Options{})
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t",` + metaOf(`{"roots":{}}`) + `}}`,
		`s{"jsonrpc":"2.0","id":1073741825,"result":{"protocolVersion":"2024-11-05","capabilities":{}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t",` + metaOf(`{}`) + `}}`,
	} {
		if line[0] == 's' {
			g.server(line[1:])
		} else {
			g.client(line)
		}
	}
	if v := read(g, wire.IntID(firstID+3)); v == nil || v.ID != wire.IntID(2) {
		t.Errorf("call: %+v", v)
	}
	g.server(`{"jsonrpc":"2.0","id":9,"method":"roots/list"}`)
	if v := read(g, wire.IntID(firstID+2)); v == nil || !v.ID.IsZero() {
		t.Errorf("parked call: %+v", v)
	}
	g.client(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t","requestState":"` + handle1 + `","inputResponses":{"ask-1":{}},` + metaOf(`{}`) + `}}`)
	if said := g.said(); len(said) != 3 {
		t.Errorf("after it: %q", said)
	}
}
