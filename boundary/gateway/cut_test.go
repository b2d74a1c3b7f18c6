// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/text/frame"
)

// TestCut: a text beyond the ceiling says how much of it is left, wherever it stands; so do
// the log and the provenance.
func TestCut(t *testing.T) {
	t.Parallel()
	const long = "0123456789abcdefghijklmnop" // 26 characters, of which 17 and a mark fit into 20
	const line, mark = "\n[cut by Pellucid: 17 of 26 bytes]", "0123456789abcdefg\u2026"
	encode := base64.StdEncoding.EncodeToString
	document := `{\"a\":\"` + long + `\"}`
	for name, c := range map[string]struct {
		adjust func(*Config)
		result string
		at     []any
		want   string // "": the fence of mark
	}{
		"fence": {nil, `{"content":[{"type":"text","text":"` + long + `"}]}`, []any{"content", 0, "text"}, ""},
		"a further fence": {nil, `{"content":[{"type":"text","text":"a"},{"type":"text","text":"` + long + `"}]}`,
			[]any{"content", 1, "text"}, ""},
		"with a look-alike": {nil, `{"content":[{"type":"text","text":"<pellucid-` + long + `"}]}`, []any{"content", 0, "text"}, "&lt;pellucid-0123456\u2026"},
		"profile mcp":       {func(c *Config) { c.Profile = MCP }, `{"content":[{"type":"text","text":"` + long + `"}]}`, []any{"content", 0, "text"}, "0123456789abcdefg..."},
		"frame meta": {func(c *Config) { c.Frame = frame.KindMeta }, `{"content":[{"type":"text","text":"` + long + `"}]}`,
			[]any{"content", 0, "text"}, mark + line},
		"structured content": {nil, `{"content":[],"structuredContent":{"a":["` + long + `"]}}`, []any{"structuredContent", "a", 0}, mark + line},
		"structured text": {func(c *Config) { c.Framing.StructuredText = true }, `{"content":[],"structuredContent":{"a":"` + long[:18] + `"}}`,
			[]any{"content", 0, "text"}, `{"a":"0123456789a` + "\u2026"},
		"a resource of JSON": {nil, `{"content":[{"type":"resource","resource":{"uri":"a:b","mimeType":"application/json","text":"` + document + `"}}]}`,
			[]any{"content", 0, "resource", "text"}, `{"a":"0123456789a` + "\u2026\n[cut by Pellucid: 17 of 34 bytes]"},
		"a blob": {nil, `{"content":[{"type":"resource","resource":{"uri":"a:b","mimeType":"text/plain","blob":"` + encode([]byte(long)) + `"}}]}`,
			[]any{"content", 0, "resource", "blob"}, encode([]byte(mark + line))},
		"a description": {nil, `{"content":[{"type":"resource_link","uri":"a:b","name":"a","description":"` + long + `"}]}`,
			[]any{"content", 0, "description"}, mark + line},
		"an envelope": {func(c *Config) { c.Frame, c.LLM = frame.KindLLM, sonar(t, "m").LLM }, `{"content":[{"type":"text","text":"` + long + `"}]}`,
			[]any{"content", 0, "text"}, "envelope"},
		"an envelope for programs": {func(c *Config) { c.Frame, c.LLM = frame.KindLLM, sonar(t, "m").LLM }, `{"content":[{"type":"text","text":"` + long + `"}]}`,
			[]any{"structuredContent", "response"}, mark + line},
		"whole": {nil, `{"content":[{"type":"text","text":"` + long[:20] + `"}]}`, []any{"content", 0, "text"}, long[:20]},
	} {
		r := newRig(t, func(cfg *Config) {
			cfg.MaxChars = 20
			if c.adjust != nil {
				c.adjust(cfg)
			}
		})
		got := r.result(r.request("1", "tools/call", eras["legacy"]), c.result)
		text := got.text(append([]any{"result"}, c.at...)...)
		want := cmp.Or(c.want, mark)
		for f := range r.key.Scan(text, frame.Origin{Server: "srv", Tool: "read"}) {
			whole := name == "whole"
			if !f.Verified || f.End != len(text) || whole != (f.Cut == (frame.Cut{})) || !whole && !strings.HasSuffix(text, ">\n"+f.Cut.String()) {
				t.Errorf("%s: %+v in %q", name, f, text)
			}
			text = f.Body
		}
		if c.want == "envelope" {
			_, text, _ = strings.Cut(text, ">\n")
			want = mark + "\n</perplexity-sonar-response>" + line
		}
		if text != want {
			t.Errorf("%s: %q, want %q", name, text, want)
		}
		cut := name != "whole"
		if note := string(got.at("result", "_meta", frame.MetaKey)); strings.Contains(note, `"code":"truncated"`) != cut {
			t.Errorf("%s: %s", name, note)
		}
		if log := r.log.String(); strings.Contains(log, "a text of the server was cut") != cut || cut && !(strings.Contains(log, "max_chars") && strings.Contains(log, "tool=read")) {
			t.Errorf("%s: %s", name, log)
		}
	}
}
