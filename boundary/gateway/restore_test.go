// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// TestRestored: what a client sends gets its control tokens back wherever the server's texts are
// defused, and nothing else of the message changes. The record has both forms by their digests.
func TestRestored(t *testing.T) {
	t.Parallel()
	const defused, token = "\u27e8|im_start|\u27e9", "<|im_start|>"
	for _, tt := range []struct {
		name, method, params, want string
		adjust                     func(*Config)
	}{
		{"call", "tools/call", `{"name":"t","arguments":{"n":1.0,"a":["x D",{"b":"D"}],"D":"\u0041"},"_meta":{"k":"D"}}`,
			`{"name":"t","arguments":{"n":1.0,"a":["x T",{"b":"T"}],"D":"\u0041"},"_meta":{"k":"D"}}`, nil},
		{"escaped", "tools/call", `{"name":"t","arguments":{"a":"\u27e8|im_start|\u27E9"}}`, `{"name":"t","arguments":{"a":"T"}}`, nil},
		{"JSON in a string", "tools/call", `{"name":"t","arguments":{"a":"{\"b\":\"D\",\"c\":\"\\u27e8think\\u27e9\"}"}}`, `{"name":"t","arguments":{"a":"{\"b\":\"T\",\"c\":\"\\u27e8think\\u27e9\"}"}}`, nil},
		{"prompt", "prompts/get", `{"name":"p","arguments":{"a":"D"}}`, `{"name":"p","arguments":{"a":"T"}}`, nil},
		{"completion", "completion/complete", `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"D"},"context":{"arguments":{"b":"D"}}}`,
			`{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"T"},"context":{"arguments":{"b":"T"}}}`, nil},
		{"read", "resources/read", `{"uri":"file:///D"}`, `{"uri":"file:///D"}`, nil},
		{"removed", "tools/call", `{"name":"t","arguments":{"a":"D"}}`, `{"name":"t","arguments":{"a":"D"}}`, func(c *Config) { c.ControlTokens = scrub.RemoveTokens }},
		{"mcp", "tools/call", `{"name":"t","arguments":{"a":"D"}}`, `{"name":"t","arguments":{"a":"D"}}`, func(c *Config) { c.Profile = MCP }},
		{"of another tool", "tools/call", `{"name":"t","arguments":{"a":"D"}}`, `{"name":"t","arguments":{"a":"T"}}`, func(c *Config) {
			c.Profile = MCP
			c.Rules = func() []*Rule { return []*Rule{{}, {ControlTokens: scrub.DefuseTokens}} }
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var adjust []func(*Config)
			if tt.adjust != nil {
				adjust = append(adjust, tt.adjust)
			}
			r := newRig(t, adjust...)
			spell := strings.NewReplacer("T", token, "D", defused, "name\":\"t", "name\":\"read")
			r.client.send(`{"jsonrpc":"2.0","id":7,"method":"` + tt.method + `","params":` + spell.Replace(tt.params) + `}`)
			var m struct {
				ID     json.RawMessage
				Method string
				Params json.RawMessage
			}
			for {
				if err := json.Unmarshal([]byte(r.server.next()), &m); err != nil {
					t.Fatal(err)
				}
				if m.Method == tt.method {
					break
				}
				r.server.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"tools":[]}}`)
			}
			if want := spell.Replace(tt.want); string(m.Params) != want {
				t.Errorf("%s, want %s", m.Params, want)
			}
			r.server.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"content":[],"messages":[],"contents":[],"completion":{"values":[]}}}`)
			r.client.next()
			restored := strings.Count(tt.want, "T")
			list := r.sink.all()
			if restored == 0 {
				if len(list) > 0 && list[len(list)-1].Restored > 0 {
					t.Errorf("%+v", list)
				}
				return
			}
			d := list[len(list)-1]
			if d.Restored != restored || d.Sent != digestOf(m.Params) || d.Asked != digestOf([]byte(spell.Replace(tt.params))) {
				t.Errorf("%+v", d)
			}
		})
	}
}

// TestRestoredAnswer: so does the client's answer to a request of the server.
func TestRestoredAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.server.send(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"?"}}`)
	ask := parse(t, r.client.next())
	r.client.send(`{"jsonrpc":"2.0","id":` + string(ask["id"]) + `,"result":{"action":"accept","content":{"a":"` + "\u27e8|im_start|\u27e9" + `"}}}`)
	if got := r.server.next(); !strings.Contains(got, `{"a":"<|im_start|>"}`) {
		t.Error(got)
	}
	if d := r.sink.all(); len(d) == 0 || d[len(d)-1].Kind != "answer" || d[len(d)-1].Restored != 1 || d[len(d)-1].Delivered == d[len(d)-1].Received {
		t.Errorf("%+v", d)
	}
}

// TestPartOfToken: where a part of a defused token was sent, which is not restored, an error of the
// tool says so.
func TestPartOfToken(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		argument, result string
		want             bool
	}{
		{"\u27e8|im_", `{"isError":true,"content":[{"type":"text","text":"no match"}]}`, true},
		{"\u27e8|im_", `{"isError":true,"content":[]}`, true},
		{"\u27e8|im_", `{"content":[{"type":"text","text":"done"}]}`, false},
		{"\u27e8|im_start|\u27e9", `{"isError":true,"content":[]}`, false},
		{"a", `{"isError":true,"content":[]}`, false},
	} {
		r := newRig(t)
		got := r.result(r.request("7", "tools/call", `{"name":"read","arguments":{"a":"`+tt.argument+`"}}`), tt.result).at("result", "content")
		if strings.Contains(string(got), "send the whole token") != tt.want {
			t.Errorf("%q: %s", tt.argument, got)
		}
	}
}
