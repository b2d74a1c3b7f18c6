// SPDX-License-Identifier: Apache-2.0

package llmtest

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// understand reads a request, or says in the fake's words what is wrong with it.
func understand(a Ask, r *http.Request, raw []byte) (Ask, error) {
	a.Path, a.Header, a.Raw, a.Temperature = r.URL.RequestURI(), r.Header.Clone(), raw, -1
	var d strictjson.Doc
	if err := d.Reset(raw, strictjson.Limits{}); err != nil || d.Root().Kind() != '{' {
		return a, errors.New("the body is no strict JSON object")
	}
	v := d.Root()
	if !isGemini(a.format) {
		a.model = cmp.Or(a.model, text(v.Get("model"))) // that of a deployment goes first
		a.Stream, _ = v.Get("stream").Bool()
	}
	if a.model == "" {
		return a, errors.New("model is required")
	}
	if t := v.Get("temperature"); t.Kind() == '0' {
		a.Temperature = float(t)
	}
	if n, ok := v.Get("seed").Int64(); ok {
		a.seed = &n
	}
	read := map[format.Name]func(*Ask, strictjson.Value) error{
		format.Chat: (*Ask).chat, format.Responses: (*Ask).responses, format.Messages: (*Ask).messages,
		format.Gemini: (*Ask).gemini, format.GeminiArray: (*Ask).gemini,
	}[a.format]
	if err := read(&a, v); err != nil {
		return a, err
	}
	if len(a.Messages) == 0 {
		return a, errors.New("messages: at least one is required")
	}
	return a, a.orphans()
}

// orphans refuses, as the services do, a result without its call and a call without
// its result.
func (a *Ask) orphans() error {
	open := map[string]bool{}
	for _, m := range a.Messages {
		switch m.Role {
		case llm.ToolResult:
			if !open[m.CallID] {
				return errors.New("a tool result must follow the call that it answers")
			}
			delete(open, m.CallID)
		default:
			if len(open) > 0 {
				return errors.New("every tool call must be followed by its result")
			}
			for _, c := range m.Calls {
				open[c.ID] = true
			}
		}
	}
	if len(open) > 0 {
		return errors.New("every tool call must be followed by its result")
	}
	return nil
}

func (a *Ask) chat(v strictjson.Value) error {
	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		if n, ok := v.Get(name).Int64(); ok {
			a.MaxTokens = n
		}
	}
	for m := range v.Get("messages").Elements() {
		said := content(m.Get("content"))
		switch role := text(m.Get("role")); role {
		case "system", "developer":
			a.System += said
		case "user":
			a.Messages = append(a.Messages, llm.Message{Role: llm.User, Text: said})
		case "assistant":
			msg := llm.Message{Role: llm.Assistant, Text: said}
			for c := range m.Get("tool_calls").Elements() {
				fn := c.Get("function")
				msg.Calls = append(msg.Calls, format.Call{ID: text(c.Get("id")), Name: text(fn.Get("name")), Arguments: []byte(text(fn.Get("arguments")))})
			}
			if old := m.Get("function_call"); old.Kind() == '{' {
				msg.Calls = append(msg.Calls, format.Call{ID: "function " + text(old.Get("name")), Name: text(old.Get("name")), Arguments: []byte(text(old.Get("arguments")))})
			}
			a.Messages = append(a.Messages, msg)
		case "function":
			a.Messages = append(a.Messages, llm.Message{Role: llm.ToolResult, Text: said, CallID: "function " + text(m.Get("name"))})
		case "tool":
			a.Messages = append(a.Messages, llm.Message{Role: llm.ToolResult, Text: said, CallID: text(m.Get("tool_call_id"))})
		default:
			return errors.New("messages: no such role")
		}
	}
	for t := range v.Get("tools").Elements() {
		fn := t.Get("function")
		a.Tools = append(a.Tools, tool(fn, "parameters"))
	}
	for fn := range v.Get("functions").Elements() {
		a.functions = true
		a.Tools = append(a.Tools, tool(fn, "parameters"))
	}
	return nil
}

func (a *Ask) responses(v strictjson.Value) error {
	a.MaxTokens, _ = v.Get("max_output_tokens").Int64()
	a.System = text(v.Get("instructions"))
	stored, said := v.Get("store").Bool()
	a.Keep = stored || !said
	if id := text(v.Get("previous_response_id")); id != "" {
		before, ok := a.kept(id)
		if !ok {
			return errors.New("Previous response with id '" + id + "' not found.")
		}
		a.Messages = append(a.Messages, before...)
	}
	if in := v.Get("input"); in.Kind() == '"' {
		a.Messages = append(a.Messages, llm.Message{Text: text(in)})
	}
	for item := range v.Get("input").Elements() {
		switch kind := text(item.Get("type")); {
		case kind == "function_call":
			call := format.Call{ID: text(item.Get("call_id")), Name: text(item.Get("name")), Arguments: []byte(text(item.Get("arguments")))}
			if n := len(a.Messages); n > 0 && a.Messages[n-1].Role == llm.Assistant {
				a.Messages[n-1].Calls = append(a.Messages[n-1].Calls, call)
				continue
			}
			a.Messages = append(a.Messages, llm.Message{Role: llm.Assistant, Calls: []format.Call{call}})
		case kind == "function_call_output":
			a.Messages = append(a.Messages, llm.Message{Role: llm.ToolResult, CallID: text(item.Get("call_id")), Text: content(item.Get("output"))})
		case kind == "reasoning":
		case text(item.Get("role")) == "assistant":
			a.Messages = append(a.Messages, llm.Message{Role: llm.Assistant, Text: content(item.Get("content"))})
		case text(item.Get("role")) == "user":
			a.Messages = append(a.Messages, llm.Message{Text: content(item.Get("content"))})
		case text(item.Get("role")) == "system", text(item.Get("role")) == "developer":
			a.System += content(item.Get("content"))
		default:
			return errors.New("input: no such item")
		}
	}
	for t := range v.Get("tools").Elements() {
		a.Tools = append(a.Tools, tool(t, "parameters"))
	}
	return nil
}

func (a *Ask) messages(v strictjson.Value) error {
	if a.Header.Get("Anthropic-Version") == "" {
		return errors.New("anthropic-version: header is required")
	}
	return a.anthropic(v)
}

func (a *Ask) anthropic(v strictjson.Value) error {
	if n, ok := v.Get("max_tokens").Int64(); ok {
		a.MaxTokens = n
	}
	if a.MaxTokens <= 0 {
		return errors.New("max_tokens: field is required")
	}
	a.System = content(v.Get("system"))
	for m := range v.Get("messages").Elements() {
		role := text(m.Get("role"))
		switch role {
		case "user", "assistant":
		case "system": // in the middle of a conversation, as Claude Code sends it
			a.System += content(m.Get("content"))
			continue
		default:
			return errors.New("messages: no such role")
		}
		a.turn(role == "assistant", m.Get("content"))
	}
	for t := range v.Get("tools").Elements() {
		a.Tools = append(a.Tools, tool(t, "input_schema"))
	}
	return nil
}

// turn takes a turn of messages apart.
func (a *Ask) turn(assistant bool, blocks strictjson.Value) {
	m := llm.Message{}
	if assistant {
		m.Role = llm.Assistant
	}
	if blocks.Kind() == '"' {
		m.Text = text(blocks)
		a.Messages = append(a.Messages, m)
		return
	}
	said := false
	for b := range blocks.Elements() {
		switch text(b.Get("type")) {
		case "text":
			m.Text += text(b.Get("text"))
			said = true
		case "tool_use":
			m.Calls = append(m.Calls, format.Call{ID: text(b.Get("id")), Name: text(b.Get("name")), Arguments: append([]byte(nil), b.Get("input").Raw()...)})
			said = true
		case "tool_result":
			failed, _ := b.Get("is_error").Bool()
			a.Messages = append(a.Messages, llm.Message{Role: llm.ToolResult, CallID: text(b.Get("tool_use_id")), Text: content(b.Get("content")), Failed: failed})
		}
	}
	if said {
		a.Messages = append(a.Messages, m)
	}
}

func tool(v strictjson.Value, schema string) llm.Tool {
	return llm.Tool{Name: text(v.Get("name")), Description: text(v.Get("description")), Schema: append([]byte(nil), v.Get(schema).Raw()...)}
}

func text(v strictjson.Value) string { return strings.Clone(v.Text()) }

// content is a string, or the texts of parts, joined.
func content(v strictjson.Value) string {
	if v.Kind() == '"' {
		return text(v)
	}
	var b strings.Builder
	for p := range v.Elements() {
		b.WriteString(p.Get("text").Text())
	}
	return b.String()
}
