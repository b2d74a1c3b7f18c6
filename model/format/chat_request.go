// SPDX-License-Identifier: Apache-2.0

package format

import "github.com/pellucid-mcp/pellucid/text/strictjson"

func (chat) List() string { return "messages" }

func (chat) Looks(root strictjson.Value) Likeness {
	list := listOf(root, chat{})
	if list.Kind() != '[' {
		return Unlike
	}
	for m := range list.Elements() {
		switch m.Get("role").Text() {
		case "tool", "system":
			return Likely
		}
		if m.Get("tool_calls").Exists() {
			return Likely
		}
	}
	return Possible
}

func (chat) Asks(root strictjson.Value) Asked { return asked(root, chatBounds...) }

func (chat) Places(root strictjson.Value, each func(Place)) bool {
	p := places(each)
	p.chatTools(root.Get("tools"))
	if old := root.Get("functions"); old.Exists() { // of before tools
		p.chatFunctions(old)
	}
	// What vLLM puts before the conversation.
	for d := range root.Get("documents").Elements() {
		p.chatDocument(d)
	}
	list := p.list(root, chat{})
	for m := range list.Elements() {
		if m.Kind() != '{' {
			return false
		}
		// The beginning of an answer, for Mistral and others to go on with.
		if begun, _ := m.Get("prefix").Bool(); begun && m.Get("role").Text() == "assistant" {
			p.at(PlaceTied, m)
		}
		p.element(p.chatMessage(m))
	}
	return list.Kind() == '['
}

func (p places) chatDocument(d strictjson.Value) {
	if d.Kind() == '"' {
		p.at(PlaceRetrieved, d)
	}
	for _, v := range d.Members() {
		if v.Kind() == '"' {
			p.at(PlaceRetrieved, v)
		} else {
			p(Place{Kind: PlaceRetrieved, Value: v, Instead: asString})
		}
	}
}

func (p places) chatTools(tools strictjson.Value) {
	for t := range tools.Elements() {
		p.chatTool(t.Get("function"))
	}
	p(Place{Kind: PlaceTools, Name: "tools", Value: tools})
}

func (p places) chatFunctions(functions strictjson.Value) {
	for fn := range functions.Elements() {
		p.chatTool(fn)
	}
	p(Place{Kind: PlaceTools, Name: "functions", Value: functions})
}

func (p places) chatTool(fn strictjson.Value) {
	p(Place{Kind: PlaceTool, Name: fn.Get("name").Text(), More: []strictjson.Value{fn.Get("description"), fn.Get("parameters")}})
}

func (p places) chatMessage(m strictjson.Value) Round {
	content := m.Get("content")
	switch role := m.Get("role").Text(); role {
	case "system", "developer":
		p.texts(PlaceSystem, content, Instead{}, false)
	case "user":
		p.texts(PlaceUser, content, asText, true)
	case "assistant":
		p.texts(PlaceAgent, content, Instead{}, false)
		return p.chatCalls(m)
	case "tool", "function":
		id := m.Get("tool_call_id").Text()
		if role == "function" {
			id = chatFunctionID(m)
		}
		p.result(id, m, false) // the format has no word for a failure
		p.blocks(PlaceOutput, content, asText)
		return RoundResult
	default:
		p.at(PlaceStrange, m)
		p.blocks(PlaceUnknown, content, asText)
	}
	return RoundFixed
}

// chatCalls takes the reasoning and the calls of a message of the model.
func (p places) chatCalls(m strictjson.Value) Round {
	// Some providers hand reasoning back under these names.
	for _, name := range []string{"reasoning", "reasoning_content", "reasoning_details"} {
		if v := m.Get(name); v.Exists() {
			p.at(PlaceTied, v)
		}
	}
	is := RoundFixed
	for c := range m.Get("tool_calls").Elements() {
		p.call(c.Get("id").Text(), c)
		is = RoundCall
	}
	if old := m.Get("function_call"); old.Kind() == '{' {
		p.call(chatFunctionID(old), old)
		is = RoundCall
	}
	return is
}

// chatFunctionID stands for the id that neither a call of before tools has, nor its result:
// the result is of the last call of that function.
func chatFunctionID(v strictjson.Value) string { return "function " + v.Get("name").Text() }

// chatBounds are the members that bound an answer, the one that is added first.
var chatBounds = []string{"max_tokens", "max_completion_tokens"}

func (chat) Question(e *strictjson.Edits, root strictjson.Value, answer int64) (int64, error) {
	e.Remove(root.Get("store"))
	return question(e, root, answer, chatBounds...)
}

func (chat) Sign(key string, set func(name, value string)) {
	if key != "" {
		set("Authorization", "Bearer "+key)
	}
}

var chatRoles = [...]string{RoleUser: "user", RoleAssistant: "assistant", RoleTool: "tool"}

func (chat) AppendRequest(dst []byte, r *Request) ([]byte, error) {
	w := &body{writer: writer{dst}}
	w.with(`{"model":`, r.Model)
	w.raw(`,"messages":`)
	first := 0
	if r.System != "" {
		first = 1
	}
	w.list(first+len(r.Messages), func(i int) {
		if i < first {
			w.with(`{"role":"system","content":`, r.System)
			w.raw("}")
			return
		}
		w.chatTurn(&r.Messages[i-first])
	})
	if len(r.Tools) > 0 {
		w.raw(`,"tools":`)
		w.list(len(r.Tools), func(i int) {
			w.tool(`{"type":"function","function":{`, &r.Tools[i], `,"parameters":`)
			w.raw("}}")
		})
		w.chatChoice(r.Choice)
	}
	if r.MaxCompletionTokens {
		w.raw(`,"max_completion_tokens":`)
	} else {
		w.raw(`,"max_tokens":`)
	}
	w.number(r.MaxTokens)
	w.temperature(`,"temperature":`, r)
	if r.Seed != nil {
		w.raw(`,"seed":`)
		w.number(*r.Seed)
	}
	if r.Stream {
		w.raw(`,"stream":true,"stream_options":{"include_usage":true}`)
	}
	w.raw("}")
	return w.b, w.err
}

func (w *body) chatChoice(c Choice) {
	switch c {
	case ChooseNone:
		w.raw(`,"tool_choice":"none"`)
	case ChooseAny:
		w.raw(`,"tool_choice":"required"`)
	}
}

func (w *body) chatTurn(m *Message) {
	w.raw(`{"role":"` + chatRoles[m.Role] + `","content":`)
	if m.Text == "" && len(m.Calls) > 0 {
		w.raw("null")
	} else {
		w.text(m.Text)
	}
	if len(m.Calls) > 0 {
		w.raw(`,"tool_calls":`)
		w.list(len(m.Calls), func(i int) {
			c := &m.Calls[i]
			w.with(`{"id":`, c.ID)
			w.with(`,"type":"function","function":{"name":`, c.Name)
			w.with(`,"arguments":`, string(c.arguments()))
			w.raw("}}")
		})
	}
	if m.Role == RoleTool {
		w.with(`,"tool_call_id":`, m.CallID)
	}
	w.raw("}")
}
