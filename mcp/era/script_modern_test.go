// SPDX-License-Identifier: Apache-2.0

package era

import (
	"strings"
	"testing"
)

// opened is the beginning of scripts before a modern server.
const opened = `
	c> {…"id":1,"method":"initialize","params":{"protocolVersion":"VERSION","capabilities":{"elicitation":{},"roots":{"listChanged":true},"sampling":{},"tasks":{}},"clientInfo":{"name":"c","version":"1"}}}
	s< {…"id":1073741825,"method":"server/discover","params":{META}}
	s> {…"id":1073741825,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{},"extensions":{}},"instructions":"\u0041","ttlMs":5,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"2"}}}}
	c< {…"id":1,"result":{"protocolVersion":"VERSION","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}},"serverInfo":{"name":"s","version":"2"},"instructions":"\u0041"}}
`

const caps = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"roots":{"listChanged":true}}}`

// asked goes on with a call that needs input.
const asked = opened + `
	c> {…"id":2,"method":"tools/call","params":{"name":"t","arguments":{"n":1.50},"requestState":"forged","inputResponses":{}}}
	s< {…"id":2,"method":"tools/call","params":{"name":"t","arguments":{"n":1.50},META}}
	s> {…"id":2,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{}}}},"b":{"method":"roots/list"}},"requestState":"\u0073\/tate"}}
	c< {…"id":1073741826,"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{}}}}
	c< {…"id":1073741827,"method":"roots/list"}
`

func callResult(before, after string) string {
	return opened + `
	c> {…"id":2,"method":"tools/call","params":{"name":"t"}}
	s< {…"id":2,"method":"tools/call","params":{"name":"t",META}}
	s> {…"id":2,"result":` + before + `}
	c< {…"id":2,"result":` + after + `}`
}

func listResult(before, after string) string {
	return opened + `
	c> {…"id":2,"method":"tools/list"}
	s< {…"id":2,"method":"tools/list","params":{META}}
	s> {…"id":2,"result":{"resultType":"complete","ttlMs":1,"cacheScope":"public","tools":[` + before + `]}}
	c< {…"id":2,"result":{"tools":[` + after + `]}}`
}

func TestLegacyBeforeModern(t *testing.T) {
	for _, tt := range []struct{ name, version, script string }{
		{"initialize", "2025-11-25", opened},
		{"initialize, oldest", "2024-11-05", opened},
		{"initialize twice", "2025-11-25", opened + `
	c> {…"id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
	c< {…"id":2,"error":{"code":-32600,"message":"pellucid: already initialized"}}`},
		{"ping", "2025-11-25", opened + `
	c> {…"id":2,"method":"ping"}
	c< {…"id":2,"result":{}}`},
		{"a server that asks", "2025-11-25", opened + `
	s> {…"id":2,"method":"sampling/createMessage","params":{}}
	s< {…"id":2,"error":{"code":-32601,"message":"pellucid: the client cannot be asked"}}`},
		{"logging", "2025-11-25", opened + `
	c> {…"id":2,"method":"logging/setLevel","params":{"level":"loud"}}
	c< {…"id":2,"error":{"code":-32602,"message":"pellucid: params are not acceptable"}}
	c> {…"id":3,"method":"logging/setLevel","params":{"level":"error"}}
	c< {…"id":3,"result":{}}
	c> {…"id":4,"method":"tools/list","params":{"_meta":{"progressToken":1}}}
	s< {…"id":4,"method":"tools/list","params":{"_meta":{"progressToken":1,` + caps[9:len(caps)-1] + `,"io.modelcontextprotocol/logLevel":"error"}}}
	s> {…"method":"notifications/message","params":{"level":"error","data":1.0}}
	c< {…"method":"notifications/message","params":{"level":"error","data":1.0}}`},
		{"a result loses what is new", "2025-11-25", callResult(
			`{"resultType":"complete","content":[{"type":"text","text":"\u0041"}],"structuredContent":{"n":1e2},"z":1}`,
			`{"content":[{"type":"text","text":"\u0041"}],"structuredContent":{"n":1e2},"z":1}`)},
		{"structured content that is no object", "2025-11-25", callResult(
			`{"resultType":"complete","content":[],"structuredContent":[1.0]}`, `{"content":[{"type":"text","text":"[1.0]"}]}`)},
		{"structured content before its time", "2025-03-26", callResult(
			`{"resultType":"complete","content":[{"type":"text","text":"x"}],"structuredContent":{}}`, `{"content":[{"type":"text","text":"x"}]}`)},
		{"a link before its time", "2025-03-26", callResult(
			`{"resultType":"complete","content":[{"type":"resource_link","name":"n","uri":"a:b"},{"type":"audio","data":"QQ==","mimeType":"audio/x"}]}`,
			`{"content":[{"type":"text","text":"n <a:b>"},{"type":"audio","data":"QQ==","mimeType":"audio/x"}]}`)},
		{"audio before its time", "2024-11-05", callResult(
			`{"resultType":"complete","content":[{"type":"audio","data":"QQ==","mimeType":"audio/x"}]}`,
			`{"content":[{"type":"resource","resource":{"uri":"pellucid:audio","mimeType":"audio/x","blob":"QQ=="}}]}`)},
		{"tools", "2025-11-25", listResult(
			`{"name":"t","title":"T","icons":[],"inputSchema":{"type":"object"},"outputSchema":{"type":"array"}},{"name":"u","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}`,
			`{"name":"t","title":"T","icons":[],"inputSchema":{"type":"object"}},{"name":"u","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}`)},
		{"tools, oldest", "2024-11-05", listResult(
			`{"name":"t","title":"T","icons":[],"annotations":{},"_meta":{},"inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}`,
			`{"name":"t","inputSchema":{"type":"object"}}`)},
		{"an unknown kind of result", "2025-11-25", opened + `
	c> {…"id":2,"method":"tools/call","params":{"name":"t","task":{}}}
	s< {…"id":2,"method":"tools/call","params":{"name":"t",META}}
	s> {…"id":2,"result":{"resultType":"task","taskId":"x"}}
	c< {…"id":2,"error":{"code":7705,"message":"pellucid: the server's answer was not acceptable MCP"}}`},
		{"errors", "2025-11-25", opened + `
	c> {…"id":2,"method":"resources/read","params":{"uri":"a:b"}}
	s< {…"id":2,"method":"resources/read","params":{"uri":"a:b",META}}
	s> {…"id":2,"error":{"code":-32602,"message":"none","data":{"uri":"a:b"}}}
	c< {…"id":2,"error":{"code":-32002,"message":"none","data":{"uri":"a:b"}}}
	c> {…"id":3,"method":"tools/list"}
	s< {…"id":3,"method":"tools/list","params":{META}}
	s> {…"id":3,"error":{"code":-32022,"message":"v","data":{"n":1.0}}}
	c< {…"id":3,"error":{"code":-32602,"message":"v","data":{"n":1.0}}}
	c> {…"id":4,"method":"tools/list"}
	s< {…"id":4,"method":"tools/list","params":{META}}
	s> {…"id":4,"error":{"code":-32602,"message":"v"}}
	c< {…"id":4,"error":{"code":-32602,"message":"v"}}`},
		{"input", "2025-11-25", asked + `
	c> {…"id":1073741827,"result":{"roots":[]}}
	c> {…"id":1073741826,"result":{"action":"accept","content":{"n":1.0}}}
	s< {…"id":1073741828,"method":"tools/call","params":{"name":"t","arguments":{"n":1.50},"requestState":"\u0073\/tate","inputResponses":{"a":{"action":"accept","content":{"n":1.0}},"b":{"roots":[]}},META}}
	s> {…"id":2,"result":{"resultType":"complete","content":[{"type":"text","text":"late"}]}}
	s> {…"id":1073741828,"result":{"resultType":"complete","content":[]}}
	c< {…"id":2,"result":{"content":[]}}`},
		{"input that the client refuses", "2025-11-25", asked + `
	c> {…"id":1073741827,"error":{"code":1,"message":"no"}}
	c< {…"method":"notifications/cancelled","params":{"requestId":1073741826}}
	c< {…"id":2,"error":{"code":7704,"message":"pellucid: the client did not give the input that the server asked for"}}
	c> {…"id":1073741826,"result":{"action":"accept"}}`},
		{"input that the client was never asked for", "2025-11-25", asked + `
	c> {…"id":99,"result":{"roots":[]}}
	c> {…"id":1073741827,"result":{"roots":[]}}
	c> {…"id":1073741827,"result":{"roots":[]}}`},
		{"cancelled while it is asked", "2025-11-25", asked + `
	c> {…"method":"notifications/cancelled","params":{"requestId":2}}
	c< {…"method":"notifications/cancelled","params":{"requestId":1073741826}}
	c< {…"method":"notifications/cancelled","params":{"requestId":1073741827}}`},
		{"sampling is not allowed", "2025-11-25", opened + `
	c> {…"id":2,"method":"tools/call","params":{"name":"t"}}
	s< {…"id":2,"method":"tools/call","params":{"name":"t",META}}
	s> {…"id":2,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}}}}
	c< {…"id":2,"error":{"code":7704,"message":"pellucid: the client did not give the input that the server asked for"}}`},
		{"a result that asks for nothing at all", "2025-11-25", opened + `
	c> {…"id":2,"method":"tools/call","params":{"name":"t"}}
	s< {…"id":2,"method":"tools/call","params":{"name":"t",META}}
	s> {…"id":2,"result":{"resultType":"input_required"}}
	c< {…"id":2,"error":{"code":7705,"message":"pellucid: the server's answer was not acceptable MCP"}}`},
		{"input for what cannot ask", "2025-11-25", opened + `
	c> {…"id":2,"method":"tools/list"}
	s< {…"id":2,"method":"tools/list","params":{META}}
	s> {…"id":2,"result":{"resultType":"input_required","requestState":"x"}}
	c< {…"id":2,"error":{"code":7705,"message":"pellucid: the server's answer was not acceptable MCP"}}`},
		{"a server that wants time", "2025-11-25", opened + `
	c> {…"id":2,"method":"tools/call","params":{"name":"t"}}
	s< {…"id":2,"method":"tools/call","params":{"name":"t",META}}
	s> {…"id":2,"result":{"resultType":"input_required","requestState":"x"}}
	t> 500ms
	t> 1s
	s< {…"id":1073741826,"method":"tools/call","params":{"name":"t","requestState":"x",META}}
	s> {…"id":1073741826,"result":{"resultType":"input_required","inputRequests":{},"requestState":"y"}}
	t> 2s
	s< {…"id":1073741827,"method":"tools/call","params":{"name":"t","requestState":"y",META}}
	s> {…"id":1073741827,"result":{"resultType":"input_required","requestState":"y"}}
	t> 4s
	s< {…"id":1073741828,"method":"tools/call","params":{"name":"t","requestState":"y",META}}
	s> {…"id":1073741828,"result":{"resultType":"input_required","requestState":"y"}}
	c< {…"id":2,"error":{"code":7703,"message":"pellucid: the server asked for input too often"}}`},
		{"lists", "2025-11-25", opened + `
	c> {…"method":"notifications/initialized"}
	s< {…"id":1073741826,"method":"subscriptions/listen","params":{META,"notifications":{"toolsListChanged":true}}}
	s> {…"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":1073741826}}}
	s> {…"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1073741826}}}
	c< {…"method":"notifications/tools/list_changed","params":{}}
	s> {…"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
	s> {…"method":"notifications/tools/list_changed"}
	s> {…"id":1073741826,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1073741826}}}
	t> 2s
	s< {…"id":1073741827,"method":"subscriptions/listen","params":{META,"notifications":{"toolsListChanged":true}}}`},
		{"resources", "2025-11-25", opened + `
	c> {…"id":2,"method":"resources/subscribe","params":{"uri":"a:\u0062"}}
	s< {…"id":1073741826,"method":"subscriptions/listen","params":{META,"notifications":{"resourceSubscriptions":["a:b"]}}}
	s> {…"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["a:b"]},"_meta":{"io.modelcontextprotocol/subscriptionId":1073741826}}}
	c< {…"id":2,"result":{}}
	s> {…"method":"notifications/resources/updated","params":{"uri":"a:b","_meta":{"io.modelcontextprotocol/subscriptionId":1073741826,"k":1.0}}}
	c< {…"method":"notifications/resources/updated","params":{"uri":"a:b","_meta":{"k":1.0}}}
	c> {…"id":3,"method":"resources/unsubscribe","params":{"uri":"a:b"}}
	s< {…"method":"notifications/cancelled","params":{"requestId":1073741826}}
	c< {…"id":3,"result":{}}
	s> {…"method":"notifications/resources/updated","params":{"uri":"a:b","_meta":{"io.modelcontextprotocol/subscriptionId":1073741826}}}`},
		{"a subscription that is not accepted", "2025-11-25", opened + `
	c> {…"id":2,"method":"resources/subscribe","params":{"uri":"a:b"}}
	s< {…"id":1073741826,"method":"subscriptions/listen","params":{META,"notifications":{"resourceSubscriptions":["a:b"]}}}
	s> {…"method":"notifications/subscriptions/acknowledged","params":{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":1073741826}}}
	s< {…"method":"notifications/cancelled","params":{"requestId":1073741826}}
	c< {…"id":2,"error":{"code":7708,"message":"pellucid: the server did not accept the subscription"}}
	c> {…"id":3,"method":"resources/subscribe","params":{"uri":"a:b"}}
	s< {…"id":1073741827,"method":"subscriptions/listen","params":{META,"notifications":{"resourceSubscriptions":["a:b"]}}}
	t> 11s
	s< {…"method":"notifications/cancelled","params":{"requestId":1073741827}}
	c< {…"id":3,"error":{"code":7701,"message":"pellucid: the server did not answer in time"}}`},
		{"progress, oldest", "2024-11-05", opened + `
	c> {…"id":2,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"p"}}}
	s< {…"id":2,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"p",` + caps[9:] + `}}
	s> {…"method":"notifications/progress","params":{"progressToken":"p","progress":1.0,"message":"m"}}
	c< {…"method":"notifications/progress","params":{"progressToken":"p","progress":1.0}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			play(t, "legacy", Options{}, strings.NewReplacer("VERSION", tt.version, "META", caps).Replace(tt.script), newPublished(t, tt.version, modernVersion))
		})
	}
}

func TestEndlessInput(t *testing.T) {
	g := newStage(t, "legacy", Options{})
	g.client(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`)
	g.server(`{"jsonrpc":"2.0","id":1073741825,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}`)
	g.client(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}`)
	questions := 0
	for range 100 {
		id := ""
		for _, out := range g.s.up {
			if out.m.Method == "tools/call" {
				id = string(out.m.ID.Append(nil))
			}
		}
		if id == "" {
			break
		}
		g.said()
		g.server(`{"jsonrpc":"2.0","id":` + id + `,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"` + strings.Repeat("s", 1000) + `"}}`)
		for _, it := range g.s.down {
			if it.m.Method == "roots/list" {
				questions++
				g.client(`{"jsonrpc":"2.0","id":` + string(it.m.ID.Append(nil)) + `,"result":{"roots":[]}}`)
			}
		}
	}
	said := g.said()
	if questions != defaultRounds || len(said) == 0 || !strings.Contains(said[len(said)-1], `"code":7703`) {
		t.Errorf("%d questions, then %v", questions, said)
	}
}

func TestHugeState(t *testing.T) {
	for size, want := range map[int]string{maxState - 2: `"requestState":"`, maxState: `"code":7705`, 10 << 20: `"code":7705`} {
		g := newStage(t, "legacy", Options{})
		g.client(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`)
		g.server(`{"jsonrpc":"2.0","id":1073741825,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}`)
		g.client(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}`)
		g.said()
		state := strings.Repeat("s", size)
		g.server(`{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"` + state + `"}}`)
		if len(g.tr.(*toModern).inputs) > 0 {
			g.said()
			g.client(`{"jsonrpc":"2.0","id":1073741826,"result":{"roots":[]}}`)
		}
		said := strings.Join(g.said(), "\n")
		if !strings.Contains(said, want) || strings.HasSuffix(want, `":"`) && !strings.Contains(said, state) {
			t.Errorf("state of %d bytes: %.200s", size, said)
		}
	}
}
