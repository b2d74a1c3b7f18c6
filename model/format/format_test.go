// SPDX-License-Identifier: Apache-2.0

package format_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/eventstream"
)

// bodies are answers with a text and a call, one for each format.
var bodies = map[format.Name]string{
	format.Chat: `{"id":"c","model":"m","system_fingerprint":"f","choices":[{"index":0,"message":{"role":"assistant","content":"Hi",
		"tool_calls":[{"id":"1","type":"function","function":{"name":"pay","arguments":"{\"to\":\"Ann\"}"}}]},"finish_reason":"tool_calls"}]}`,
	format.Responses: `{"id":"r","object":"response","model":"m","status":"completed","output":[
		{"type":"message","id":"i","role":"assistant","content":[{"type":"output_text","text":"Hi"}]},
		{"type":"function_call","call_id":"1","name":"pay","arguments":"{\"to\":\"Ann\"}"}]}`,
	format.Messages: `{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi"},
		{"type":"tool_use","id":"1","name":"pay","input":{"to":"Ann"}}],"stop_reason":"tool_use"}`,
	format.Gemini:      geminiSeed,
	format.GeminiArray: geminiSeed,
}

const geminiSeed = `{"candidates":[{"content":{"parts":[{"text":"Hi"},{"functionCall":{"id":"1","name":"pay","args":{"to":"Ann"}}}],
	"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2,"totalTokenCount":3},"modelVersion":"m"}`

var forms = format.All

func eventsOf(f format.Format, src []byte) (all []eventstream.Event) {
	d := f.Split(1<<20, true)
	d.Feed(src)
	for e, ok, _ := d.Next(); ok; e, ok, _ = d.Next() {
		e.Raw = nil
		all = append(all, e)
	}
	return all
}

// stream reads events and joins what each of them is odd about.
func stream(f format.Format, src []byte) (a *format.Answer, odd format.Odd, kinds []format.PartKind) {
	s := f.NewStream()
	for _, e := range eventsOf(f, src) {
		parts, o := s.Event(e)
		odd |= o
		for _, p := range parts {
			kinds = append(kinds, p.Kind)
		}
		s.Passed()
	}
	if s.Whole() {
		kinds = append(kinds, format.PartEnd)
	}
	return s.Answer(), odd, kinds
}

// TestBodyAndStream: a body and the events that say the same are read as one answer.
func TestBodyAndStream(t *testing.T) {
	for _, f := range forms {
		root := format.Parse([]byte(bodies[f.Name()]))
		whole := f.Read(root)
		if whole.Odd != 0 || whole.Text(format.PartText, "") != "Hi" || len(whole.Calls()) != 1 || !whole.Own() {
			t.Fatalf("%s: %+v", f.Name(), whole)
		}
		got, odd, kinds := stream(f, f.AppendEvents(nil, root))
		if odd|got.Odd != 0 || len(kinds) == 0 || kinds[len(kinds)-1] != format.PartEnd && kinds[len(kinds)-2] != format.PartEnd {
			t.Errorf("%s: odd %d, %d; parts %v", f.Name(), odd, got.Odd, kinds)
		}
		if d := cmp.Diff(whole.Calls(), got.Calls()); d != "" || got.Text(format.PartText, "") != "Hi" || got.Stop != whole.Stop || got.Model != whole.Model {
			t.Errorf("%s: %s, %+v", f.Name(), d, got)
		}
	}
}

// TestAppendText: what is written in the place of an answer is one, and so is its stream.
func TestAppendText(t *testing.T) {
	for _, f := range forms {
		body := f.AppendText(nil, "id-1", "m\"", "No.\n")
		a := f.Read(format.Parse(body))
		if a.Odd != 0 || a.Text(format.PartText, "") != "No.\n" || a.Model != `m"` || a.Stop != format.StopEnd || len(a.Calls()) > 0 {
			t.Errorf("%s: %+v", f.Name(), a)
		}
		a, odd, _ := stream(f, f.AppendEvents(nil, format.Parse(body)))
		if odd|a.Odd != 0 || a.Text(format.PartText, "") != "No.\n" {
			t.Errorf("%s: odd %d, %+v", f.Name(), odd, a)
		}
		if v := format.Parse(f.AppendError(nil, "api_error", "no")); v.Get("error").Get("message").Text() != "no" && v.Get("message").Text() != "no" {
			t.Errorf("%s: no error", f.Name())
		}
	}
}

// TestAppendTail: a stream that is cut after any event, and ended by a tail, says what was
// passed on and then the tail's text.
func TestAppendTail(t *testing.T) {
	for _, f := range forms {
		all := eventsOf(f, f.AppendEvents(nil, format.Parse([]byte(bodies[f.Name()]))))
		for n := 1; n < len(all)-1; n++ {
			s := f.NewStream()
			var got strings.Builder
			again := f.NewStream()
			var odd format.Odd
			for _, e := range all[:n] {
				s.Event(e)
				s.Passed()
				_, o := again.Event(e)
				odd |= o
			}
			s.Event(all[n]) // and this one is held
			for _, e := range eventsOf(f, s.AppendTail(nil, "Withheld.")) {
				_, o := again.Event(e)
				odd |= o
			}
			a := again.Answer()
			got.WriteString(a.Text(format.PartText, ""))
			if odd&^format.OddShape != 0 || !strings.HasSuffix(got.String(), "Withheld.") {
				t.Errorf("%s: after %d events: odd %d, %q", f.Name(), n, odd, got.String())
			}
		}
	}
}

// FuzzBody: any bytes are read, and events that say what a body says hold its calls.
func FuzzBody(f *testing.F) {
	for i, form := range forms {
		f.Add(i, []byte(bodies[form.Name()]))
	}
	f.Fuzz(func(t *testing.T, which int, src []byte) {
		form := forms[uint(which)%uint(len(forms))]
		root := format.Parse(src)
		a := form.Read(root)
		if len(a.Calls()) > format.MaxCalls {
			t.Fatalf("%d calls", len(a.Calls()))
		}
		if a.Odd&format.OddCall != 0 {
			return
		}
		got, odd, _ := stream(form, form.AppendEvents(nil, root))
		if (odd|got.Odd)&format.OddCall == 0 && len(got.Calls()) != len(a.Calls()) {
			t.Errorf("%d calls, and %d as a stream", len(a.Calls()), len(got.Calls()))
		}
	})
}

// FuzzStream: any bytes are read; parts belong to calls that have begun, and what ends the
// stream can be read.
func FuzzStream(f *testing.F) {
	for i, form := range forms {
		f.Add(i, form.AppendEvents(nil, format.Parse([]byte(bodies[form.Name()]))))
	}
	f.Add(1, []byte("data:{\"type\":\"response.output_item.done\"}\n\n"))
	f.Add(2, []byte("data:{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"name\":\"pay\"}}\n\n"))
	f.Fuzz(func(t *testing.T, which int, src []byte) {
		form := forms[uint(which)%uint(len(forms))]
		s := form.NewStream()
		calls := 0
		for _, e := range eventsOf(form, src) {
			parts, _ := s.Event(e)
			for _, p := range parts {
				switch p.Kind {
				case format.PartCall:
					if p.Index != calls {
						t.Fatalf("call %d begins after %d", p.Index, calls)
					}
					calls++
				case format.PartArguments:
					if p.Index >= calls {
						t.Fatalf("arguments of call %d of %d", p.Index, calls)
					}
				}
			}
			s.Passed()
		}
		if n := len(s.Answer().Calls()); n > format.MaxCalls {
			t.Errorf("%d calls", n)
		}
		for _, e := range eventsOf(form, s.AppendTail(nil, "No.")) {
			if e.HasData && string(e.Data) != "[DONE]" && !format.Parse(e.Data).Exists() {
				t.Errorf("the tail holds %q", e.Data)
			}
		}
	})
}
