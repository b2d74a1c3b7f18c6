// SPDX-License-Identifier: Apache-2.0

package format

import (
	"strconv"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

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

func (w *writer) textItem(id, text, status string) {
	w.with(`{"id":`, id)
	w.raw(`,"type":"message","status":"` + status + `","role":"assistant","content":[`)
	if status == "completed" {
		w.textPart(text)
	}
	w.raw("]}")
}

func (w *writer) textPart(text string) {
	w.with(`{"type":"output_text","annotations":[],"logprobs":[],"text":`, text)
	w.raw("}")
}

// message writes the events of a message that says a text.
func (w *responsesWriter) message(at int, text string) {
	item := `,"output_index":` + strconv.Itoa(at)
	part := `,"item_id":"` + itemID + `"` + item + `,"content_index":0`
	w.named("response.output_item.added", func() { w.raw(item + `,"item":`); w.textItem(itemID, "", "in_progress") })
	w.named("response.content_part.added", func() { w.raw(part + `,"part":`); w.textPart("") })
	w.named("response.output_text.delta", func() { w.with(part+`,"logprobs":[],"delta":`, text) })
	w.messageEnd(at, itemID, text)
	w.messageDone(at, itemID, text)
}

// messageEnd writes the events that end the text of a message.
func (w *responsesWriter) messageEnd(at int, id, text string) {
	of := func() { w.with(`,"item_id":`, id); w.raw(`,"output_index":` + strconv.Itoa(at) + `,"content_index":0`) }
	w.named("response.output_text.done", func() { of(); w.with(`,"logprobs":[],"text":`, text) })
	w.named("response.content_part.done", func() { of(); w.raw(`,"part":`); w.textPart(text) })
}

// messageDone writes the event that ends a message.
func (w *responsesWriter) messageDone(at int, id, text string) {
	w.named("response.output_item.done", func() {
		w.raw(`,"output_index":` + strconv.Itoa(at) + `,"item":`)
		w.textItem(id, text, "completed")
	})
}

// end writes the last event: head with the output that items writes.
func (w *responsesWriter) end(head strictjson.Value, items func()) {
	w.named("response.completed", func() {
		w.raw(`,"response":{"status":"completed","output":[`)
		items()
		w.raw("]")
		w.members(head, "status", "output", "error", "incomplete_details")
		w.raw(`,"error":null,"incomplete_details":null}`)
	})
}

// members writes the members of v but those of some names, each after a comma.
func (w *writer) members(v strictjson.Value, without ...string) {
next:
	for name, m := range v.Members() {
		for _, n := range without {
			if name.Text() == n {
				continue next
			}
		}
		w.raw(",")
		w.value(name.Raw())
		w.raw(":")
		w.value(m.Raw())
	}
}

func (responses) AppendText(dst []byte, id, model, text string) []byte {
	w := &writer{dst}
	w.with(`{"id":"resp_pellucid_`+id+`","object":"response","created_at":0,"status":"completed","error":null,"incomplete_details":null,"model":`, model)
	w.raw(`,"output":[`)
	w.textItem(itemID, text, "completed")
	w.raw(`],"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"usage":{"input_tokens":0,"input_tokens_details":{"cached_tokens":0},` +
		`"output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":0}}`)
	return w.b
}

func (responses) AppendEvents(dst []byte, root strictjson.Value) []byte {
	w := &responsesWriter{writer: writer{dst}}
	w.named("response.created", func() {
		w.raw(`,"response":{"status":"in_progress","output":[]`)
		w.members(root, "status", "output", "usage")
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

func (responses) AppendError(dst []byte, kind, text string) []byte {
	return chat{}.AppendError(dst, kind, text)
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
