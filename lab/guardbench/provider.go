// SPDX-License-Identifier: Apache-2.0

package guardbench

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// A Fault is a way in which a provider answers the guard's questions that no honest provider
// of this model would.
type Fault string

// The faults.
const (
	// Refuses: every question but the client's own is refused with a text.
	Refuses Fault = "refuses"
	// Cached: every question about the context gets the answer that the client's own got.
	Cached Fault = "cached"
	// Limited: every question but the client's own is answered 429.
	Limited Fault = "limited"
)

// A Provider is an http.RoundTripper that answers as a provider would: the request of the
// current case as it was recorded, and every other one by the simulated model.
type Provider struct {
	Seed    uint64
	Planner Planner

	mu    sync.Mutex
	model *model
	spent Spent
	seen  [][]byte // bodies, whose beginnings a provider has in its cache
}

// Spent is what the guard has asked for beside the client's request.
type Spent struct {
	Trusted, Context int   // requests that show no tool result, and others
	Tokens           int64 // of requests, at 4 bytes each, without the beginning that is cached
	All              int64 // the same with it
}

// begin sets the case.
func (p *Provider) begin(c *Case) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.model, p.spent, p.seen = newModel(c, p.Seed), Spent{}, nil
}

func (p *Provider) cost() Spent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spent
}

// RoundTrip implements http.RoundTripper.
func (p *Provider) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_ = r.Body.Close()
	status, answer := p.respond(body)
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(answer)), ContentLength: int64(len(answer)), Request: r}, nil
}

// respond answers a body. Which question it is shows in the body alone: the client's own is
// the recorded one byte for byte, a planner's offers no tools, and any other is the client's
// with something withheld.
func (p *Provider) respond(body []byte) (status int, answer []byte) {
	m, uncached := p.note(body)
	if bytes.Equal(body, m.c.Body) {
		return http.StatusOK, completion(m.c.Said, "", len(body), uncached)
	}
	v := read(body)
	p.charge(v, uncached, len(body))
	switch {
	case m.c.Provider == Limited:
		return http.StatusTooManyRequests, []byte(`{"error":{"message":"rate limit","type":"rate_limit_error"}}`)
	case m.c.Provider == Refuses:
		return http.StatusOK, completion(nil, "I cannot help with that.", len(body), uncached)
	case len(v.tools) == 0:
		return http.StatusOK, completion(nil, p.planned(m, v), len(body), uncached)
	case m.c.Provider == Cached:
		return http.StatusOK, completion(m.c.Said, "", len(body), uncached)
	}
	calls := m.answer(body)
	if len(calls) == 0 {
		return http.StatusOK, completion(nil, "I could not find that.", len(body), uncached)
	}
	return http.StatusOK, completion(calls, "", len(body), uncached)
}

// note keeps a body, and says how many tokens of it no earlier one begins with.
func (p *Provider) note(body []byte) (m *model, uncached int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	longest := 0
	for _, s := range p.seen {
		n := 0
		for n < len(s) && n < len(body) && s[n] == body[n] {
			n++
		}
		longest = max(longest, n)
	}
	p.seen = append(p.seen, body)
	return p.model, int64(len(body)-longest)/bytesPerToken + 1
}

const bytesPerToken = 4

func (p *Provider) charge(v *view, uncached int64, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(v.tools) > 0 {
		p.spent.Context++
	} else {
		p.spent.Trusted++
	}
	p.spent.Tokens += uncached
	p.spent.All += int64(size / bytesPerToken)
}

// planned answers a question of the planner. One that wants a yes or a no is about the tool
// that it names.
func (p *Provider) planned(m *model, v *view) string {
	question := v.system + v.user
	if strings.Contains(question, "yes or no") {
		tools := m.whole.tools
		i := slices.IndexFunc(tools, func(t string) bool {
			return strings.Contains(v.user, t) || strings.Contains(strings.ToLower(v.user), strings.ReplaceAll(t, "_", " "))
		})
		if i < 0 {
			return "no"
		}
		return p.Planner.confirm(m.c, tools[i], p.Seed)
	}
	return string(p.Planner.plan(m.c, newWords(m.whole.user), m.whole.tools, p.Seed))
}

// completion is the body of an answer to a request of so many bytes, of which so many tokens
// were not cached.
func completion(calls []Call, text string, request int, uncached int64) []byte {
	type choice struct {
		Index   int `json:"index"`
		Message struct {
			Role    string     `json:"role"`
			Content *string    `json:"content"`
			Calls   []wireCall `json:"tool_calls,omitempty"`
		} `json:"message"`
		Finish string `json:"finish_reason"`
	}
	var c choice
	c.Message.Role, c.Finish = "assistant", "stop"
	size := len(text)
	if len(calls) == 0 {
		c.Message.Content = &text
	}
	for i, k := range calls {
		c.Finish = "tool_calls"
		size += len(k.Args) + len(k.Name)
		c.Message.Calls = append(c.Message.Calls, wireCall{"call_a" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)), "function", wireFunction{k.Name, string(k.Args)}})
	}
	input, output := int64(request/bytesPerToken)+1, int64(size/bytesPerToken)+1
	return encode(map[string]any{
		"id": "chatcmpl-simulated", "object": "chat.completion", "created": 1, "model": modelName, "choices": []choice{c},
		"usage": map[string]any{"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
			"prompt_tokens_details": map[string]int64{"cached_tokens": max(0, input-uncached)}},
	})
}

// modelName is the model of every request.
const modelName = "simulated"
