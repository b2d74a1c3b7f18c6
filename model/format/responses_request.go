// SPDX-License-Identifier: Apache-2.0

package format

import "github.com/pellucid-mcp/pellucid/text/strictjson"

func (responses) List() string { return "input" }

func (responses) Looks(root strictjson.Value) Likeness {
	if root.Get("input").Exists() {
		return Sure
	}
	return Unlike
}

func (responses) Asks(root strictjson.Value) Asked {
	return asked(root, "max_output_tokens")
}

// What stands in the place of a block, and of an item.
var (
	asInput = Instead{before: `{"type":"input_text","text":`, after: "}", says: true}
	asItem  = Instead{before: `{"type":"message","role":"user","content":`, after: "}", says: true}
)

func (responses) Places(root strictjson.Value, each func(Place)) bool {
	p := places(each)
	for t := range root.Get("tools").Elements() {
		p(Place{Kind: PlaceTool, Name: t.Get("name").Text(), More: []strictjson.Value{t.Get("description"), t.Get("parameters")}})
	}
	p(Place{Kind: PlaceTools, Name: "tools", Value: root.Get("tools")})
	p.at(PlaceSystem, root.Get("instructions"))
	for _, name := range []string{"previous_response_id", "conversation", "prompt"} {
		if v := root.Get(name); v.Exists() && v.Kind() != 'n' {
			p.at(PlaceUnseen, v)
		}
	}
	if in := root.Get("input"); in.Kind() == '"' {
		p(Place{Kind: PlaceUser, Value: in, Instead: asInput})
		return true
	}
	list := p.list(root, responses{})
	for item := range list.Elements() {
		if item.Kind() != '{' {
			return false
		}
		p.element(p.responsesPlaces(item))
	}
	return list.Kind() == '['
}

// responsesPlaces takes an item of the input.
func (p places) responsesPlaces(item strictjson.Value) Round {
	switch typ := item.Get("type").Text(); {
	case typ == "message" || typ == "" && item.Get("role").Exists():
		p.responsesMessage(item)
	case typ == "reasoning":
		p.at(PlaceTied, item)
	case typ == "function_call" || typ == "custom_tool_call":
		p.call(item.Get("call_id").Text(), item)
		// An id would ask the provider for the reasoning that belongs to it.
		if id := item.Get("id"); id.Exists() {
			p.at(PlaceTied, id)
		}
		return RoundCall
	case typ == "function_call_output" || typ == "custom_tool_call_output":
		p.result(item.Get("call_id").Text(), item, false) // as in chat completions
		p.blocks(PlaceOutput, item.Get("output"), asInput)
		return RoundResult
	case typ == "mcp_call":
		p(Place{Kind: PlaceServed, Value: item, Name: item.Get("name").Text(), Arguments: item.Get("arguments")})
		for _, name := range []string{"output", "error"} {
			p(Place{Kind: PlaceOutput, Value: item.Get(name), Instead: asString})
		}
	case typ == "item_reference":
		p.at(PlaceUnseen, item)
	default:
		p.at(PlaceStrange, item)
		p(Place{Kind: PlaceUnknown, Value: item, Instead: asItem})
	}
	return RoundFixed
}

func (p places) responsesMessage(item strictjson.Value) {
	content := item.Get("content")
	switch item.Get("role").Text() {
	case "system", "developer":
		p.texts(PlaceSystem, content, Instead{}, false)
	case "user":
		p.texts(PlaceUser, content, asInput, true)
	case "assistant":
		p.texts(PlaceAgent, content, Instead{}, false)
		if id := item.Get("id"); id.Exists() {
			p.at(PlaceTied, id)
		}
	default:
		p.at(PlaceStrange, item)
		p.blocks(PlaceUnknown, content, asInput)
	}
}

func (responses) Question(e *strictjson.Edits, root strictjson.Value, answer int64) (int64, error) {
	e.Append(root, "store", []byte("false")) // to be kept is the default
	return question(e, root, answer, "max_output_tokens")
}

func (responses) Sign(key string, set func(name, value string)) { chat{}.Sign(key, set) }

// AppendRequest asks without any state on the provider's side. The format has no seed and no
// system fingerprint.
func (responses) AppendRequest(dst []byte, r *Request) ([]byte, error) {
	w := &body{writer: writer{dst}}
	w.with(`{"model":`, r.Model)
	if r.System != "" {
		w.with(`,"instructions":`, r.System)
	}
	w.raw(`,"input":[`)
	for i := range r.Messages {
		w.responsesItems(&r.Messages[i])
	}
	w.raw("]")
	if len(r.Tools) > 0 {
		w.raw(`,"tools":`)
		w.list(len(r.Tools), func(i int) {
			w.tool(`{"type":"function",`, &r.Tools[i], `,"parameters":`)
			w.raw(`,"strict":false}`) // true is the default here, and refuses many a schema
		})
		w.chatChoice(r.Choice)
	}
	w.raw(`,"max_output_tokens":`)
	w.number(r.MaxTokens)
	w.temperature(`,"temperature":`, r)
	w.raw(`,"store":false`)
	if r.Stream {
		w.raw(`,"stream":true`)
	}
	w.raw("}")
	return w.b, w.err
}

func (w *body) responsesItems(m *Message) {
	w.items(m, func(m *Message) {
		w.with(`{"type":"function_call_output","call_id":`, m.CallID)
		w.with(`,"output":`, m.Text)
	}, func(m *Message) {
		w.with(`{"role":"`+chatRoles[m.Role]+`","content":`, m.Text)
	}, func(c *Call) {
		w.with(`{"type":"function_call","call_id":`, c.ID)
		w.with(`,"name":`, c.Name)
		w.with(`,"arguments":`, string(c.arguments()))
	})
}
