// SPDX-License-Identifier: Apache-2.0

package format

import (
	"slices"
	"strconv"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

func (converse) List() string { return "messages" }

func (converse) Looks(root strictjson.Value) Likeness {
	for _, name := range []string{"inferenceConfig", "toolConfig", "additionalModelRequestFields"} {
		if root.Get(name).Exists() {
			return Sure
		}
	}
	for b := range root.Get("system").Elements() {
		if !b.Get("type").Exists() {
			return Sure
		}
	}
	for m := range listOf(root, converse{}).Elements() {
		for b := range m.Get("content").Elements() {
			if !b.Get("type").Exists() && (b.Get("text").Exists() || b.Get("toolUse").Exists() || b.Get("toolResult").Exists()) {
				return Likely
			}
		}
	}
	return Unlike
}

// converseMembers are the members of a request that this package reads.
var converseMembers = []string{"messages", "system", "toolConfig", "inferenceConfig", "additionalModelRequestFields", "promptVariables"}

func (converse) Asks(root strictjson.Value) Asked {
	a := Asked{InPath: true}
	config := root.Get("inferenceConfig")
	a.bounded(config.Get("maxTokens"))
	_, stray := root.Strays(converseMembers)
	_, bound := config.Strays([]string{"maxTokens"})
	if stray || bound {
		a.Wrong = wrongStray
	}
	return a
}

// What says a text as a block, and as a whole content.
var (
	asBlock   = Instead{before: `{"text":`, after: "}", says: true}
	asContent = Instead{before: `[{"text":`, after: "}]", says: true}
)

func (converse) Places(root strictjson.Value, each func(Place)) bool {
	p := places(each)
	tools := root.Get("toolConfig").Get("tools")
	for t := range tools.Elements() {
		spec := t.Get("toolSpec")
		p(Place{Kind: PlaceTool, Name: spec.Get("name").Text(), More: []strictjson.Value{spec.Get("description"), spec.Get("inputSchema")}})
	}
	p(Place{Kind: PlaceTools, Name: "tools", Value: tools})
	for b := range root.Get("system").Elements() {
		if v := b.Get("guardContent").Get("text").Get("text"); v.Exists() {
			p.at(PlaceSystem, v)
		} else if v := b.Get("text"); v.Exists() {
			p.at(PlaceSystem, v)
		}
	}
	// Signed thinking cannot be edited, so variants are asked without any.
	for name, v := range root.Get("additionalModelRequestFields").Members() {
		if slices.Contains([]string{"thinking", "reasoning_config", "reasoningConfig"}, name.Text()) {
			p.at(PlaceTied, v)
		}
	}
	if v := root.Get("promptVariables"); says(v) {
		p.at(PlaceUnseen, v) // of a prompt that the provider keeps
	}
	list := p.list(root, converse{})
	for m := range list.Elements() {
		content := m.Get("content")
		is := RoundFixed
		switch role := m.Get("role").Text(); {
		case content.Kind() != '[':
			return false
		case role == "assistant":
			is = p.converseAgent(content)
		case role == "user":
			is = p.converseUser(content)
		default:
			return false
		}
		p.element(is)
	}
	return list.Kind() == '['
}

func (p places) converseAgent(content strictjson.Value) Round {
	is := RoundFixed
	rest := 0
	var thoughts []strictjson.Value
	for b := range content.Elements() {
		rest++
		switch use := b.Get("toolUse"); {
		case b.Get("text").Kind() == '"':
			p.at(PlaceAgent, b.Get("text"))
		case use.Kind() == '{':
			p.call(use.Get("toolUseId").Text(), use)
			is = RoundCall
		case b.Get("toolResult").Kind() == '{': // of a tool that the provider ran
			p.converseResult(b.Get("toolResult"))
		case b.Get("citationsContent").Kind() == '{':
			for c := range b.Get("citationsContent").Get("content").Elements() {
				p.at(PlaceAgent, c.Get("text"))
			}
		case b.Get("reasoningContent").Exists():
			thoughts = append(thoughts, b)
			rest--
		case b.Get("cachePoint").Exists():
		default:
			p.at(PlaceStrange, b)
			p(Place{Kind: PlaceUnknown, Value: b, Instead: asBlock})
		}
	}
	p.thoughts(thoughts, rest, content, asContent)
	return is
}

func (p places) converseResult(v strictjson.Value) {
	p.result(v.Get("toolUseId").Text(), v, v.Get("status").Text() == "error")
	for b := range v.Get("content").Elements() {
		switch data := b.Get("json"); {
		case b.Get("text").Kind() == '"':
			p(Place{Kind: PlaceOutput, Value: b.Get("text"), Instead: asBlock})
		case data.Kind() == '{', data.Kind() == '[':
			p(Place{Kind: PlaceOutput, Value: data, Whole: true, Instead: asBlock})
		case data.Exists():
			p(Place{Kind: PlaceOutput, Value: data, Instead: asBlock})
		default:
			p(Place{Kind: PlaceOutput, Value: b, Instead: asBlock})
		}
	}
}

func (p places) converseUser(content strictjson.Value) Round {
	is := RoundFixed
	own := false
	for b := range content.Elements() {
		guarded := b.Get("guardContent").Get("text")
		switch result := b.Get("toolResult"); {
		case result.Kind() == '{':
			p.converseResult(result)
			is = RoundResult
			continue
		case b.Get("cachePoint").Exists():
			continue
		case b.Get("text").Kind() == '"':
			p(Place{Kind: PlaceUser, Value: b.Get("text"), Instead: asBlock})
		case guarded.Get("text").Kind() == '"':
			p(Place{Kind: converseGuarded(guarded), Value: guarded.Get("text"), Instead: asBlock})
		case b.Get("document").Exists(), b.Get("searchResult").Exists():
			p(Place{Kind: PlaceRetrieved, Value: b, Instead: asBlock})
		default:
			p(Place{Kind: PlaceUser, Value: b, Instead: asBlock})
		}
		own = true
	}
	if own {
		return RoundFixed // the user speaks in the same message: it stays where it is
	}
	return is
}

// converseGuarded says whose a text is that a guardrail looks at.
func converseGuarded(v strictjson.Value) PlaceKind {
	for q := range v.Get("qualifiers").Elements() {
		if q.Text() == "grounding_source" {
			return PlaceRetrieved
		}
	}
	return PlaceUser
}

func (converse) Question(e *strictjson.Edits, root strictjson.Value, answer int64) (int64, error) {
	if v := root.Get("additionalModelResponseFieldPaths"); v.Exists() {
		e.Remove(v)
	}
	config, left := root.Get("toolConfig"), 0
	for t := range config.Get("tools").Elements() {
		if t.Get("systemTool").Exists() { // the provider runs it
			e.Remove(t)
		} else if t.Get("toolSpec").Exists() {
			left++
		}
	}
	if left == 0 && config.Exists() {
		e.Remove(config)
	}
	inference := root.Get("inferenceConfig")
	at := inference.Get("maxTokens")
	most, err := atMost(at, answer)
	if err != nil {
		return 0, err
	}
	raw := strconv.AppendInt(nil, most, 10)
	switch {
	case at.Exists():
		e.Replace(at, raw)
	case inference.Kind() == '{':
		e.Append(inference, "maxTokens", raw)
	case inference.Exists():
		e.Replace(inference, slices.Concat([]byte(`{"maxTokens":`), raw, []byte("}")))
	default:
		e.Append(root, "inferenceConfig", slices.Concat([]byte(`{"maxTokens":`), raw, []byte("}")))
	}
	return most, nil
}

// Sign sets an API key of Amazon Bedrock. A signature is made of the whole request, where it
// is sent.
func (converse) Sign(key string, set func(name, value string)) { chat{}.Sign(key, set) }

// AppendRequest asks without a mark for the provider's cache: many models refuse it. The
// format has no seed.
func (converse) AppendRequest(dst []byte, r *Request) ([]byte, error) {
	w := &body{writer: writer{dst}}
	turns := turnsOf(r.Messages)
	w.raw(`{"messages":`)
	w.list(len(turns), func(i int) { w.converseTurn(turns[i]) })
	if r.System != "" {
		w.with(`,"system":[{"text":`, r.System)
		w.raw("}]")
	}
	if len(r.Tools) > 0 {
		w.converseTools(r)
	}
	w.raw(`,"inferenceConfig":{"maxTokens":`)
	w.number(r.MaxTokens)
	w.temperature(`,"temperature":`, r)
	w.raw("}}")
	return w.b, w.err
}

func (w *body) converseTools(r *Request) {
	w.raw(`,"toolConfig":{"tools":`)
	w.list(len(r.Tools), func(i int) {
		t := &r.Tools[i]
		w.with(`{"toolSpec":{"name":`, t.Name)
		if t.Description != "" { // an empty one is refused
			w.with(`,"description":`, t.Description)
		}
		w.raw(`,"inputSchema":{"json":`)
		if t.Schema == nil {
			w.raw(`{"type":"object"}`)
		} else {
			w.object(t.Schema, "a tool's schema")
		}
		w.raw("}}}")
	})
	switch r.Choice {
	case ChooseNone:
		w.fail("Converse has no way to allow no tool")
	case ChooseAny:
		w.raw(`,"toolChoice":{"any":{}}`)
	}
	w.raw("}")
}

func (w *body) converseTurn(turn []Message) {
	role := "user"
	if turn[0].Role == RoleAssistant {
		role = "assistant"
	}
	w.raw(`{"role":"` + role + `","content":[`)
	for i := range turn {
		w.items(&turn[i], func(m *Message) {
			w.with(`{"toolResult":{"toolUseId":`, m.CallID)
			w.with(`,"content":[{"text":`, m.Text)
			w.raw("}]")
			if m.Failed {
				w.raw(`,"status":"error"`)
			}
			w.raw("}")
		}, func(m *Message) {
			w.with(`{"text":`, m.Text)
		}, func(c *Call) {
			w.with(`{"toolUse":{"toolUseId":`, c.ID)
			w.with(`,"name":`, c.Name)
			w.raw(`,"input":`)
			w.object(c.arguments(), "arguments of a tool call")
			w.raw("}")
		})
	}
	w.raw("]}")
}
