// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/text/eventstream"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// chatReading reads a stream of chat completions.
type chatReading struct {
	collected
	head strictjson.Value // the first chunk
	old  bool             // the call is a function_call, of before tools
}

func newChat(p *counterfactual.Policy) reading { return &chatReading{collected: collected{policy: p}} }

func (r *chatReading) event(e eventstream.Event) part {
	if is, yes := r.bare(e); yes {
		return is
	}
	if string(e.Data) == "[DONE]" {
		return partEnd
	}
	v := parse(e.Data)
	if _, stray := v.Strays([]string{"choices", "error"}); stray || !v.Exists() {
		return r.odd()
	}
	choices := v.Get("choices")
	switch choices.Kind() {
	case 0, 'n', '[':
	default:
		return r.odd()
	}
	if v.Get("error").Kind() == '{' {
		if says(choices) {
			return r.odd()
		}
		return partFault
	}
	if !r.head.Exists() {
		r.head = parse(append([]byte(nil), e.Data...))
	}
	if u := v.Get("usage"); u.Kind() == '{' {
		r.input, r.output = count(u.Get("prompt_tokens")), count(u.Get("completion_tokens"))
	}
	r.fetched = r.fetched || chatFetched(v)
	is := partPreamble
	for c := range choices.Elements() {
		is = max(is, r.choice(c))
	}
	return r.part(is)
}

func (r *chatReading) choice(c strictjson.Value) part {
	d := c.Get("delta")
	if says(d) && d.Kind() != '{' {
		return r.odd()
	}
	if _, stray := d.Strays([]string{"content", "tool_calls", "function_call"}); stray {
		return r.odd()
	}
	if _, stray := c.Strays([]string{"delta", "message"}); stray || c.Get("message").Exists() {
		return r.odd()
	}
	if i := c.Get("index"); i.Exists() && count(i) != 0 {
		return r.odd() // one was asked for
	}
	r.fetched = r.fetched || says(d.Get("annotations"))
	is := partPreamble
	if says(c.Get("finish_reason")) {
		is = partShown
	}
	for name, v := range d.Members() {
		switch name.Text() {
		case "role":
		case "content":
			r.say(v.Text())
			fallthrough
		default:
			if says(v) {
				is = partShown
			}
		case "tool_calls":
			if says(v) && v.Kind() != '[' {
				return r.odd()
			}
			for t := range v.Elements() {
				is = max(is, partShown, r.piece(t))
			}
		case "function_call":
			if says(v) {
				is = max(is, partShown, r.oldPiece(v))
			}
		}
	}
	return is
}

// oldPiece takes in a piece of the one call that an answer of before tools may have.
func (r *chatReading) oldPiece(fn strictjson.Value) part {
	if _, stray := fn.Strays([]string{"name", "arguments"}); stray || fn.Kind() != '{' || len(r.calls) > 0 && !r.old {
		return r.odd()
	}
	name := fn.Get("name").Text()
	switch {
	case len(r.calls) == 0:
		r.old = true
		r.call("", name)
	case name != "" && name != r.calls[0].name:
		return r.odd() // a call becomes another
	}
	r.argue(r.calls[0], fn.Get("arguments").Text())
	return r.part(partShown)
}

// piece takes in a piece of a call. Without an index each is a call of its own.
func (r *chatReading) piece(t strictjson.Value) part {
	fn := t.Get("function")
	if kind := t.Get("type"); kind.Exists() && kind.Kind() != 'n' && kind.Text() != "function" && kind.Text() != "" {
		return r.odd()
	}
	_, strayed := t.Strays([]string{"function", "index"})
	if _, stray := fn.Strays([]string{"name", "arguments"}); stray || strayed || r.old {
		return r.odd()
	}
	i := len(r.calls)
	if at := t.Get("index"); at.Kind() == '0' {
		n, whole := at.Int64()
		if !whole || n < 0 || n > maxCalls {
			return r.odd()
		}
		i = int(n)
	}
	name := fn.Get("name").Text()
	switch {
	case i > len(r.calls) || i >= maxCalls:
		return r.odd()
	case i == len(r.calls):
		r.call(t.Get("id").Text(), name)
	case name != "" && name != r.calls[i].name:
		return r.odd() // a call becomes another
	}
	r.argue(r.calls[i], fn.Get("arguments").Text())
	return r.part(partShown)
}

// maxCalls is how many calls an answer may propose.
const maxCalls = 128

// tail ends the stream as another chunk of the same answer.
func (r *chatReading) tail(text string) []byte {
	w := &writer{}
	w.chatChunk(r.head, func() { w.raw(`{"content":`); w.text("\n\n" + text); w.raw("}") }, "")
	finish := `"stop"`
	switch {
	case r.passed() && r.old:
		finish = `"function_call"`
	case r.passed():
		finish = `"tool_calls"`
	}
	w.chatChunk(r.head, func() { w.raw("{}") }, finish)
	w.raw("data: [DONE]\n\n")
	return w.b
}

// chatChunk writes a chunk of the answer that head is a part of.
func (w *writer) chatChunk(head strictjson.Value, delta func(), finish string) {
	w.event("", func() {
		w.raw(`{"id":`)
		w.or(head.Get("id"), `"chatcmpl-pellucid"`)
		w.raw(`,"object":"chat.completion.chunk","created":`)
		w.or(head.Get("created"), "0")
		w.raw(`,"model":`)
		w.or(head.Get("model"), `""`)
		if v := head.Get("system_fingerprint"); v.Exists() {
			w.raw(`,"system_fingerprint":`)
			w.value(v.Raw())
		}
		w.raw(`,"choices":[{"index":0,"delta":`)
		delta()
		if finish == "" {
			finish = "null"
		}
		w.raw(`,"logprobs":null,"finish_reason":` + finish + `}]}`)
	})
}

// chatFetched reports whether an answer names what was found in a search.
func chatFetched(root strictjson.Value) bool {
	return says(root.Get("citations")) || says(root.Get("search_results"))
}

func chatWhole(root strictjson.Value) *answer {
	u := root.Get("usage")
	a := &answer{input: count(u.Get("prompt_tokens")), output: count(u.Get("completion_tokens"))}
	choices := root.Get("choices")
	_, a.strange = root.Strays([]string{"choices"})
	a.strange = a.strange || choices.Len() > 1
	a.fetched = chatFetched(root)
	for c := range choices.Elements() {
		m := c.Get("message")
		_, above := c.Strays([]string{"message"})
		_, stray := m.Strays([]string{"content", "tool_calls", "function_call"})
		calls := m.Get("tool_calls")
		a.fetched = a.fetched || says(m.Get("annotations"))
		a.strange = a.strange || above || stray || says(m) && m.Kind() != '{' || says(calls) && calls.Kind() != '['
		if old := m.Get("function_call"); says(old) {
			_, stray := old.Strays([]string{"name", "arguments"})
			a.strange = a.strange || stray || old.Kind() != '{' || says(m.Get("tool_calls"))
		}
		for t := range calls.Elements() {
			kind := t.Get("type")
			_, stray := t.Get("function").Strays([]string{"name", "arguments"})
			a.strange = a.strange || stray || t.Get("function").Kind() != '{' || kind.Exists() && kind.Text() != "function"
		}
	}
	return a
}

func chatRefusal(id, model, text string) []byte {
	w := &writer{}
	w.raw(`{"id":"chatcmpl-pellucid-` + id + `","object":"chat.completion","created":0,"model":`)
	w.text(model)
	w.raw(`,"choices":[{"index":0,"message":{"role":"assistant","content":`)
	w.text(text)
	w.raw(`,"refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`)
	return w.b
}

func chatEvents(root strictjson.Value) []byte {
	w := &writer{}
	finish := `"stop"`
	for c := range root.Get("choices").Elements() {
		m := c.Get("message")
		w.chatChunk(root, func() {
			w.raw(`{"role":"assistant","content":`)
			w.or(m.Get("content"), "null")
			if v := m.Get("refusal"); says(v) {
				w.raw(`,"refusal":`)
				w.value(v.Raw())
			}
			if calls := m.Get("tool_calls"); says(calls) {
				w.raw(`,"tool_calls":[`)
				w.chatCalls(calls)
				w.raw("]")
			}
			if old := m.Get("function_call"); says(old) {
				w.raw(`,"function_call":`)
				w.value(old.Raw())
			}
			w.raw("}")
		}, "")
		if v := c.Get("finish_reason"); says(v) {
			finish = string(v.Raw())
		}
		break
	}
	w.chatChunk(root, func() { w.raw("{}") }, finish)
	w.raw("data: [DONE]\n\n")
	return w.b
}

func (w *writer) chatCalls(calls strictjson.Value) {
	i := 0
	for t := range calls.Elements() {
		if i > 0 {
			w.raw(",")
		}
		w.raw(`{"index":` + strconv.Itoa(i) + `,"id":`)
		w.or(t.Get("id"), `""`)
		w.raw(`,"type":"function","function":`)
		w.or(t.Get("function"), "{}")
		w.raw("}")
		i++
	}
}

// openAIFault is the body of an error of OpenAI's.
func openAIFault(kind, text string) []byte {
	w := &writer{}
	w.raw(`{"error":{"message":`)
	w.text(text)
	w.raw(`,"type":`)
	w.text(kind)
	w.raw(`,"param":null,"code":`)
	w.text("pellucid_" + strings.TrimSuffix(kind, "_error"))
	w.raw("}}")
	return w.b
}
