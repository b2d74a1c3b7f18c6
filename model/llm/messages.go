// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"net/http"
)

// messages is format.Messages: Anthropic's messages.
type messages struct{}

func (messages) bounds() []string { return []string{"max_tokens"} }

func (messages) sign(h http.Header, key string) {
	h.Set("Anthropic-Version", "2023-06-01")
	if key != "" {
		h.Set("X-Api-Key", key)
	}
}

const cacheMark = `,"cache_control":{"type":"ephemeral"}`

func (messages) encode(w *body, o *Options, r *Request) {
	w.with(`{"model":`, o.Model)
	if r.System != "" {
		w.with(`,"system":[{"type":"text","text":`, r.System)
		if r.CachePrefix {
			w.raw(cacheMark)
		}
		w.raw("}]")
	}
	turns := turnsOf(r.Messages)
	w.raw(`,"messages":`)
	w.list(len(turns), func(i int) { messagesTurn(w, turns[i]) })
	if len(r.Tools) > 0 {
		w.raw(`,"tools":`)
		w.list(len(r.Tools), func(i int) {
			w.tool(`{`, &r.Tools[i], `,"input_schema":`)
			if r.CachePrefix && r.System == "" && i == len(r.Tools)-1 {
				w.raw(cacheMark) // tools come before the system text: one mark holds both
			}
			w.raw("}")
		})
		switch r.Choice {
		case ChooseNone:
			w.raw(`,"tool_choice":{"type":"none"}`)
		case ChooseAny:
			w.raw(`,"tool_choice":{"type":"any"}`)
		}
	}
	w.raw(`,"max_tokens":`)
	w.number(r.maxTokens())
	w.sampling(o, r)
	if r.Stream != nil {
		w.raw(`,"stream":true`)
	}
	w.raw("}")
}

// turnsOf puts messages of one side that follow each other into one turn: results
// of calls that were made together must come back together.
func turnsOf(ms []Message) (turns [][]Message) {
	for i := range ms {
		side := ms[i].Role == Assistant
		if n := len(turns); n > 0 && (turns[n-1][0].Role == Assistant) == side {
			turns[n-1] = append(turns[n-1], ms[i])
			continue
		}
		turns = append(turns, []Message{ms[i]})
	}
	return turns
}

func messagesTurn(w *body, turn []Message) {
	role := "user"
	if turn[0].Role == Assistant {
		role = "assistant"
	}
	w.raw(`{"role":"` + role + `","content":[`)
	for i := range turn {
		w.items(&turn[i], func(m *Message) {
			w.with(`{"type":"tool_result","tool_use_id":`, m.CallID)
			w.with(`,"content":`, m.Text)
			if m.Failed {
				w.raw(`,"is_error":true`)
			}
		}, func(m *Message) {
			w.with(`{"type":"text","text":`, m.Text)
		}, func(c *ToolCall) {
			w.with(`{"type":"tool_use","id":`, c.ID)
			w.with(`,"name":`, c.Name)
			w.raw(`,"input":`)
			w.object(c.arguments(), "arguments of a tool call")
		})
	}
	w.raw("]}")
}
