// SPDX-License-Identifier: Apache-2.0

package llmtest

import (
	"errors"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// geminiCall takes apart /models/MODEL:METHOD.
func geminiCall(path, query string) (f format.Name, model string, stream bool) {
	rest, ok := strings.CutPrefix(path, "/models/")
	model, method, _ := strings.Cut(rest, ":")
	sse := strings.Contains("&"+query+"&", "&alt=sse&")
	switch {
	case !ok:
	case method == "generateContent":
		return format.Gemini, model, false
	case method == "streamGenerateContent" && sse:
		return format.Gemini, model, true
	case method == "streamGenerateContent":
		return format.GeminiArray, model, true
	}
	return "", "", false
}

// member is the member of that name, in the spelling that Google's pages use for a first
// look, and in the one of its clients.
func member(v strictjson.Value, camel, snake string) strictjson.Value {
	if m := v.Get(camel); m.Exists() {
		return m
	}
	return v.Get(snake)
}

func (a *Ask) gemini(v strictjson.Value) error {
	config := member(v, "generationConfig", "generation_config")
	a.MaxTokens, _ = member(config, "maxOutputTokens", "max_output_tokens").Int64()
	if t := config.Get("temperature"); t.Kind() == '0' {
		a.Temperature = float(t)
	}
	if n, ok := config.Get("seed").Int64(); ok {
		a.seed = &n
	}
	a.System = content(member(v, "systemInstruction", "system_instruction").Get("parts"))
	for c := range v.Get("contents").Elements() {
		if err := a.contents(c); err != nil {
			return err
		}
	}
	for t := range v.Get("tools").Elements() {
		for fn := range member(t, "functionDeclarations", "function_declarations").Elements() {
			schema := "parametersJsonSchema"
			if !fn.Get(schema).Exists() {
				schema = "parameters"
			}
			a.Tools = append(a.Tools, tool(fn, schema))
		}
	}
	return nil
}

// contents takes one message apart.
func (a *Ask) contents(c strictjson.Value) error {
	m := llm.Message{}
	switch role := text(c.Get("role")); role {
	case "model":
		m.Role = llm.Assistant
	case "user", "":
	default:
		return errors.New("contents: please use a valid role: user, model")
	}
	said := false
	for p := range c.Get("parts").Elements() {
		call, result := member(p, "functionCall", "function_call"), member(p, "functionResponse", "function_response")
		id := func(v strictjson.Value) string {
			if id := text(v.Get("id")); id != "" {
				return id
			}
			return "function " + text(v.Get("name"))
		}
		thought, _ := p.Get("thought").Bool()
		switch {
		case call.Exists():
			if call.Get("name").Text() == "" {
				return errors.New("contents: a function call without a name")
			}
			m.Calls = append(m.Calls, format.Call{ID: id(call), Name: text(call.Get("name")), Arguments: append([]byte(nil), call.Get("args").Raw()...)})
			said = true
		case result.Exists():
			response := result.Get("response")
			if response.Kind() != '{' || result.Get("name").Text() == "" {
				return errors.New("contents: a function response without a name or a response")
			}
			a.Messages = append(a.Messages, llm.Message{Role: llm.ToolResult, CallID: id(result), Text: returned(response), Failed: response.Get("error").Exists()})
		case thought:
		default:
			m.Text += text(p.Get("text"))
			said = true
		}
	}
	if said {
		a.Messages = append(a.Messages, m)
	}
	return nil
}

// returned is what a function has returned: the text of the one member, or the JSON.
func returned(response strictjson.Value) string {
	for _, name := range []string{"result", "output", "error"} {
		if v := response.Get(name); v.Kind() == '"' && response.Len() == 1 {
			return text(v)
		}
	}
	return string(response.Raw())
}

var geminiReasons = map[format.Stop]string{
	format.StopEnd: "STOP", format.StopSequence: "STOP", format.StopRefusal: "STOP", format.StopLength: "MAX_TOKENS",
	format.StopCalls: "STOP", format.StopFilter: "SAFETY", format.StopOther: "SOMETHING_NEW",
}

func (s *service) geminiUsage() string {
	if s.reply.NoUsage {
		return ""
	}
	u := s.usage()
	return object("promptTokenCount", number(u.Input), "cachedContentTokenCount", number(u.Cached), "candidatesTokenCount", number(u.Output-u.Reasoning),
		"thoughtsTokenCount", number(u.Reasoning), "totalTokenCount", number(u.Input+u.Output))
}

// geminiPiece is an answer, or a piece of one.
func (s *service) geminiPiece(parts []string, reason, usage string) string {
	content := object("parts", "["+strings.Join(parts, ",")+"]", "role", `"model"`)
	if reason != "" {
		reason = quote(reason)
	}
	return object("candidates", "["+object("content", content, "finishReason", reason, "index", "0")+"]",
		"usageMetadata", usage, "modelVersion", quote(s.model()), "responseId", `"resp-fake"`)
}

// geminiSaid is what a refusal is here, too: it has no member of its own.
func (s *service) geminiSaid() string { return s.said() + s.reply.Refusal }

func (s *service) geminiCalls() (parts []string) {
	for _, c := range s.reply.Calls {
		id := ""
		if c.ID != "" {
			id = quote(c.ID)
		}
		parts = append(parts, object("functionCall", object("id", id, "name", quote(c.Name), "args", raw(c.Arguments)), "thoughtSignature", `"c2ln"`))
	}
	return parts
}

func (s *service) geminiBody() string {
	var parts []string
	if s.reply.Reasoning != "" {
		parts = append(parts, object("text", quote(s.reply.Reasoning), "thought", "true"))
	}
	if text := s.geminiSaid(); text != "" {
		parts = append(parts, object("text", quote(text)))
	}
	return s.geminiPiece(append(parts, s.geminiCalls()...), geminiReasons[s.stop()], s.geminiUsage())
}

func (s *service) geminiEvents() (out []piece) {
	add := func(parts ...string) { out = append(out, piece{"", s.geminiPiece(parts, "", "")}) }
	for _, p := range pieces(s.reply.Reasoning) {
		add(object("text", quote(p), "thought", "true"))
	}
	for _, p := range pieces(s.geminiSaid()) {
		add(object("text", quote(p)))
	}
	if calls := s.geminiCalls(); len(calls) > 0 { // each is whole
		add(calls...)
	}
	if s.reply.Fault == NewPrint { // it has no fingerprint: another model goes on
		s.reply.Model = "another"
	}
	return append(out, piece{"", s.geminiPiece([]string{`{"text":""}`}, geminiReasons[s.stop()], s.geminiUsage())})
}
