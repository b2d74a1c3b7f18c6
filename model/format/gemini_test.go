// SPDX-License-Identifier: Apache-2.0

package format_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/format"
)

// geminiPieces are the pieces of a stream as Google documents them.
var geminiPieces = []string{
	`{"candidates":[{"content":{"parts":[{"text":"Let me","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9},"modelVersion":"gemini-2.5-flash","responseId":"r1"}`,
	`{"candidates":[{"content":{"parts":[{"text":"I \"pay\" ]}, now\\"}],"role":"model"},"index":0}],"modelVersion":"gemini-2.5-flash","responseId":"r1"}`,
	`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"pay","args":{"to":"Ann","sum":[1,{"a":"]"}]}},"thoughtSignature":"AbCd"},{"functionCall":{"name":"pay","args":{"to":"Bob"}}}],"role":"model"},"index":0}],"modelVersion":"gemini-2.5-flash","responseId":"r1"}`,
	`{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":7,"thoughtsTokenCount":5,"totalTokenCount":21,"cachedContentTokenCount":4},"modelVersion":"gemini-2.5-flash","responseId":"r1"}`,
}

func geminiStreams() map[format.Name]string {
	return map[format.Name]string{
		format.Gemini:      "data: " + strings.Join(geminiPieces, "\r\n\r\ndata: ") + "\r\n\r\n",
		format.GeminiArray: "[" + strings.Join(geminiPieces, "\n,\r\n") + "\n]\n",
	}
}

// TestGeminiStream: a stream that comes byte by byte is read as one that comes at once, and
// its events are all of its bytes.
func TestGeminiStream(t *testing.T) {
	for name, src := range geminiStreams() {
		f := format.Of(name)
		s, split := f.NewStream(), f.Split(1<<20, true)
		raw, ended := "", false
		for i := range len(src) {
			split.Feed([]byte{src[i]})
			for e, ok, err := split.Next(); ok || err != nil; e, ok, err = split.Next() {
				if err != nil {
					t.Fatal(name, err)
				}
				raw += string(e.Raw)
				parts, odd := s.Event(e)
				if odd != 0 {
					t.Errorf("%s: %q is odd: %d", name, e.Data, odd)
				}
				for _, p := range parts {
					ended = ended || p.Kind == format.PartEnd
				}
			}
		}
		a := s.Answer()
		calls := a.Calls()
		// A line feed behind the last event is of no event.
		if strings.TrimRight(raw, "\r\n") != strings.TrimRight(src, "\r\n") {
			t.Errorf("%s: the events hold %q", name, raw)
		}
		if a.Odd != 0 || ended != (name == format.GeminiArray) || s.Whole() == ended || a.Stop != format.StopEnd || a.ID != "r1" || a.Model != "gemini-2.5-flash" ||
			a.Text(format.PartText, "") != `I "pay" ]}, now\` || a.Text(format.PartReasoning, "") != "Let me" || len(calls) != 2 ||
			string(calls[0].Arguments) != `{"to":"Ann","sum":[1,{"a":"]"}]}` || string(calls[1].Arguments) != `{"to":"Bob"}` || calls[0].ID == calls[1].ID {
			t.Errorf("%s: ended %v, %+v", name, ended, a)
		}
		if u := a.Usage; u != (format.Usage{Known: true, Input: 9, Cached: 4, Output: 12, Reasoning: 5}) {
			t.Errorf("%s: %+v", name, u)
		}
	}
}

// TestGeminiTail: what a client has got, and the tail, are a stream that says both.
func TestGeminiTail(t *testing.T) {
	for name, src := range geminiStreams() {
		f := format.Of(name)
		for n := range 3 {
			s, split := f.NewStream(), f.Split(1<<20, true)
			split.Feed([]byte(src))
			var got []byte
			for range n {
				e, _, _ := split.Next()
				got = append(got, e.Raw...)
				s.Event(e)
				s.Passed()
			}
			e, _, _ := split.Next()
			s.Event(e) // and this one is held
			got = s.AppendTail(got, "Withheld.")
			if name == format.GeminiArray && !json.Valid(got) {
				t.Errorf("after %d: %s", n, got)
			}
			a, odd, kinds := stream(f, got)
			if odd|a.Odd != 0 || a.Stop != format.StopEnd || kinds[len(kinds)-1] != format.PartEnd || !strings.HasSuffix(a.Text(format.PartText, ""), "Withheld.") || len(a.Calls()) > 0 {
				t.Errorf("%s after %d: odd %d, %+v", name, n, odd, a)
			}
		}
	}
}

// TestGeminiArrayDamage: what is no array of objects is odd, and all of it is in the events;
// an element that is longer than the bound ends the stream with an error.
func TestGeminiArrayDamage(t *testing.T) {
	for _, src := range []string{`{"a":1}`, `[1]`, `["a"]`, `[{"a":1}{"a":2}]`, `[,{"a":1}]`, `[{"a":1}]]`, `[{"a":1}] x`, `data: {}`} {
		d := format.Of(format.GeminiArray).Split(100, true)
		odd, raw := false, ""
		for i := range len(src) {
			d.Feed([]byte{src[i]})
			for e, ok, err := d.Next(); ok || err != nil; e, ok, err = d.Next() {
				if err != nil {
					t.Fatal(err)
				}
				odd, raw = odd || e.Odd, raw+string(e.Raw)
			}
		}
		if !odd || raw != src {
			t.Errorf("%q: odd %v, %q", src, odd, raw)
		}
	}
	for _, src := range []string{`[` + strings.Repeat(" ", 2000), `[{"a":"` + strings.Repeat("x", 2000)} {
		d := format.Of(format.GeminiArray).Split(100, true)
		d.Feed([]byte(src))
		if _, ok, err := d.Next(); ok || err == nil {
			t.Errorf("%.40q can be read", src)
		}
	}
}

// TestGeminiAnswer reads answers in which a call may hide, and honest ones.
func TestGeminiAnswer(t *testing.T) {
	candidate := func(parts string) string {
		return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]},"finishReason":"STOP"}]}`
	}
	for _, tt := range []struct {
		name, src string
		call      bool // it may hold a call that is not read
		calls     int
		stop      format.Stop
		fetched   bool
	}{
		{"text", candidate(`{"text":"Hi"}`), false, 0, format.StopEnd, false},
		{"call without arguments", candidate(`{"functionCall":{"name":"now"}}`), false, 1, format.StopEnd, false},
		{"text and call in one part", candidate(`{"text":"a","functionCall":{"name":"pay","args":{}}}`), false, 1, format.StopEnd, false},
		{"an image", candidate(`{"inlineData":{"mimeType":"image/png","data":"AA"}}`), false, 0, format.StopEnd, false},
		{"new member of a part", candidate(`{"text":"a","confidence":0.5}`), false, 0, format.StopEnd, false},
		{"code that the provider has run", candidate(`{"executableCode":{"code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK"}}`), false, 0, format.StopEnd, true},
		{"a search", `{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["q"]}}]}`, false, 0, format.StopEnd, true},
		{"a blocked request", `{"promptFeedback":{"blockReason":"SAFETY"}}`, false, 0, format.StopFilter, false},
		{"blocked", `{"candidates":[{"finishReason":"PROHIBITED_CONTENT","index":0}]}`, false, 0, format.StopFilter, false},
		{"a broken call", `{"candidates":[{"content":{},"finishReason":"MALFORMED_FUNCTION_CALL"}]}`, false, 0, format.StopOther, false},
		{"the other spelling", candidate(`{"function_call":{"name":"pay","args":{}}}`), true, 0, format.StopEnd, false},
		{"another case", candidate(`{"functioncall":{"name":"pay"}}`), true, 0, format.StopEnd, false},
		{"a new kind of call", candidate(`{"shellCall":{"command":"rm"}}`), true, 0, format.StopEnd, false},
		{"arguments in pieces", candidate(`{"functionCall":{"name":"pay","partialArgs":[{"jsonPath":"$.to","stringValue":"A"}],"willContinue":true}}`), true, 1, format.StopEnd, false},
		{"two answers", `{"candidates":[{"content":{"parts":[{"text":"a"}]}},{"content":{"parts":[{"text":"b"}]}}]}`, true, 0, "", false},
		{"a part that is a string", candidate(`"pay"`), true, 0, format.StopEnd, false},
	} {
		a := format.Of(format.Gemini).Read(format.Parse([]byte(tt.src)))
		if got := a.Odd&format.OddCall != 0; got != tt.call || len(a.Calls()) != tt.calls || a.Stop != tt.stop || a.Fetched != tt.fetched {
			t.Errorf("%s: %+v", tt.name, a)
		}
	}
	if e := format.Of(format.Gemini).Read(format.Parse([]byte(`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}`))).Failed(); !e.Exists() {
		t.Error("an error is not one")
	}
}

// TestGeminiRequest reads a request in the spelling of Google's pages: with underscores, and
// with one value in the place of a list.
func TestGeminiRequest(t *testing.T) {
	f := format.Of(format.Gemini)
	src := `{"system_instruction":{"parts":{"text":"Be brief."}},"contents":[{"parts":{"text":"Pay."}},
		{"role":"model","parts":[{"text":"Hm.","thought":true},{"function_call":{"name":"read","args":{"f":1}},"thought_signature":"A"}]},
		{"role":"user","parts":[{"function_response":{"name":"read","response":{"result":"pay ann"}}}]},
		{"role":"model","parts":[{"functionCall":{"id":"7","name":"read","args":{}}}]},
		{"role":"user","parts":[{"functionResponse":{"id":"7","name":"read","response":{"payee":"eve","sum":9}}}]}],
		"tools":[{"function_declarations":[{"name":"read","description":"reads"}]},{"google_search":{}}],
		"generation_config":{"max_output_tokens":50}}`
	lines, ok := said(f, []byte(src))
	want := "tool   read|system Be brief.|user Pay.|call  function read read {\"f\":1}|agent A|result  function read|output pay ann|call  7 read {}|result  7|output"
	if got := strings.Join(lines, "|"); !ok || got != want {
		t.Errorf("%v\n%s, want\n%s", ok, got, want)
	}
	if a := f.Asks(format.Parse([]byte(src))); !reflect.DeepEqual(a, format.Asked{Bound: 50, InPath: true}) {
		t.Errorf("%+v", a)
	}
	for _, wrong := range []string{`{"contents":[],"generationConfig":{"candidateCount":2}}`, `{"contents":[],"generation_config":{},"generationConfig":{}}`, `{"Contents":[]}`,
		`{"generationConfig":{"maxOutputTokens":1,"max_output_tokens":2}}`} {
		if a := f.Asks(format.Parse([]byte(wrong))); a.Wrong == "" {
			t.Errorf("%s can be inspected", wrong)
		}
	}
}
