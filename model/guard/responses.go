// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/text/eventstream"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// responsesReading reads a stream of responses. The answer itself is what the last
// event holds.
type responsesReading struct {
	collected
	head     strictjson.Value // of the response as it began
	last     *answer
	spoken   []*spoken          // calls, in the order in which they were announced
	kept     int                // bytes of items
	items    []strictjson.Value // passed on and done
	at       int                // output_index of the next item that is passed on
	sequence int64
}

func newResponses(p *counterfactual.Policy) reading {
	return &responsesReading{collected: collected{policy: p}}
}

func (r *responsesReading) event(e eventstream.Event) part {
	if is, yes := r.bare(e); yes {
		return is
	}
	v, kind := typed(e, "type", "item", "response", "output_index", "delta")
	if !v.Exists() {
		return r.odd()
	}
	is := r.kind(kind, v, e.Data)
	if !r.held {
		r.sequence = max(r.sequence, count(v.Get("sequence_number")))
	}
	return is
}

func (r *responsesReading) kind(kind string, v strictjson.Value, data []byte) part {
	switch kind {
	case "response.created", "response.in_progress", "response.queued":
		if says(v.Get("response").Get("output")) {
			return r.odd()
		}
		if !r.head.Exists() {
			r.head = parse(append([]byte(nil), data...)).Get("response")
		}
		return r.part(partPreamble)
	case "response.output_item.added":
		return r.item(v, false)
	case "response.output_item.done":
		is := r.item(v, true)
		if r.kept += len(data); is == partShown && r.kept <= maxSaid {
			r.items = append(r.items, parse(append([]byte(nil), data...)).Get("item"))
		}
		if is == partShown {
			r.at = max(r.at, int(count(v.Get("output_index")))+1)
		}
		return is
	case "response.completed", "response.incomplete", "response.failed":
		body := v.Get("response").Raw()
		r.last = formats[1].read(append([]byte(nil), body...))
		if r.last.privileged(r.policy) {
			r.held = true
		}
		return partEnd
	case "error":
		return partFault
	case "response.output_text.delta":
		r.say(v.Get("delta").Text())
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		return r.piece(v, v.Get("delta"), false)
	case "response.function_call_arguments.done":
		return r.piece(v, v.Get("arguments"), true)
	case "response.custom_tool_call_input.done":
		return r.piece(v, v.Get("input"), true)
	}
	return r.part(partShown)
}

// item says what an item is, as it is announced or done.
func (r *responsesReading) item(v strictjson.Value, done bool) part {
	item := v.Get("item")
	_, stray := item.Strays([]string{"type", "name", "arguments"})
	kind := item.Get("type").Text()
	switch {
	case stray:
		return r.odd()
	case kind == "function_call" || kind == "custom_tool_call":
		r.speak(v, item, done)
	case !responsesServed(kind):
		return r.odd()
	}
	r.fetched = r.fetched || responsesFetched(kind)
	return r.part(partShown)
}

// responsesServed are kinds of items that call for nothing: text, or what the
// provider has done by itself.
func responsesServed(kind string) bool {
	switch kind {
	case "message", "reasoning", "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
		"mcp_call", "mcp_list_tools", "compaction", "tool_search_call", "program":
		return true
	}
	return strings.HasSuffix(kind, "_output")
}

// responsesFetched reports whether the model has read, with an item, what it had not been
// given.
func responsesFetched(kind string) bool {
	switch kind {
	case "message", "reasoning", "function_call", "custom_tool_call", "image_generation_call", "compaction":
		return false
	}
	return true
}

func (r *responsesReading) answer() *answer {
	if r.last == nil {
		a := r.collected.answer()
		a.strange = true // it has no end
		return a
	}
	r.agree()
	return r.last
}

func (r *responsesReading) tail(text string) []byte {
	w := &responsesWriter{sequence: r.sequence + 1}
	w.message(r.at, text)
	w.end(r.head, func() {
		said := false
		for _, v := range r.items {
			said = said || v.Get("type").Text() == "message"
			w.value(v.Raw())
			w.raw(",")
		}
		if !said && r.text.Len() > 0 { // a provider that announces no items
			w.textItem(r.text.String(), "completed")
			w.raw(",")
		}
		w.textItem(text, "completed")
	})
	return w.b
}

// A responsesWriter numbers the events that it writes.
type responsesWriter struct {
	writer
	sequence int64
}

func (w *responsesWriter) named(name string, more func()) {
	w.event(name, func() {
		w.raw(`{"type":"` + name + `","sequence_number":` + strconv.FormatInt(w.sequence, 10))
		w.sequence++
		more()
		w.raw("}")
	})
}

const itemID = "msg_pellucid"

func (w *responsesWriter) textItem(text, status string) {
	w.raw(`{"id":"` + itemID + `","type":"message","status":"` + status + `","role":"assistant","content":[`)
	if status == "completed" {
		w.textPart(text)
	}
	w.raw("]}")
}

func (w *responsesWriter) textPart(text string) {
	w.raw(`{"type":"output_text","annotations":[],"logprobs":[],"text":`)
	w.text(text)
	w.raw("}")
}

// message writes the events of a message that says a text.
func (w *responsesWriter) message(at int, text string) {
	item := `,"output_index":` + strconv.Itoa(at)
	part := `,"item_id":"` + itemID + `"` + item + `,"content_index":0`
	w.named("response.output_item.added", func() { w.raw(item + `,"item":`); w.textItem("", "in_progress") })
	w.named("response.content_part.added", func() { w.raw(part + `,"part":`); w.textPart("") })
	w.named("response.output_text.delta", func() { w.raw(part + `,"logprobs":[],"delta":`); w.text(text) })
	w.named("response.output_text.done", func() { w.raw(part + `,"logprobs":[],"text":`); w.text(text) })
	w.named("response.content_part.done", func() { w.raw(part + `,"part":`); w.textPart(text) })
	w.named("response.output_item.done", func() { w.raw(item + `,"item":`); w.textItem(text, "completed") })
}

// end writes the last event: head with the output that items writes.
func (w *responsesWriter) end(head strictjson.Value, items func()) {
	w.named("response.completed", func() {
		w.raw(`,"response":{"status":"completed","output":[`)
		items()
		w.raw("]")
		for name, v := range head.Members() {
			switch name.Text() {
			case "status", "output", "error", "incomplete_details":
			default:
				w.raw(",")
				w.value(name.Raw())
				w.raw(":")
				w.value(v.Raw())
			}
		}
		w.raw(`,"error":null,"incomplete_details":null}`)
	})
}

func responsesWhole(root strictjson.Value) *answer {
	u := root.Get("usage")
	a := &answer{input: count(u.Get("input_tokens")), output: count(u.Get("output_tokens"))}
	_, a.strange = root.Strays([]string{"output"})
	a.bare = root.Get("output").Len() == 0
	n := 0
	for item := range root.Get("output").Elements() {
		_, stray := item.Strays([]string{"type", "name", "arguments", "input"})
		kind := item.Get("type").Text()
		call := kind == "function_call" || kind == "custom_tool_call"
		if call {
			n++
		}
		a.fetched = a.fetched || responsesFetched(kind)
		a.strange = a.strange || stray || n > maxCalls || !call && !responsesServed(kind)
	}
	return a
}

func responsesRefusal(id, model, text string) []byte {
	w := &responsesWriter{}
	w.raw(`{"id":"resp_pellucid_` + id + `","object":"response","created_at":0,"status":"completed","error":null,"incomplete_details":null,"model":`)
	w.text(model)
	w.raw(`,"output":[`)
	w.textItem(text, "completed")
	w.raw(`],"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"usage":{"input_tokens":0,"input_tokens_details":{"cached_tokens":0},` +
		`"output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":0}}`)
	return w.b
}

func responsesEvents(root strictjson.Value) []byte {
	w := &responsesWriter{}
	w.named("response.created", func() {
		w.raw(`,"response":{"status":"in_progress","output":[]`)
		for name, v := range root.Members() {
			if n := name.Text(); n != "status" && n != "output" && n != "usage" {
				w.raw(",")
				w.value(name.Raw())
				w.raw(":")
				w.value(v.Raw())
			}
		}
		w.raw("}")
	})
	i := 0
	for item := range root.Get("output").Elements() {
		w.item(i, item)
		i++
	}
	w.named("response.completed", func() { w.raw(`,"response":`); w.value(root.Raw()) })
	return w.b
}

// item writes the events of an item that is there as a whole.
func (w *responsesWriter) item(i int, item strictjson.Value) {
	at := `,"output_index":` + strconv.Itoa(i)
	// Clients refuse events of an item that has no id, which providers other than OpenAI
	// may leave out.
	id, began, whole := string(item.Get("id").Raw()), strictjson.Edits{}, strictjson.Edits{}
	if id == "" || id == `""` {
		id = `"item_pellucid_` + strconv.Itoa(i) + `"`
		for _, e := range []*strictjson.Edits{&began, &whole} {
			e.Remove(item.Get("id"))
			e.Append(item, "id", []byte(id))
		}
	}
	began.Replace(item.Get("status"), []byte(`"in_progress"`))
	began.Replace(item.Get("content"), []byte("[]"))
	began.Replace(item.Get("arguments"), []byte(`""`))
	w.named("response.output_item.added", func() { w.raw(at + `,"item":`); w.b = began.Apply(w.b, item) })
	of := func() { w.raw(`,"item_id":` + id + at) }
	switch item.Get("type").Text() {
	case "message":
		n := 0
		for c := range item.Get("content").Elements() {
			w.content(n, of, c)
			n++
		}
	case "function_call":
		w.named("response.function_call_arguments.delta", func() { of(); w.raw(`,"delta":`); w.or(item.Get("arguments"), `""`) })
		w.named("response.function_call_arguments.done", func() { of(); w.raw(`,"arguments":`); w.or(item.Get("arguments"), `""`) })
	}
	w.named("response.output_item.done", func() { w.raw(at + `,"item":`); w.b = whole.Apply(w.b, item) })
}

// content writes the events of a part of a message.
func (w *responsesWriter) content(n int, of func(), c strictjson.Value) {
	at := `,"content_index":` + strconv.Itoa(n)
	member, kind := "text", "output_text"
	if c.Get("type").Text() == "refusal" {
		member, kind = "refusal", "refusal"
	}
	began := strictjson.Edits{}
	began.Replace(c.Get(member), []byte(`""`))
	text := c.Get(member)
	w.named("response.content_part.added", func() { of(); w.raw(at + `,"part":`); w.b = began.Apply(w.b, c) })
	w.named("response."+kind+".delta", func() { of(); w.raw(at + `,"delta":`); w.or(text, `""`) })
	w.named("response."+kind+".done", func() { of(); w.raw(at + `,"` + member + `":`); w.or(text, `""`) })
	w.named("response.content_part.done", func() { of(); w.raw(at + `,"part":`); w.value(c.Raw()) })
}
