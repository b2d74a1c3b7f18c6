// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"net/http"
)

// chat is format.Chat: OpenAI's chat completions, as many servers speak them.
type chat struct{}

func (chat) bounds() []string { return []string{"max_tokens", "max_completion_tokens"} }

func (chat) sign(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

var chatRoles = [...]string{User: "user", Assistant: "assistant", ToolResult: "tool"}

func (chat) encode(w *body, o *Options, r *Request) {
	w.with(`{"model":`, o.Model)
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
		chatMessage(w, &r.Messages[i-first])
	})
	if len(r.Tools) > 0 {
		w.raw(`,"tools":`)
		w.list(len(r.Tools), func(i int) {
			w.tool(`{"type":"function","function":{`, &r.Tools[i], `,"parameters":`)
			w.raw("}}")
		})
		openAIChoice(w, r.Choice)
	}
	if o.MaxCompletionTokens {
		w.raw(`,"max_completion_tokens":`)
	} else {
		w.raw(`,"max_tokens":`)
	}
	w.number(r.maxTokens())
	w.sampling(o, r)
	if r.Seed != nil {
		w.raw(`,"seed":`)
		w.number(*r.Seed)
	}
	if r.Stream != nil {
		w.raw(`,"stream":true,"stream_options":{"include_usage":true}`)
	}
	w.raw("}")
}

func openAIChoice(w *body, c Choice) {
	switch c {
	case ChooseNone:
		w.raw(`,"tool_choice":"none"`)
	case ChooseAny:
		w.raw(`,"tool_choice":"required"`)
	}
}

func chatMessage(w *body, m *Message) {
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
	if m.Role == ToolResult {
		w.with(`,"tool_call_id":`, m.CallID)
	}
	w.raw("}")
}
