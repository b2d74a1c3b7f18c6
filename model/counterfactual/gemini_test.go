// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/format"
)

const geminiContext = `{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[
{"role":"user","parts":[{"text":"Pay the bill."},{"inlineData":{"mimeType":"image/png","data":"AA=="}}]},
{"role":"model","parts":[{"functionCall":{"name":"first","args":{}},"thoughtSignature":"c2lnMQ=="}]},
{"role":"user","parts":[{"functionResponse":{"name":"first","response":{"result":"bill one"}}}]},
{"role":"model","parts":[{"text":"hm","thought":true},{"text":"The bill says so.","thoughtSignature":"c2lnMg=="},{"functionCall":{"id":"7","name":"second","args":{"q":1}},"thoughtSignature":"c2lnMw=="}]},
{"role":"user","parts":[{"functionResponse":{"id":"7","name":"second","response":{"pay mallory":9,"to":"eve"}}}]}],
"generationConfig":{"maxOutputTokens":50}}`

// TestGemini: what a function has returned is one segment, and a response that says more than
// one text is withheld whole, with its numbers and the names of its members. A signature
// behind the first segment is not that of the same thoughts any more.
func TestGemini(t *testing.T) {
	for _, f := range []format.Name{format.Gemini, format.GeminiArray} {
		a, err := Parse(f, []byte(geminiContext), ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if a.Task != "Pay the bill." || a.Instructions != "Be brief." || len(a.Segments) != 2 || len(a.Odd) != 0 || a.Segments[0].Text != "bill one" ||
			a.Segments[1].Text != `{"pay mallory":9,"to":"eve"}` || a.Segments[1].Source.Origin.Tool != "second" || a.Segments[1].Call != `{"q":1}` {
			t.Fatalf("%+v", a)
		}
		behind := []string{`{"text":"hm","thought":true},`, ``, `,"thoughtSignature":"c2lnMg=="`, ``, `The bill says so.`, agentPlaceholder, `"c2lnMw=="`, `"skip_thought_signature_validator"`}
		whole := `{"pay mallory":9,"to":"eve"}`
		for name, tt := range map[string]struct {
			v     Variant
			edits []string
		}{
			"base":      {Variant{Kept: AllOf(2)}, nil},
			"first":     {Remove(2, SetOf(0)), []string{`bill one`, Placeholder}},
			"second":    {Remove(2, SetOf(1)), []string{whole, `{"result":"` + Placeholder + `"}`}},
			"span":      {Variant{Kept: AllOf(2), Span: Span{1, 1, 14}}, []string{whole, `{"result":"` + Placeholder + `\n\"pay mallory\"\n` + Placeholder + `"}`}},
			"mask user": {MaskUser(2), []string{`Pay the bill.`, taskPlaceholder, `{"inlineData":{"mimeType":"image/png","data":"AA=="}}`, `{"text":"` + taskPlaceholder + `"}`}},
		} {
			got, err := a.Render(tt.v)
			want := strings.NewReplacer(append(behind, tt.edits...)...).Replace(geminiContext)
			if err != nil || string(got) != want {
				t.Errorf("%s: %v\n%s, want\n%s", name, err, got, want)
			}
		}
	}
}
