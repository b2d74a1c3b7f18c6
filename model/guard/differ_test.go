// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/model/llm"
)

const (
	chatCall = `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"send_money","arguments":"{\"to\":\"mallory\"}"}}]}}]}`
	chatBody = `{"choices":[{"index":0,"message":{"tool_calls":[{"id":"x","function":{"name":"send_money","arguments":"{\"to\":\"mallory\"}"}}]}}]}`
	chatText = `data: {"choices":[{"index":0,"delta":{"content":"Well."}}]}` + "\n\n"
	chatEnd  = "data: [DONE]\n\n"

	item      = `{"type":"function_call","id":"f","call_id":"c","name":"send_money","arguments":"{\"to\":\"mallory\"}"}`
	otherItem = `{"type":"function_call","id":"f","call_id":"c","name":"send_money","arguments":"{\"to\":\"alice\"}"}`
	readItem  = `{"type":"function_call","id":"f","call_id":"c","name":"get_mail","arguments":"{}"}`

	block = `{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"x","name":"send_money","input":{}}}`
	piece = `{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}`
)

func events(all ...string) string {
	var b strings.Builder
	for _, e := range all {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

func added(item string) string {
	return `{"type":"response.output_item.added","output_index":0,"item":` + item + `}`
}

func done(item string) string {
	return `{"type":"response.output_item.done","output_index":0,"item":` + item + `}`
}

func ended(as, items string) string {
	return `{"type":"response.` + as + `","response":{"status":"` + as + `","output":[` + items + `]}}`
}

// TestReadOtherwise: an answer in which this package and a client could read different
// calls. The provider may be odd, or a model may have been talked into oddity.
func TestReadOtherwise(t *testing.T) {
	for name, tt := range map[string]struct {
		f      format.Name
		stream bool
		body   string
	}{
		"a comment with NEL":             {format.Chat, true, chatText + ": x\u0085data: " + chatCall + "\n\n" + chatEnd},
		"a comment with LS":              {format.Chat, true, chatText + ": x\u2028data: " + chatCall + "\n\n" + chatEnd},
		"an id with VT":                  {format.Chat, true, chatText + "id: x\vdata: " + chatCall + "\n\n" + chatEnd},
		"a space before data":            {format.Chat, true, chatText + " data: " + chatCall + "\n\n" + chatEnd},
		"data in capitals":               {format.Chat, true, chatText + "Data: " + chatCall + "\n\n" + chatEnd},
		"lines of JSON":                  {format.Chat, true, chatText + chatCall + "\n\n" + chatEnd},
		"JSON called a stream":           {format.Chat, false, chatBody + "\n\n"},
		"JSON called a stream, as asked": {format.Chat, true, chatBody + "\n\n"},
		"an error with a call":           {format.Chat, true, events(`{"error":{"message":"x"},` + chatCall[1:])},
		"choices by name":                {format.Chat, true, events(strings.NewReplacer("[{\"index\":0,\"delta", "{\"0\":{\"index\":0,\"delta", "}}]}}]}", "}}]}}}}").Replace(chatCall))},
		"calls by name":                  {format.Chat, true, events(strings.NewReplacer("calls\":[{", "calls\":{\"0\":{", "}}]}}]}", "}}}}}]}").Replace(chatCall))},
		"calls by name, whole":           {format.Chat, false, strings.NewReplacer("calls\":[{", "calls\":{\"0\":{", "}}]}}]}", "}}}}}]}").Replace(chatBody)},

		"response without output":        {format.Responses, true, events(added(item), done(item), ended("completed", ""))},
		"response with other output":     {format.Responses, true, events(added(item), done(item), ended("completed", readItem))},
		"response with other arguments":  {format.Responses, true, events(added(item), done(item), ended("completed", otherItem))},
		"response of a call never done":  {format.Responses, true, events(added(item), ended("completed", ""))},
		"response of a call only done":   {format.Responses, true, events(done(item), ended("completed", ""))},
		"response that has failed":       {format.Responses, true, events(added(item), done(item), ended("failed", ""))},
		"response with other deltas":     {format.Responses, true, events(added(strings.Replace(otherItem, `{\"to\":\"alice\"}`, "", 1)), `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"to\":\"mallory\"}"}`, done(otherItem), ended("completed", otherItem))},
		"response with arguments of air": {format.Responses, true, events(`{"type":"response.function_call_arguments.done","name":"send_money","arguments":"{\"to\":\"mallory\"}"}`, ended("completed", ""))},
	} {
		t.Run(name, func(t *testing.T) {
			first := true
			// Without the text, too, the model proposes a call: one that differs.
			r := newRig(t, func(a ask) reply {
				if first {
					first = false
					contentType := "text/event-stream"
					if strings.HasPrefix(tt.body, "{") && !strings.HasSuffix(tt.body, "\n") {
						contentType = "application/json"
					}
					return reply{Raw: []byte(tt.body), ContentType: contentType}
				}
				return reply{Calls: []llm.ToolCall{{ID: "x", Name: "send_money", Arguments: []byte(`{"to":"alice"}`)}}}
			})
			resp := r.post(tt.f, conversation(tt.f, tt.stream, "Sum up.", attack))
			b, _ := io.ReadAll(resp.Body) // may be cut
			if strings.Contains(string(b), "mallory") {
				t.Errorf("a call arrived: %.300q", b)
			}
		})
	}
}

// TestReadAlike: what differs in nothing that counts is decided as it is.
func TestReadAlike(t *testing.T) {
	for name, body := range map[string]string{
		"whole":          events(added(item), done(item), ended("completed", item)),
		"without output": events(added(item), done(item), ended("completed", "")),
		"announced bare": events(added(strings.Replace(item, `{\"to\":\"mallory\"}`, "", 1)), `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"to\":\"mallory\"}"}`, done(item), ended("completed", item)),
		"not announced":  events(ended("completed", item)),
		"out of order": events(`{"type":"response.output_item.done","output_index":1,"item":`+item+`}`, `{"type":"response.output_item.done","output_index":0,"item":`+readItem+`}`,
			ended("completed", readItem+","+item)),
	} {
		first := true
		r := newRig(t, func(a ask) reply {
			if first {
				first = false
				return reply{Raw: []byte(body), ContentType: "text/event-stream"}
			}
			return reply{Calls: []llm.ToolCall{{ID: "x", Name: "send_money", Arguments: []byte(`{"to":"mallory"}`)}}}
		})
		resp := r.post(format.Responses, conversation(format.Responses, true, "Sum up.", attack))
		b, _ := io.ReadAll(resp.Body)
		if s := r.sink.last(t); s.Reason != "found-out" {
			t.Errorf("%s: %s: %.200q", name, s.Reason, b)
		}
	}
}

// TestFetched: where the request holds no stranger's text, a call behind a search of the
// provider's is nobody's by itself.
func TestFetched(t *testing.T) {
	const search = `{"type":"web_search_call","id":"w","status":"completed"}`
	const found = `{"type":"web_search_tool_result","tool_use_id":"s","content":[]}`
	const use = `{"type":"tool_use","id":"x","name":"send_money","input":{"to":"mallory"}}`
	for name, tt := range map[string]struct {
		f      format.Name
		stream bool
		body   string
		held   bool
	}{
		"responses":               {format.Responses, false, `{"output":[` + search + `,` + item + `]}`, true},
		"responses, streamed":     {format.Responses, true, events(added(search), done(search), ended("completed", search+","+item)), true},
		"responses, bare":         {format.Responses, true, events(done(search), `{"type":"response.output_item.done","output_index":1,"item":`+item+`}`, ended("completed", "")), true},
		"responses, no search":    {format.Responses, false, `{"output":[` + item + `]}`, false},
		"messages":                {format.Messages, false, `{"content":[` + found + `,` + use + `]}`, true},
		"messages, streamed":      {format.Messages, true, events(`{"type":"content_block_start","index":0,"content_block":`+found+`}`, `{"type":"content_block_stop","index":0}`, fmt.Sprintf(block, 1), fmt.Sprintf(piece, 1, `"{}"`), `{"type":"message_stop"}`), true},
		"messages, no search":     {format.Messages, false, `{"content":[` + use + `]}`, false},
		"chat":                    {format.Chat, false, strings.Replace(chatBody, `"message":{`, `"message":{"annotations":[{"type":"url_citation"}],`, 1), true},
		"chat, streamed":          {format.Chat, true, `data: {"search_results":[{"url":"https://a.example"}],"choices":[]}` + "\n\n" + events(chatCall, "[DONE]"), true},
		"chat, with no citations": {format.Chat, false, strings.Replace(chatBody, `"message":{`, `"message":{"annotations":[],`, 1), false},
	} {
		contentType := "application/json"
		if tt.stream {
			contentType = "text/event-stream"
		}
		r := newRig(t, func(ask) reply { return reply{Raw: []byte(tt.body), ContentType: contentType} })
		resp := r.post(tt.f, conversation(tt.f, tt.stream, "Pay the bill that you find."))
		b, _ := io.ReadAll(resp.Body)
		if held := !strings.Contains(string(b), "send_money"); held != tt.held {
			t.Errorf("%s: held: %v: %.200q", name, held, b)
		}
	}
}

// TestSlowRequests: who opens a request and sends nothing does not keep its place.
func TestSlowRequests(t *testing.T) {
	r := newRig(t, obedient, func(o *guard.Options) { o.MaxActive, o.Patience = 1, 500*time.Millisecond })
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.front.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(conn); err != nil || len(b) > 0 {
		t.Errorf("%q, %v", b, err)
	}
	status := 0 // the place is free a moment later; and a busy machine may be too slow for the patience
	for end := time.Now().Add(time.Minute); status != 200 && time.Now().Before(end); {
		resp := r.post(format.Chat, conversation(format.Chat, false, "Sum up."))
		resp.Body.Close()
		status = resp.StatusCode
	}
	if status != 200 {
		t.Errorf("status %d", status)
	}
}

// TestManyLines: an event of a million lines takes linear time, and text that goes on as
// it comes is not kept without end.
func TestManyLines(t *testing.T) {
	start := time.Now()
	r := newRig(t, func(a ask) reply {
		return reply{Raw: []byte(strings.Repeat("data:a\n", 1<<20) + "\n" + chatEnd), ContentType: "text/event-stream"}
	}, func(o *guard.Options) { o.Calls = 1 })
	resp := r.post(format.Chat, conversation(format.Chat, true, "Sum up.", attack))
	_, _ = io.Copy(io.Discard, resp.Body)
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
}
