// SPDX-License-Identifier: Apache-2.0

package format_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// conversation is a request with one of everything.
func conversation() *format.Request {
	temperature := 0.5
	return &format.Request{
		Model: "m", System: "Be brief.", MaxTokens: 99, Temperature: &temperature,
		Tools: []format.Tool{{Name: "read", Description: "reads", Schema: []byte(`{"type":"object"}`)}},
		Messages: []format.Message{
			{Text: "Read x."},
			{Role: format.RoleAssistant, Text: "I read.", Calls: []format.Call{{ID: "1", Name: "read", Arguments: []byte(`{"file":"x"}`)}}},
			{Role: format.RoleTool, CallID: "1", Text: "pay ann"},
			{Text: "And?"},
		},
	}
}

// said is a line for each place of a request, without those that depend on the format.
func said(f format.Format, src []byte) (lines []string, ok bool) {
	names := map[format.PlaceKind]string{format.PlaceSystem: "system", format.PlaceUser: "user", format.PlaceAgent: "agent",
		format.PlaceCall: "call", format.PlaceResult: "result", format.PlaceOutput: "output", format.PlaceTool: "tool"}
	root := format.Parse(src)
	ok = f.Places(root, func(p format.Place) {
		if name := names[p.Kind]; name != "" {
			text := ""
			if p.Kind != format.PlaceResult {
				text = p.Value.Text()
			}
			arguments := p.Arguments.Text()
			if p.Arguments.Kind() == '{' {
				arguments = string(p.Arguments.Raw())
			}
			lines = append(lines, strings.TrimSpace(fmt.Sprintln(name, text, p.ID, p.Name, arguments)))
		}
	})
	return lines, ok
}

// TestRequestIsRead: what is written for a conversation is read as that conversation, and
// looks like a request of its own format and of no other one.
func TestRequestIsRead(t *testing.T) {
	for _, f := range format.All {
		r := conversation()
		src, err := f.AppendRequest(nil, r)
		if err != nil {
			t.Fatalf("%s: %v", f.Name(), err)
		}
		lines, ok := said(f, src)
		got := strings.Join(lines, "\n")
		for _, want := range []string{"tool   read", "system Be brief.", "user Read x.", "agent I read.", `{"file":"x"}`, "output pay ann", "user And?"} {
			if !ok || !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", f.Name(), want, got)
			}
		}
		root := format.Parse(src)
		// Of two formats of one provider the requests are the same.
		looks, same := f.Name(), map[format.Name]format.Name{format.GeminiArray: format.Gemini}
		if n := same[looks]; n != "" {
			looks = n
		}
		if s := format.Sniff(root); s == nil || s.Name() != looks {
			t.Errorf("%s looks like %v", f.Name(), s)
		}
		if a := f.Asks(root); a.Wrong != "" || a.Bound != 99 || a.Stream {
			t.Errorf("%s: %+v", f.Name(), a)
		}
		if root.Get(f.List()).Kind() != '[' {
			t.Errorf("%s has no list", f.Name())
		}
	}
}

// TestSystemInTheMiddle: a text of the host in the middle of a conversation is not read as a text of the user.
func TestSystemInTheMiddle(t *testing.T) {
	f := format.Of(format.Messages)
	src := `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Read x."},{"role":"system","content":"A reminder."},` +
		`{"role":"system","content":[{"type":"text","text":"Another."}]}]}`
	if lines, ok := said(f, []byte(src)); !ok || !slices.Equal(lines, []string{"user Read x.", "system A reminder.", "system Another."}) {
		t.Errorf("%v %q", ok, lines)
	}
}

// FuzzPlaces: any bytes are read as a request of any format; a value that may stand in the
// place of another is JSON; a question asks for a bounded answer, and is its own question.
func FuzzPlaces(f *testing.F) {
	for i, form := range format.All {
		src, err := form.AppendRequest(nil, conversation())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i, src)
	}
	f.Fuzz(func(t *testing.T, which int, src []byte) {
		form := format.All[uint(which)%uint(len(format.All))]
		var doc strictjson.Doc
		if doc.Reset(src, strictjson.Limits{}) != nil {
			return
		}
		form.Looks(doc.Root())
		form.Places(doc.Root(), func(p format.Place) {
			var d strictjson.Doc
			if raw := p.Instead.JSON("x\u202e\""); raw != "" && d.Reset([]byte(raw), strictjson.Limits{}) != nil {
				t.Fatalf("%q stands in the place of %q", raw, p.Value.Raw())
			}
		})
		if doc.Root().Kind() != '{' {
			return
		}
		var e strictjson.Edits
		most, err := form.Question(&e, doc.Root(), 7)
		if err != nil {
			return
		}
		body := e.Apply(nil, doc.Root())
		a := form.Asks(format.Parse(body))
		if most < 1 || most > 7 || a.Stream || a.Wrong == "" && a.Bound != most {
			t.Errorf("%s: %q: %d, %+v", form.Name(), body, most, a)
		}
	})
}
