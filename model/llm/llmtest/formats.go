// SPDX-License-Identifier: Apache-2.0

package llmtest

import (
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/format"
)

// created is when everything here was made.
const created = "1700000000"

// Chat completions.

var chatReasons = map[format.Stop]string{
	format.StopEnd: "stop", format.StopSequence: "stop", format.StopRefusal: "stop", format.StopLength: "length",
	format.StopCalls: "tool_calls", format.StopFilter: "content_filter", format.StopOther: "something_new",
}

func (s *service) chatUsage() string {
	if s.reply.NoUsage {
		return ""
	}
	u := s.usage()
	return object(
		"prompt_tokens", number(u.Input), "completion_tokens", number(u.Output), "total_tokens", number(u.Input+u.Output),
		"prompt_tokens_details", object("cached_tokens", number(u.Cached), "audio_tokens", "0"),
		"completion_tokens_details", object("reasoning_tokens", number(u.Reasoning), "audio_tokens", "0"))
}

func nullable(text string) string {
	if text == "" {
		return "null"
	}
	return quote(text)
}

func (s *service) chatBody() string {
	text := nullable(s.said())
	if text == "null" && len(s.reply.Calls) == 0 && s.reply.Refusal == "" {
		text = `""`
	}
	calls, old := "", ""
	if len(s.reply.Calls) > 0 && s.ask.functions {
		c := s.reply.Calls[0]
		old = object("name", quote(c.Name), "arguments", quote(string(c.Arguments)))
	} else if len(s.reply.Calls) > 0 {
		var list []string
		for _, c := range s.reply.Calls {
			list = append(list, object("id", quote(c.ID), "type", `"function"`,
				"function", object("name", quote(c.Name), "arguments", quote(string(c.Arguments)))))
		}
		calls = "[" + strings.Join(list, ",") + "]"
	}
	why := ""
	if s.reply.Reasoning != "" {
		why = quote(s.reply.Reasoning)
	}
	message := object("role", `"assistant"`, "content", text, "refusal", nullable(s.reply.Refusal),
		"reasoning_content", why, "tool_calls", calls, "function_call", old, "annotations", "[]")
	choice := object("index", "0", "message", message, "logprobs", "null", "finish_reason", quote(chatReasons[s.stop()]))
	return object("id", `"chatcmpl-fake"`, "object", `"chat.completion"`, "created", created, "model", quote(s.model()),
		"choices", "["+choice+"]", "usage", s.chatUsage(), "service_tier", `"default"`, "system_fingerprint", quote(s.print()))
}

func (s *service) chatEvents() []piece {
	print := s.print()
	chunk := func(choices, usage string) piece {
		return piece{"", object("id", `"chatcmpl-fake"`, "object", `"chat.completion.chunk"`, "created", created, "model", quote(s.model()),
			"service_tier", `"default"`, "system_fingerprint", quote(print), "choices", choices, "usage", usage)}
	}
	delta := func(d string) piece {
		return chunk("["+object("index", "0", "delta", d, "logprobs", "null", "finish_reason", "null")+"]", "null")
	}
	out := []piece{delta(`{"role":"assistant","content":"","refusal":null}`)}
	for _, part := range []struct{ name, text string }{
		{"reasoning_content", s.reply.Reasoning}, {"content", s.said()}, {"refusal", s.reply.Refusal},
	} {
		for _, p := range pieces(part.text) {
			out = append(out, delta(object(part.name, quote(p))))
		}
	}
	for i, c := range s.reply.Calls {
		if s.ask.functions {
			out = append(out, delta(`{"function_call":`+object("name", quote(c.Name), "arguments", `""`)+`}`))
			for _, p := range pieces(string(c.Arguments)) {
				out = append(out, delta(`{"function_call":{"arguments":`+quote(p)+`}}`))
			}
			break
		}
		call := func(more ...string) piece {
			return delta(`{"tool_calls":[` + object(append([]string{"index", strconv.Itoa(i)}, more...)...) + `]}`)
		}
		out = append(out, call("id", quote(c.ID), "type", `"function"`, "function", object("name", quote(c.Name), "arguments", `""`)))
		for _, p := range pieces(string(c.Arguments)) {
			out = append(out, call("function", object("arguments", quote(p))))
		}
	}
	if s.reply.Fault == NewPrint {
		print += "_2"
	}
	out = append(out, chunk("["+object("index", "0", "delta", "{}", "logprobs", "null", "finish_reason", quote(chatReasons[s.stop()]))+"]", "null"))
	if u := s.chatUsage(); u != "" {
		out = append(out, chunk("[]", u))
	}
	return append(out, piece{"", "[DONE]"})
}

// Responses.

// response is the id of the response to an Ask.
func (a *Ask) response() string { return "resp_fake_" + strconv.Itoa(a.Number) }

// A messagePart is a part of a message's content.
type messagePart struct{ kind, member, text string }

func (p *messagePart) json(text string) string {
	if p.member == "text" {
		return `{"type":"output_text","text":` + quote(text) + `,"annotations":[]}`
	}
	return `{"type":"refusal","refusal":` + quote(text) + `}`
}

func (s *service) messageParts() (parts []messagePart) {
	if text := s.said(); text != "" {
		parts = append(parts, messagePart{"output_text", "text", text})
	}
	if s.reply.Refusal != "" {
		parts = append(parts, messagePart{"refusal", "refusal", s.reply.Refusal})
	}
	return parts
}

func messageItem(status string, parts []messagePart) string {
	var all []string
	for _, p := range parts {
		all = append(all, p.json(p.text))
	}
	return `{"type":"message","id":"msg_fake","status":` + quote(status) + `,"role":"assistant","content":[` + strings.Join(all, ",") + `]}`
}

func (s *service) reasoningItem() string {
	return `{"type":"reasoning","id":"rs_fake","summary":[{"type":"summary_text","text":` + quote(s.reply.Reasoning) + `}]}`
}

func callItemID(i int) string { return "fc_fake_" + strconv.Itoa(i) }

func callItem(i int, id, name, arguments, status string) string {
	return object("type", `"function_call"`, "id", quote(callItemID(i)), "call_id", quote(id), "name", quote(name), "arguments", quote(arguments), "status", quote(status))
}

func (s *service) responsesOutput() string {
	var items []string
	if s.reply.Reasoning != "" {
		items = append(items, s.reasoningItem())
	}
	if parts := s.messageParts(); len(parts) > 0 || len(s.reply.Calls) == 0 {
		items = append(items, messageItem("completed", parts))
	}
	for i, c := range s.reply.Calls {
		items = append(items, callItem(i, c.ID, c.Name, string(c.Arguments), "completed"))
	}
	return "[" + strings.Join(items, ",") + "]"
}

func (s *service) responsesBody() string {
	status, why := "completed", "null"
	switch s.stop() {
	case format.StopLength:
		status, why = "incomplete", `{"reason":"max_output_tokens"}`
	case format.StopFilter:
		status, why = "incomplete", `{"reason":"content_filter"}`
	case format.StopOther:
		status = "queued"
	}
	usage := ""
	if !s.reply.NoUsage {
		u := s.usage()
		usage = object("input_tokens", number(u.Input), "input_tokens_details", object("cached_tokens", number(u.Cached)),
			"output_tokens", number(u.Output), "output_tokens_details", object("reasoning_tokens", number(u.Reasoning)),
			"total_tokens", number(u.Input+u.Output))
	}
	return object("id", quote(s.ask.response()), "object", `"response"`, "created_at", created, "status", quote(status), "error", "null",
		"incomplete_details", why, "model", quote(s.model()), "output", s.responsesOutput(), "store", strconv.FormatBool(s.ask.Keep), "usage", usage)
}

func (s *service) responsesEvents() []piece {
	n := 0
	named := func(name string, members ...string) piece {
		n++
		return piece{name, object(append([]string{"type", quote(name), "sequence_number", strconv.Itoa(n)}, members...)...)}
	}
	out := []piece{named("response.created", "response", object("id", quote(s.ask.response()), "object", `"response"`, "status", `"in_progress"`, "output", "[]"))}
	at := -1
	item := func(id, began, whole string, inside func(of []string)) {
		at++
		n := strconv.Itoa(at)
		out = append(out, named("response.output_item.added", "output_index", n, "item", began))
		inside([]string{"item_id", quote(id), "output_index", n})
		out = append(out, named("response.output_item.done", "output_index", n, "item", whole))
	}
	if s.reply.Reasoning != "" {
		item("rs_fake", `{"type":"reasoning","id":"rs_fake","summary":[]}`, s.reasoningItem(), func(of []string) {
			of = append(of, "summary_index", "0")
			out = append(out, named("response.reasoning_summary_part.added", append(of, "part", `{"type":"summary_text","text":""}`)...))
			for _, p := range pieces(s.reply.Reasoning) {
				out = append(out, named("response.reasoning_summary_text.delta", append(of, "delta", quote(p))...))
			}
			out = append(out, named("response.reasoning_summary_text.done", append(of, "text", quote(s.reply.Reasoning))...),
				named("response.reasoning_summary_part.done", append(of, "part", `{"type":"summary_text","text":`+quote(s.reply.Reasoning)+`}`)...))
		})
	}
	if parts := s.messageParts(); len(parts) > 0 {
		item("msg_fake", messageItem("in_progress", nil), messageItem("completed", parts), func(of []string) {
			for i, p := range parts {
				of := append(of[:4:4], "content_index", strconv.Itoa(i))
				out = append(out, named("response.content_part.added", append(of, "part", p.json(""))...))
				for _, t := range pieces(p.text) {
					out = append(out, named("response."+p.kind+".delta", append(of, "delta", quote(t))...))
				}
				out = append(out, named("response."+p.kind+".done", append(of, p.member, quote(p.text))...),
					named("response.content_part.done", append(of, "part", p.json(p.text))...))
			}
		})
	}
	for i, c := range s.reply.Calls {
		item(callItemID(i), callItem(i, c.ID, c.Name, "", "in_progress"), callItem(i, c.ID, c.Name, string(c.Arguments), "completed"), func(of []string) {
			for _, p := range pieces(string(c.Arguments)) {
				out = append(out, named("response.function_call_arguments.delta", append(of, "delta", quote(p))...))
			}
			out = append(out, named("response.function_call_arguments.done", append(of, "arguments", quote(string(c.Arguments)))...))
		})
	}
	last := "response.completed"
	if stop := s.stop(); stop == format.StopLength || stop == format.StopFilter {
		last = "response.incomplete"
	}
	body := s.responsesBody()
	if s.reply.Fault == NewPrint { // it has no fingerprint: the last word is another
		body = strings.Replace(body, `"text":"`, `"text":"not `, 1)
	}
	return append(out, named(last, "response", body))
}

// Messages.

var messagesReasons = map[format.Stop]string{
	format.StopEnd: "end_turn", format.StopSequence: "stop_sequence", format.StopRefusal: "refusal", format.StopLength: "max_tokens",
	format.StopCalls: "tool_use", format.StopFilter: "refusal", format.StopPause: "pause_turn", format.StopOther: "something_new",
}

func (s *service) messagesUsage() string {
	if s.reply.NoUsage {
		return ""
	}
	u := s.usage()
	return object("input_tokens", number(u.Input-u.Cached-u.CacheWrite), "cache_creation_input_tokens", number(u.CacheWrite),
		"cache_read_input_tokens", number(u.Cached), "output_tokens", number(u.Output))
}

// messagesText is what a refusal is here, too: it has no member of its own.
func (s *service) messagesText() string { return s.said() + s.reply.Refusal }

func (s *service) messagesBody() string {
	var blocks []string
	if s.reply.Reasoning != "" {
		blocks = append(blocks, object("type", `"thinking"`, "thinking", quote(s.reply.Reasoning), "signature", `"c2ln"`))
	}
	if text := s.messagesText(); text != "" {
		blocks = append(blocks, object("type", `"text"`, "text", quote(text)))
	}
	for _, c := range s.reply.Calls {
		blocks = append(blocks, object("type", `"tool_use"`, "id", quote(c.ID), "name", quote(c.Name), "input", raw(c.Arguments)))
	}
	return object("id", `"msg_fake"`, "type", `"message"`, "role", `"assistant"`, "model", quote(s.model()),
		"content", "["+strings.Join(blocks, ",")+"]", "stop_reason", quote(messagesReasons[s.stop()]), "stop_sequence", "null",
		"usage", s.messagesUsage())
}

func (s *service) messagesEvents() []piece {
	named := func(name string, members ...string) piece {
		return piece{name, object(append([]string{"type", quote(name)}, members...)...)}
	}
	u := s.usage()
	before := object("input_tokens", number(u.Input-u.Cached-u.CacheWrite), "cache_creation_input_tokens", number(u.CacheWrite),
		"cache_read_input_tokens", number(u.Cached), "output_tokens", "1")
	after := object("output_tokens", number(u.Output))
	if s.reply.NoUsage {
		before, after = "", ""
	}
	out := []piece{named("message_start", "message", object("id", `"msg_fake"`, "type", `"message"`, "role", `"assistant"`,
		"content", "[]", "model", quote(s.model()), "stop_reason", "null", "stop_sequence", "null", "usage", before))}
	index := 0
	block := func(begin, kind, member string, parts []string) {
		at := strconv.Itoa(index)
		out = append(out, named("content_block_start", "index", at, "content_block", begin))
		if index == 0 {
			out = append(out, piece{"ping", `{"type":"ping"}`})
		}
		for _, p := range parts {
			out = append(out, named("content_block_delta", "index", at, "delta", object("type", quote(kind), member, quote(p))))
		}
		out = append(out, named("content_block_stop", "index", at))
		index++
	}
	if s.reply.Reasoning != "" {
		block(`{"type":"thinking","thinking":"","signature":""}`, "thinking_delta", "thinking", pieces(s.reply.Reasoning))
	}
	if text := s.messagesText(); text != "" {
		block(`{"type":"text","text":""}`, "text_delta", "text", pieces(text))
	}
	for _, c := range s.reply.Calls {
		block(object("type", `"tool_use"`, "id", quote(c.ID), "name", quote(c.Name), "input", "{}"),
			"input_json_delta", "partial_json", append([]string{""}, pieces(string(c.Arguments))...))
	}
	if s.reply.Fault == NewPrint { // it has no fingerprint: a second message begins
		out = append(out, out[0])
	}
	return append(out,
		named("message_delta", "delta", object("stop_reason", quote(messagesReasons[s.stop()]), "stop_sequence", "null"), "usage", after),
		named("message_stop"))
}
