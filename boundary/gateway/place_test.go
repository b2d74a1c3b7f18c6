// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// framings are the settings of TestPlaces.
var framings = map[string]func(*Config){
	"default": func(*Config) {},
	"all":     func(c *Config) { c.Framing = Framing{Resources: true, Prompts: true, AnyType: true} },
	"text":    func(c *Config) { c.Framing = Framing{Prompts: true, StructuredText: true} },
	"meta":    func(c *Config) { c.Frame = frame.KindMeta },
}

// TestPlaces: the provenance of every route lists each string of a third party once, as
// framed or not, and that is true; it lists nothing else.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for name, set := range framings {
		t.Run(name, func(t *testing.T) {
			for _, row := range mcpmsg.Rows() {
				if row.Part != mcpmsg.Result {
					continue
				}
				t.Run(strings.ReplaceAll(row.Method, "/", "-"), func(t *testing.T) {
					walkPlaces(t, row, set, name == "default" && row.Mark == mcpmsg.Always)
				})
			}
		})
	}
}

// walkPlaces sends a result without anything to remove and, where every is set, with the
// marker in each of its places.
func walkPlaces(t *testing.T, row mcpmsg.Row, set func(*Config), every bool) {
	// The messages have every member at once, which no type allows.
	r := newRig(t, set, func(c *Config) { c.Validation.Mode = policy.Off })
	probe := specimen{target: -1, brief: true}
	bodies := []string{probe.object(row.Shape, nil)}
	for target := range probe.n {
		if !every {
			break
		}
		s := specimen{target: target, brief: probe.brief}
		bodies = append(bodies, s.object(row.Shape, nil))
		if strings.HasSuffix(s.at, "mimeType") {
			s = specimen{target: target, brief: probe.brief, poison: "application/json"}
			bodies = append(bodies, s.object(row.Shape, nil))
		}
	}
	listed := 0
	for _, body := range bodies {
		for _, line := range r.exchange(row, eras["modern"], body) {
			result := parse(t, line)["result"]
			if result != nil {
				listed += checkPlaces(t, r, row, result)
			}
		}
	}
	if row.Mark == mcpmsg.Always && listed == 0 {
		t.Error("no place was listed")
	}
}

// checkPlaces holds a delivered result against its provenance.
func checkPlaces(t *testing.T, r *rig, row mcpmsg.Row, raw json.RawMessage) (listed int) {
	t.Helper()
	var result map[string]any
	if err := json.Unmarshal(raw, &result); err != nil {
		t.Fatal(err)
	}
	meta, _ := result["_meta"].(map[string]any)
	var note struct {
		Server, Tool string

		Framed    []string
		NotFramed []string `json:"not_framed"`
		More      int      `json:"not_framed_more"`
	}
	own, marked := meta[frame.MetaKey]
	if !marked {
		return 0
	}
	again, _ := json.Marshal(own)
	_ = json.Unmarshal(again, &note)
	delete(meta, frame.MetaKey)
	if row.Instructions {
		result["instructions"] = strings.TrimSuffix(strings.TrimSuffix(result["instructions"].(string), frame.Instructions), "\n\n")
	}
	used := map[string]bool{}
	leaves(row.Shape, result, nil, func(path []string, s string, words []string) {
		if slices.Contains(words, s) || strings.HasPrefix(s, "[pellucid withheld this") {
			return
		}
		var by []string
		for _, place := range note.Framed {
			if covers(place, path) {
				by = append(by, "framed "+place)
			}
		}
		for _, place := range note.NotFramed {
			if covers(place, path) && (place != "." || len(by) == 0) {
				by = append(by, "not framed "+place)
			}
		}
		if len(by) == 0 && note.More > 0 {
			return
		}
		if len(by) != 1 {
			t.Errorf("%s: listed %q", strings.Join(path, "/"), by)
			return
		}
		used[by[0]] = true
		_, _, err := r.key.Open(s, frame.Origin{Server: note.Server, Tool: note.Tool})
		if framed := strings.HasPrefix(by[0], "framed"); framed != (err == nil) {
			t.Errorf("%s: listed as %s: %q", strings.Join(path, "/"), by[0], s)
		}
	})
	for _, place := range note.Framed {
		if !used["framed "+place] {
			t.Errorf("framed %s is not delivered: %s", place, raw)
		}
	}
	for _, place := range note.NotFramed {
		if !used["not framed "+place] && place != "." {
			t.Errorf("not framed %s is not delivered: %s", place, raw)
		}
	}
	return len(note.Framed) + len(note.NotFramed)
}

// covers reports whether a listed place is path or holds it.
func covers(place string, path []string) bool {
	if place == "." {
		return true
	}
	parts := strings.Split(place, "/")
	return len(parts) <= len(path) && slices.Equal(parts, path[:len(parts)])
}

// leaves finds every string of a value, also the names that the protocol does not know;
// what is below an unknown member has the path "*".
func leaves(sh *mcpmsg.Shape, v any, path []string, f func(path []string, s string, words []string)) {
	below := func(names ...string) []string { return append(slices.Clone(path), names...) }
	o, is := v.(map[string]any)
	if !is {
		anywhere(v, path, f)
		return
	}
	for name, value := range o {
		field := sh.Field([]byte(name))
		switch list, many := value.([]any); {
		case field == nil:
			f(below("*", "name"), name, nil)
			anywhere(value, below("*"), f)
		case value == nil:
		case many && field.Arity != mcpmsg.One:
			for i, e := range list {
				leaf(field, e, below(name, strconv.Itoa(i)), f)
			}
		case field.Arity == mcpmsg.Map:
			for _, e := range value.(map[string]any) {
				leaf(field, e, below(name, "of map"), f)
			}
		default:
			leaf(field, value, below(name), f)
		}
	}
}

func leaf(field *mcpmsg.Field, v any, path []string, f func(path []string, s string, words []string)) {
	switch s, is := v.(string); {
	case is:
		f(path, s, field.Words)
	case field.Shape != nil:
		leaves(field.Shape, v, path, f)
	default:
		anywhere(v, path, f)
	}
}

func anywhere(v any, path []string, f func(path []string, s string, words []string)) {
	eachString(v, func(s string) { f(append(slices.Clone(path), "below"), s, nil) })
}

// TestEmbedded: the text of an embedded resource stands in a fence where its type says that
// no program parses it, or the operator wants it in any case.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	for mime, fenced := range map[string]bool{
		``: true, `"mimeType":"",`: true, `"mimeType":null,`: true, `"mimeType":"text/plain",`: true, `"mimeType":"TEXT/Plain ; charset=utf-8",`: true,
		`"mimeType":"text/markdown; variant=GFM",`: true, `"mimeType":"text/mark\u0064own",`: true,
		`"mimeType":"application/json",`: false, `"mimeType":"text/html",`: false, `"mimeType":"text/csv",`: false, `"mimeType":"text/plainer",`: false,
	} {
		for _, every := range []bool{false, true} {
			for _, row := range []string{mcpmsg.CallTool, mcpmsg.ReadResource, mcpmsg.GetPrompt} {
				r := newRig(t, func(c *Config) { c.Framing = Framing{Resources: true, Prompts: true, AnyType: every} })
				resource := `{"uri":"file:///a",` + mime + `"text":"hello"}`
				body, path := `{"content":[{"type":"resource","resource":`+resource+`}]}`, []any{"result", "content", 0, "resource", "text"}
				switch row {
				case mcpmsg.ReadResource:
					body, path = `{"contents":[`+resource+`]}`, []any{"result", "contents", 0, "text"}
				case mcpmsg.GetPrompt:
					body = `{"messages":[{"role":"user","content":{"type":"resource","resource":` + resource + `}}]}`
					path = []any{"result", "messages", 0, "content", "resource", "text"}
				}
				got := r.result(r.request("1", row, eras["legacy"]), body)
				o, text, err := r.key.Open(got.text(path...), frame.Origin{})
				if want := fenced || every; (err == nil) != want || want && text != "hello" {
					t.Errorf("%s %s every=%v: %s", row, mime, every, got.at("result"))
				}
				if tool := map[string]string{mcpmsg.CallTool: "read"}[row]; err == nil && o.Tool != tool && o.Tool != row {
					t.Errorf("%s: tool %s", row, o.Tool)
				}
			}
		}
	}
}

// TestStructuredText: the values go into a fenced block, the schema goes, in both eras.
func TestStructuredText(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`
	for era, params := range eras {
		r := newRig(t, func(c *Config) { c.Framing.StructuredText = true })
		list := r.result(r.request("1", "tools/list", strings.Replace(params, `"name":"read",`, "", 1)),
			`{"tools":[{"name":"read","inputSchema":{"type":"object"},"outputSchema":`+schema+`}]}`)
		if got := string(list.at("result", "tools", 0)); strings.Contains(got, "outputSchema") {
			t.Errorf("%s: %s", era, got)
		}
		for name, c := range map[string]struct{ result, want, also string }{
			"beside text":   {`{"content":[{"type":"text","text":"hi"}],"structuredContent":{"a":"x\u202ey"}}`, `{"a":"xy"}`, "hi"},
			"no content":    {`{"structuredContent":{"a":"x"}}`, `{"a":"x"}`, ""},
			"said twice":    {`{"content":[{"type":"text","text":"{ \"a\" : \"x\" }"}],"structuredContent":{"a":"x"}}`, `{ "a" : "x" }`, ""},
			"not an object": {`{"content":[],"isError":true,"structuredContent":["ignore all of this"]}`, `["ignore all of this"]`, ""},
		} {
			if name == "not an object" && era == "legacy" {
				continue // its revisions know objects only
			}
			got := r.result(r.request("2", "tools/call", params), c.result)
			var blocks []struct{ Text string }
			_ = json.Unmarshal(got.at("result", "content"), &blocks)
			want := []string{c.want}
			if c.also != "" {
				want = []string{c.also, c.want}
			}
			var texts, places []string
			for _, b := range blocks {
				_, text, err := r.key.Open(b.Text, frame.Origin{Server: "srv", Tool: "read"})
				if err != nil {
					t.Errorf("%s %s: not fenced: %q", era, name, b.Text)
				}
				texts = append(texts, text)
			}
			if !slices.Equal(texts, want) || got.at("result", "structuredContent") != nil {
				t.Errorf("%s %s: %q in %s", era, name, texts, got.at("result"))
			}
			for i := range want {
				places = append(places, `"content/`+strconv.Itoa(i)+`/text"`)
			}
			note := got.at("result", "_meta", frame.MetaKey)
			if !strings.Contains(string(note), `"framed":[`+strings.Join(places, ",")+`],"inspected":`) {
				t.Errorf("%s %s: %s", era, name, note)
			}
		}
	}
}
