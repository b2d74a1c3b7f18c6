// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"net/http"
)

// responses is format.Responses: OpenAI's responses, asked for without any state on
// the provider's side. It has no seed and no system fingerprint.
type responses struct{}

func (responses) bounds() []string { return []string{"max_output_tokens"} }

func (responses) sign(h http.Header, key string) { chat{}.sign(h, key) }

func (responses) encode(w *body, o *Options, r *Request) {
	w.with(`{"model":`, o.Model)
	if r.System != "" {
		w.with(`,"instructions":`, r.System)
	}
	w.raw(`,"input":[`)
	for i := range r.Messages {
		responsesItems(w, &r.Messages[i])
	}
	w.raw("]")
	if len(r.Tools) > 0 {
		w.raw(`,"tools":`)
		w.list(len(r.Tools), func(i int) {
			w.tool(`{"type":"function",`, &r.Tools[i], `,"parameters":`)
			w.raw(`,"strict":false}`) // true is the default here, and refuses many a schema
		})
		openAIChoice(w, r.Choice)
	}
	w.raw(`,"max_output_tokens":`)
	w.number(r.maxTokens())
	w.sampling(o, r)
	w.raw(`,"store":false`)
	if r.Stream != nil {
		w.raw(`,"stream":true`)
	}
	w.raw("}")
}

func responsesItems(w *body, m *Message) {
	w.items(m, func(m *Message) {
		w.with(`{"type":"function_call_output","call_id":`, m.CallID)
		w.with(`,"output":`, m.Text)
	}, func(m *Message) {
		w.with(`{"role":"`+chatRoles[m.Role]+`","content":`, m.Text)
	}, func(c *ToolCall) {
		w.with(`{"type":"function_call","call_id":`, c.ID)
		w.with(`,"name":`, c.Name)
		w.with(`,"arguments":`, string(c.arguments()))
	})
}
