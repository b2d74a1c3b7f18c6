// SPDX-License-Identifier: Apache-2.0

package format

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

func (messages) List() string { return "messages" }

func (messages) Looks(root strictjson.Value) Likeness {
	switch {
	case root.Get("system").Exists(), root.Get("anthropic_version").Exists():
		return Sure
	}
	for m := range listOf(root, messages{}).Elements() {
		for b := range m.Get("content").Elements() {
			switch b.Get("type").Text() {
			case "tool_use", "tool_result", "thinking":
				return Likely
			}
		}
	}
	return Unlike
}

func (messages) Asks(root strictjson.Value) Asked { return asked(root, "max_tokens") }

func (messages) Places(root strictjson.Value, each func(Place)) bool {
	p := places(each)
	for t := range root.Get("tools").Elements() {
		p(Place{Kind: PlaceTool, Name: t.Get("name").Text(), More: []strictjson.Value{t.Get("description"), t.Get("input_schema")}})
	}
	p(Place{Kind: PlaceTools, Name: "tools", Value: root.Get("tools")})
	p.texts(PlaceSystem, root.Get("system"), Instead{}, false)
	// Signed thinking cannot be edited, so variants are asked without any.
	if v := root.Get("thinking"); v.Exists() {
		p.at(PlaceTied, v)
	}
	list := p.list(root, messages{})
	for m := range list.Elements() {
		content := m.Get("content")
		is := RoundFixed
		switch role := m.Get("role").Text(); {
		case role == "assistant":
			is = p.messagesAgent(content)
		case role == "system": // a reminder of the host in the middle of a conversation, not a text of the user
			p.texts(PlaceSystem, content, Instead{}, false)
		case content.Kind() == '"':
			p(Place{Kind: PlaceUser, Value: content, Instead: asText})
		case content.Kind() == '[':
			is = p.messagesUser(content)
		default:
			return false
		}
		p.element(is)
	}
	return list.Kind() == '['
}

func (p places) messagesAgent(content strictjson.Value) Round {
	is := RoundFixed
	rest := 0
	var thoughts []strictjson.Value
	if content.Kind() == '"' {
		p.at(PlaceAgent, content)
		return is
	}
	for b := range content.Elements() {
		rest++
		switch typ := b.Get("type").Text(); {
		case typ == "text":
			p.at(PlaceAgent, b.Get("text"))
		case typ == "thinking" || typ == "redacted_thinking":
			thoughts = append(thoughts, b)
			rest--
		case typ == "tool_use" || typ == "server_tool_use" || typ == "mcp_tool_use":
			p.call(b.Get("id").Text(), b)
			is = RoundCall
		case strings.HasSuffix(typ, "_tool_result"):
			p.result(b.Get("tool_use_id").Text(), b, messagesFailed(b))
			p.messagesServed(typ, b.Get("content"))
		default:
			p.at(PlaceStrange, b)
			p(Place{Kind: PlaceUnknown, Value: b, Instead: asText})
		}
	}
	p.thoughts(thoughts, rest, content, asString)
	return is
}

// messagesServed takes the result of a tool that the provider ran. One of a search
// is withheld as the error that the format has for it.
func (p places) messagesServed(typ string, content strictjson.Value) {
	if typ == "mcp_tool_result" {
		p.blocks(PlaceOutput, content, asText)
		return
	}
	typ = string(strictjson.AppendQuote(nil, typ+"_error"))
	p(Place{Kind: PlaceOutput, Value: content, Instead: Instead{before: `{"type":` + typ + `,"error_code":"unavailable"}`}})
}

func (p places) messagesUser(content strictjson.Value) Round {
	is := RoundFixed
	own := false
	for b := range content.Elements() {
		own = own || b.Get("type").Text() != "tool_result"
		switch b.Get("type").Text() {
		case "tool_result":
			p.result(b.Get("tool_use_id").Text(), b, messagesFailed(b))
			p.blocks(PlaceOutput, b.Get("content"), asText)
			is = RoundResult
		case "text":
			p(Place{Kind: PlaceUser, Value: b.Get("text"), Instead: asText})
		case "document", "search_result":
			p(Place{Kind: PlaceRetrieved, Value: b, Instead: asText})
		default:
			p(Place{Kind: PlaceUser, Value: b, Instead: asText})
		}
	}
	if own {
		return RoundFixed // the user speaks in the same message: it stays where it is
	}
	return is
}

func (messages) Question(e *strictjson.Edits, root strictjson.Value, answer int64) (int64, error) {
	e.Remove(root.Get("store"))
	return question(e, root, answer, "max_tokens")
}

func (messages) Sign(key string, set func(name, value string)) {
	set("Anthropic-Version", "2023-06-01")
	if key != "" {
		set("X-Api-Key", key)
	}
}

const cacheMark = `,"cache_control":{"type":"ephemeral"}`

func (messages) AppendRequest(dst []byte, r *Request) ([]byte, error) {
	w := &body{writer: writer{dst}}
	w.with(`{"model":`, r.Model)
	if r.System != "" {
		w.with(`,"system":[{"type":"text","text":`, r.System)
		if r.CachePrefix {
			w.raw(cacheMark)
		}
		w.raw("}]")
	}
	turns := turnsOf(r.Messages)
	w.raw(`,"messages":`)
	w.list(len(turns), func(i int) { w.messagesTurn(turns[i]) })
	if len(r.Tools) > 0 {
		w.raw(`,"tools":`)
		w.list(len(r.Tools), func(i int) {
			w.tool(`{`, &r.Tools[i], `,"input_schema":`)
			if r.CachePrefix && r.System == "" && i == len(r.Tools)-1 {
				w.raw(cacheMark) // tools come before the system text: one mark holds both
			}
			w.raw("}")
		})
		switch r.Choice {
		case ChooseNone:
			w.raw(`,"tool_choice":{"type":"none"}`)
		case ChooseAny:
			w.raw(`,"tool_choice":{"type":"any"}`)
		}
	}
	w.raw(`,"max_tokens":`)
	w.number(r.MaxTokens)
	w.temperature(`,"temperature":`, r)
	if r.Stream {
		w.raw(`,"stream":true`)
	}
	w.raw("}")
	return w.b, w.err
}

func (w *body) messagesTurn(turn []Message) {
	role := "user"
	if turn[0].Role == RoleAssistant {
		role = "assistant"
	}
	w.raw(`{"role":"` + role + `","content":[`)
	for i := range turn {
		w.items(&turn[i], func(m *Message) {
			w.with(`{"type":"tool_result","tool_use_id":`, m.CallID)
			w.with(`,"content":`, m.Text)
			if m.Failed {
				w.raw(`,"is_error":true`)
			}
		}, func(m *Message) {
			w.with(`{"type":"text","text":`, m.Text)
		}, func(c *Call) {
			w.with(`{"type":"tool_use","id":`, c.ID)
			w.with(`,"name":`, c.Name)
			w.raw(`,"input":`)
			w.object(c.arguments(), "arguments of a tool call")
		})
	}
	w.raw("]}")
}

// messagesFailed reports whether a result is that of a call that has failed.
func messagesFailed(block strictjson.Value) bool {
	failed, _ := block.Get("is_error").Bool()
	return failed
}
