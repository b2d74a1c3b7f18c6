// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"bytes"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// What replaces blocks that are no strings.
const (
	textBlock   = `{"type":"text","text":"` + Placeholder + `"}`
	inputBlock  = `{"type":"input_text","text":"` + Placeholder + `"}`
	inputItem   = `{"type":"message","role":"user","content":"` + Placeholder + `"}`
	taskBlock   = `{"type":"text","text":"` + taskPlaceholder + `"}`
	taskInput   = `{"type":"input_text","text":"` + taskPlaceholder + `"}`
	agentString = `"` + agentPlaceholder + `"`
)

// listOf is the list of messages: a member of the request, or the request itself.
func (r *reader) listOf(root strictjson.Value, name string) bool {
	r.a.list = root
	if root.Kind() == '{' {
		r.a.list = root.Get(name)
	}
	return r.a.list.Kind() == '['
}

// chat reads a request of OpenAI's chat completions.
func (r *reader) chat(root strictjson.Value) bool {
	for t := range root.Get("tools").Elements() {
		fn := t.Get("function")
		r.tool(fn.Get("name").Text(), fn.Get("description"), fn.Get("parameters"))
	}
	r.trusted("tools", root.Get("tools"))
	for fn := range root.Get("functions").Elements() { // of before tools
		r.tool(fn.Get("name").Text(), fn.Get("description"), fn.Get("parameters"))
	}
	if old := root.Get("functions"); old.Exists() {
		r.trusted("functions", old)
	}
	if !r.listOf(root, "messages") {
		return false
	}
	for m := range r.a.list.Elements() {
		if m.Kind() != '{' {
			return false
		}
		r.kinds = append(r.kinds, r.chatMessage(m))
	}
	return true
}

func (r *reader) chatMessage(m strictjson.Value) elementKind {
	content := m.Get("content")
	switch role := m.Get("role").Text(); role {
	case "system", "developer":
		eachBlock(content, "text", func(text, _ strictjson.Value) { r.system(text) }, nil)
	case "user":
		eachBlock(content, "text", func(text, _ strictjson.Value) { r.user(text, taskBlock) },
			func(b strictjson.Value) { r.user(b, taskBlock) })
	case "assistant":
		eachBlock(content, "text", func(text, _ strictjson.Value) { r.agent(text) }, nil)
		// Some providers hand reasoning back under these names.
		for _, name := range []string{"reasoning", "reasoning_content", "reasoning_details"} {
			if v := m.Get(name); v.Exists() {
				r.a.drops = append(r.a.drops, v)
			}
		}
		n := 0
		for c := range m.Get("tool_calls").Elements() {
			r.call(c.Get("id").Text(), c)
			n++
		}
		if old := m.Get("function_call"); old.Kind() == '{' {
			r.call(functionID(old), old)
			n++
		}
		if n > 0 {
			return elementCall
		}
	case "tool", "function":
		id := m.Get("tool_call_id").Text()
		if role == "function" {
			id = functionID(m)
		}
		src, call := r.result(id, m)
		r.blocks(content, src, call, "text", textBlock)
		return elementResult
	default:
		r.odd(OddKind, m)
		r.blocks(content, Source{Class: ClassUnknown}, "", "text", textBlock)
	}
	return elementFixed
}

// functionID stands for the id that neither a call of before tools has, nor its result:
// the result is of the last call of that function.
func functionID(v strictjson.Value) string { return "function " + v.Get("name").Text() }

// eachBlock calls text with each string of a content: the string itself, or the
// member of each block that is not another kind of block; other takes the rest.
func eachBlock(content strictjson.Value, member string, text func(text, block strictjson.Value), other func(strictjson.Value)) {
	switch content.Kind() {
	case '"':
		text(content, strictjson.Value{})
	case '[':
		for b := range content.Elements() {
			switch {
			case b.Get(member).Kind() == '"':
				text(b.Get(member), b)
			case b.Kind() == '"':
				text(b, strictjson.Value{})
			case other != nil:
				other(b)
			}
		}
	case '{':
		if other != nil {
			other(content)
		}
	}
}

// blocks takes the content of a result as untrusted.
func (r *reader) blocks(content strictjson.Value, src Source, call, member, raw string) {
	eachBlock(content, member, func(text, block strictjson.Value) {
		r.untrusted(src, text, call, raw)
		r.beside(src, block, member, call)
	}, func(b strictjson.Value) { r.untrusted(src, b, call, raw) })
}

// beside takes what a text block of a result says beside its text, as a title or
// citations: no frame holds it. Variants that withhold such a list do not have it.
func (r *reader) beside(src Source, block strictjson.Value, member, call string) {
	for name, v := range block.Members() {
		switch name.Text() {
		case member, "type", "cache_control":
			continue
		}
		if bytes.IndexByte(v.Raw(), '"') >= 0 {
			r.untrusted(src, v, call, "")
		}
	}
}

// messages reads a request of Anthropic's messages.
func (r *reader) messages(root strictjson.Value) bool {
	for t := range root.Get("tools").Elements() {
		r.tool(t.Get("name").Text(), t.Get("description"), t.Get("input_schema"))
	}
	r.trusted("tools", root.Get("tools"))
	eachBlock(root.Get("system"), "text", func(text, _ strictjson.Value) { r.system(text) }, nil)
	// Signed thinking cannot be edited, so variants are asked without any.
	if v := root.Get("thinking"); v.Exists() {
		r.a.drops = append(r.a.drops, v)
	}
	if !r.listOf(root, "messages") {
		return false
	}
	for m := range r.a.list.Elements() {
		content := m.Get("content")
		kind := elementFixed
		switch {
		case m.Get("role").Text() == "assistant":
			kind = r.assistantBlocks(content)
		case content.Kind() == '"':
			r.user(content, taskBlock)
		case content.Kind() == '[':
			kind = r.userBlocks(content)
		default:
			return false
		}
		r.kinds = append(r.kinds, kind)
	}
	return true
}

func (r *reader) assistantBlocks(content strictjson.Value) elementKind {
	kind := elementFixed
	rest := 0
	var thoughts []strictjson.Value
	if content.Kind() == '"' {
		r.agent(content)
		return kind
	}
	for b := range content.Elements() {
		switch typ := b.Get("type").Text(); {
		case typ == "text":
			r.agent(b.Get("text"))
			rest++
		case typ == "thinking" || typ == "redacted_thinking":
			thoughts = append(thoughts, b)
		case typ == "tool_use" || typ == "server_tool_use" || typ == "mcp_tool_use":
			r.call(b.Get("id").Text(), b)
			kind = elementCall
			rest++
		case strings.HasSuffix(typ, "_tool_result"):
			src, call := r.result(b.Get("tool_use_id").Text(), b)
			r.serverResult(typ, b.Get("content"), src, call)
			rest++
		default:
			r.odd(OddKind, b)
			r.untrusted(Source{Class: ClassUnknown}, b, "", textBlock)
			rest++
		}
	}
	switch {
	case rest > 0:
		r.a.drops = append(r.a.drops, thoughts...)
	case len(thoughts) > 0:
		r.a.slots = append(r.a.slots, slot{v: content, role: slotAgent, block: agentString})
	}
	return kind
}

// serverResult takes the result of a tool that the provider ran. One of a search
// is withheld as the error that the format has for it.
func (r *reader) serverResult(typ string, content strictjson.Value, src Source, call string) {
	if typ == "mcp_tool_result" {
		r.blocks(content, src, call, "text", textBlock)
		return
	}
	typ = string(strictjson.AppendQuote(nil, typ+"_error"))
	r.untrusted(src, content, call, `{"type":`+typ+`,"error_code":"unavailable"}`)
}

func (r *reader) userBlocks(content strictjson.Value) elementKind {
	kind := elementFixed
	own := false
	for b := range content.Elements() {
		switch b.Get("type").Text() {
		case "tool_result":
			src, call := r.result(b.Get("tool_use_id").Text(), b)
			r.blocks(b.Get("content"), src, call, "text", textBlock)
			kind = elementResult
		case "text":
			r.user(b.Get("text"), taskBlock)
			own = true
		case "document", "search_result":
			r.untrusted(Source{Class: ClassRetrieved}, b, "", textBlock)
			own = true
		default:
			r.user(b, taskBlock)
			own = true
		}
	}
	if own && kind == elementResult {
		return elementFixed // the user speaks in the same message: it stays where it is
	}
	return kind
}

// responses reads a request of OpenAI's responses.
func (r *reader) responses(root strictjson.Value) bool {
	for t := range root.Get("tools").Elements() {
		r.tool(t.Get("name").Text(), t.Get("description"), t.Get("parameters"))
	}
	r.trusted("tools", root.Get("tools"))
	r.system(root.Get("instructions"))
	for _, name := range []string{"previous_response_id", "conversation", "prompt"} {
		if v := root.Get(name); v.Exists() && v.Kind() != 'n' {
			r.odd(OddUnseen, v)
		}
	}
	if in := root.Get("input"); in.Kind() == '"' {
		r.user(in, taskInput)
		return true
	}
	if !r.listOf(root, "input") {
		return false
	}
	for item := range r.a.list.Elements() {
		if item.Kind() != '{' {
			return false
		}
		r.kinds = append(r.kinds, r.item(item))
	}
	return true
}

func (r *reader) item(item strictjson.Value) elementKind {
	typ := item.Get("type").Text()
	switch {
	case typ == "message" || typ == "" && item.Get("role").Exists():
		r.itemMessage(item)
	case typ == "reasoning":
		r.a.drops = append(r.a.drops, item)
	case typ == "function_call" || typ == "custom_tool_call":
		r.call(item.Get("call_id").Text(), item)
		// An id would ask the provider for the reasoning that belongs to it.
		if id := item.Get("id"); id.Exists() {
			r.a.drops = append(r.a.drops, id)
		}
		return elementCall
	case typ == "function_call_output" || typ == "custom_tool_call_output":
		src, call := r.result(item.Get("call_id").Text(), item)
		r.blocks(item.Get("output"), src, call, "text", inputBlock)
		return elementResult
	case typ == "mcp_call":
		src := Source{Class: ClassToolResult}
		src.Origin.Tool = frame.Label(item.Get("name").Text())
		for _, name := range []string{"output", "error"} {
			r.untrusted(src, item.Get(name), item.Get("arguments").Text(), `"`+Placeholder+`"`)
		}
	case typ == "item_reference":
		r.odd(OddUnseen, item)
	default:
		r.odd(OddKind, item)
		r.untrusted(Source{Class: ClassUnknown}, item, "", inputItem)
	}
	return elementFixed
}

func (r *reader) itemMessage(item strictjson.Value) {
	content := item.Get("content")
	switch item.Get("role").Text() {
	case "system", "developer":
		eachBlock(content, "text", func(text, _ strictjson.Value) { r.system(text) }, nil)
	case "user":
		eachBlock(content, "text", func(text, _ strictjson.Value) { r.user(text, taskInput) },
			func(b strictjson.Value) { r.user(b, taskInput) })
	case "assistant":
		eachBlock(content, "text", func(text, _ strictjson.Value) { r.agent(text) }, nil)
		if id := item.Get("id"); id.Exists() {
			r.a.drops = append(r.a.drops, id)
		}
	default:
		r.odd(OddKind, item)
		r.blocks(content, Source{Class: ClassUnknown}, "", "text", inputBlock)
	}
}
