// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/eventstream"
)

func split(f format.Format, src []byte) (all []eventstream.Event, rest string) {
	d := f.Split(len(src), true)
	d.Feed(src)
	for e, ok, _ := d.Next(); ok; e, ok, _ = d.Next() {
		all = append(all, e)
	}
	return all, string(d.Rest())
}

// FuzzRequest: any bytes are inspected or refused in constant words.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[],"n":1}`))
	f.Add([]byte(`{"model":"m","input":"x","background":false}`))
	f.Add([]byte(`{"model":"m","max_tokens":1,"messages":[]}`))
	f.Add([]byte(`{"inferenceConfig":{"maxTokens":1},"messages":[]}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, f := range format.All {
			asked := checked(&route{format: f}, target{model: "m"}, src)
			if asked.Wrong == "" && asked.Model == "" || len(asked.Wrong) > 160 {
				t.Errorf("%s: model %q, %q", f.Name(), asked.Model, asked.Wrong)
			}
		}
	})
}

// FuzzRoute: what is asked of the provider is, byte for byte, what the client asked for, and
// holds nothing that two programs read differently.
func FuzzRoute(f *testing.F) {
	table, err := compileRoutes([]string{"GET /v1/files/*?limit", "POST /v1/chat/*", "POST /v1beta/models/*", "POST /openai/deployments/*/chat/*?api-version"})
	if err != nil {
		f.Fatal(err)
	}
	g := &Guard{routes: table}
	for _, uri := range []string{"/v1/chat/completions", "/v1/chat/Completions", "/v1/responses%3F", "/v1/messages?beta=true", "/v1/files/a?limit=1", "/v1/models/..", "//v1/models", "http://a/v1/models",
		"/model/a.b-v1:0/converse", "/anthropic/v1/messages",
		"/v1beta/models/gemini-2.5-flash:generateContent", "/v1/models/a:streamGenerateContent?alt=sse", "/v1beta/models/a:streamgeneratecontent", "/v1beta/models/a:b:generateContent",
		"/v1beta/models/:generateContent", "/openai/deployments/d/chat/completions?api-version=2024-10-21", "/openai/deployments/d/Chat/completions", "/openai/deployments/a%2Fb/chat/completions", "/openai/v1/responses"} {
		f.Add("POST", uri)
		f.Add("GET", uri)
	}
	f.Fuzz(func(t *testing.T, method, uri string) {
		r, target, _ := g.route(method, uri)
		if r == nil {
			return
		}
		to := target.path
		if r.root == rootV1 {
			to = "/v1" + to
		}
		if uri != to || r.method != method || strings.ContainsAny(to, "%;#\\ +") || strings.Contains(to, "//") || strings.Contains(to, "/.") {
			t.Errorf("%s %+q becomes %+q", method, uri, target.path)
		}
		path, _, _ := strings.Cut(uri, "?")
		low := strings.ToLower(path)
		inspects := strings.HasSuffix(low, "generatecontent") || strings.HasPrefix(low, "/openai/") && strings.HasSuffix(low, "/chat/completions")
		for _, f := range format.All {
			inspects = inspects || strings.EqualFold(path, "/v1"+f.Path("", false))
		}
		if inspects && r.format == nil {
			t.Errorf("%s %+q is not inspected", method, uri)
		}
	})
}

// streaming are formats whose streams are made of events that are whole by themselves.
var streaming = []format.Format{format.Of(format.Chat), format.Of(format.Responses), format.Of(format.Messages)}

// FuzzReading: whatever a provider streams, nothing that comes before the first part
// that is held names a tool that needs a decision, and what is written in its place
// is readable.
func FuzzReading(f *testing.F) {
	f.Add(0, []byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"a\"}}]}\n\n"+
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"send_money\",\"arguments\":\"{}\"}}]}}]}\n\ndata: [DONE]\n\n"))
	f.Add(1, []byte("event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"name\":\"send_money\"}}\n\n"))
	f.Add(2, []byte("event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"name\":\"send_money\"}}\n\n"))
	f.Fuzz(func(t *testing.T, which int, src []byte) {
		form := streaming[uint(which)%uint(len(streaming))]
		r := newReading(form, gate{policy: counterfactual.GuessPrivileges()})
		all, _ := split(usualFormat, src) // of any format: the names of events are those of its messages
		for _, e := range all {
			is := r.event(e)
			if is == partHeld || is == partEnd || is == partFault {
				break
			}
			if v := format.Parse(e.Data); e.HasData && names(read(form, v.Raw(), nil)) {
				t.Errorf("a call went on: %q", e.Data)
			}
		}
		r.answer()
		events, _ := split(form, r.tail("No."))
		for _, e := range events {
			if string(e.Data) != "[DONE]" && !format.Parse(e.Data).Exists() {
				t.Errorf("the tail holds %q", e.Data)
			}
		}
		if body := form.AppendText(nil, "0", "m", "No."); read(form, body, nil).strange || read(form, body, nil).said.Text != "No." {
			t.Errorf("%s", body)
		}
	})
}

// names reports whether an answer calls the tool that the seeds call.
func names(a *answer) bool {
	for _, c := range a.said.Calls {
		if c.Name == "send_money" {
			return true
		}
	}
	return false
}

// FuzzEvents: a body that is read as an answer says the same as a stream.
func FuzzEvents(f *testing.F) {
	f.Add(0, []byte(`{"choices":[{"message":{"role":"assistant","content":"a","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`))
	f.Add(1, []byte(`{"output":[{"type":"message","content":[{"type":"output_text","text":"a"}]},{"type":"function_call","call_id":"x","name":"f","arguments":"{}"}]}`))
	f.Add(2, []byte(`{"content":[{"type":"text","text":"a"},{"type":"tool_use","id":"x","name":"f","input":{"a":1}}],"stop_reason":"tool_use"}`))
	f.Add(3, []byte(`{"output":{"message":{"role":"assistant","content":[{"text":"a"},{"toolUse":{"toolUseId":"x","name":"f","input":{"a":1}}}]}},"stopReason":"tool_use"}`))
	f.Fuzz(func(t *testing.T, which int, src []byte) {
		form := streaming[uint(which)%uint(len(streaming))]
		want := read(form, src, nil)
		if want.strange || len(want.said.Calls) > format.MaxCalls {
			return
		}
		events, rest := split(form, form.AppendEvents(nil, format.Parse(src)))
		r := newReading(form, gate{policy: counterfactual.GuessPrivileges()})
		for _, e := range events {
			r.event(e)
		}
		got := r.answer()
		if rest != "" || len(got.said.Calls) != len(want.said.Calls) {
			t.Errorf("%d calls of %d, %q", len(got.said.Calls), len(want.said.Calls), form.AppendEvents(nil, format.Parse(src)))
			return
		}
		for i, c := range got.said.Calls {
			if c.Name != want.said.Calls[i].Name {
				t.Errorf("call %d is %q", i, c.Name)
			}
		}
	})
}
