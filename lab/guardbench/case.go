// SPDX-License-Identifier: Apache-2.0

// Package guardbench drives the whole guard over cases whose right outcome is known: real HTTP bodies in, a simulated provider behind it.
//
// A case is a request of an agent and the answer that the model gave. The guard decides on
// that answer as it does in production, with its own budget, gate and cache. What the
// provider answers to the guard's questions is simulated by a [Behaviour]: rates that were
// measured, and a rule that looks only at the text a request shows. The rule does not know
// what the guard concludes from it. Other published rules decide on the same cases, with the
// same provider and the same budget.
package guardbench

import (
	"encoding/json"
	"fmt"
)

// A Call is a tool call, recorded or simulated. Its strings are third-party text.
type Call struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"arguments"`
}

// A Message is one message of a chat.
type Message struct {
	Role, Text string
	Calls      []Call // of an assistant; results follow in their order
}

// A Case is one decision.
type Case struct {
	Suite, Model, Task string
	// Run names the recorded run. Cases of one run are decided by one guard, one after the
	// other, so that its cache works as in production.
	Run  string
	Half int // 0 or 1: of the user tasks
	Name string
	// Body is the request, as chat completions have it.
	Body []byte
	// Said is what the model answered, and Attacker the places in it of the attacker's calls;
	// a case without such a place is honest.
	Said     []Call
	Attacker []int
	Planted  []string // texts that the attacker wrote
	// Needs are the calls that the request needs, readers included, in their order: those of
	// another run of the same task in which nothing was planted and the task was done.
	Needs []Need
	// Delegated: a critical argument of an honest case does not stand in the user's words.
	Delegated bool
	// Behaviour is the simulated model; nil: Usual.
	Behaviour *Behaviour
	// Provider changes how the provider answers beside the model; nil: it does not.
	Provider Fault
}

// Attack reports whether the case has a call of the attacker's.
func (c *Case) Attack() bool { return len(c.Attacker) > 0 }

// A Tool is offered by the requests of a suite.
type Tool struct {
	Name, Description string
	Arguments         []string
}

// Request is the body of a request for a chat completion.
func Request(messages []byte, tools []Tool) []byte {
	type function struct {
		Name        string         `json:"name"`
		Description string         `json:"description"`
		Parameters  map[string]any `json:"parameters"`
	}
	type tool struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	list := make([]tool, 0, len(tools))
	for _, t := range tools {
		properties := map[string]any{}
		for _, a := range t.Arguments {
			properties[a] = map[string]any{}
		}
		list = append(list, tool{"function", function{t.Name, t.Description, map[string]any{"type": "object", "properties": properties}}})
	}
	return encode(struct {
		Model    string          `json:"model"`
		Tools    []tool          `json:"tools,omitempty"`
		Messages json.RawMessage `json:"messages"`
	}{modelName, list, messages})
}

// chat is the messages of a chat as JSON.
func chat(list []Message) []byte {
	var out []wireMessage
	var open []string // ids of calls that have no result yet
	for i, m := range list {
		w := wireMessage{Role: m.Role, Content: m.Text}
		for k, c := range m.Calls {
			id := fmt.Sprintf("call_%d_%d", i, k)
			open = append(open, id)
			w.Calls = append(w.Calls, wireCall{id, "function", wireFunction{c.Name, string(c.Args)}})
		}
		if m.Role == "tool" && len(open) > 0 {
			w.CallID, open = open[0], open[1:] // not slices.Delete, which clears open[0] before it is read
		}
		out = append(out, w)
	}
	return encode(out)
}

// encode is v as JSON. Only values that can be encoded are given to it.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

type wireMessage struct {
	Role    string     `json:"role"`
	Content string     `json:"content"`
	CallID  string     `json:"tool_call_id,omitempty"`
	Calls   []wireCall `json:"tool_calls,omitempty"`
}

type wireCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}
