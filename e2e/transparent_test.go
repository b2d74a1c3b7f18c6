// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/text/frame"
)

// A reference server and what it can be asked without being changed.
type reference struct {
	name string
	// server returns its command; the mark finds its processes.
	server func(t testing.TB, mark string) []string
	// asked are requests whose answers hold nothing that changes from one run to
	// the next: their bytes must come through.
	asked [][2]string
	// read is the same for requests whose answers carry content: it comes
	// through byte for byte, with a receipt in _meta behind it.
	read [][2]string
	// tools are calls whose text comes through fenced, and else as it was.
	tools [][2]string
}

var references = []reference{{
	name:   "everything",
	server: func(t testing.TB, mark string) []string { return npmServer(t, "everything", "stdio", mark) },
	asked: [][2]string{
		{"tools/list", ""},
		{"tools/list", `{}`},
		{"resources/list", ""},
		{"resources/templates/list", ""},
		{"prompts/list", ""},
		{"ping", ""},
		{"logging/setLevel", `{"level":"error"}`},
		{"resources/read", `{"uri":"demo://no/such/thing"}`},
		{"prompts/get", `{"name":"no-such-prompt"}`},
		{"prompts/get", `{"name":"args-prompt"}`},
		{"tasks/list", ""},
		{"no/such/method", `{"a":[1,2.50,1e3,12345678901234567890]}`},
	},
	read: [][2]string{
		{"resources/read", `{"uri":"demo://resource/static/document/architecture.md"}`},
		{"resources/read", `{"uri":"demo://resource/static/document/features.md"}`},
		{"resources/read", `{"uri":"demo://resource/static/document/how-it-works.md"}`},
		{"resources/read", `{"uri":"demo://resource/static/document/structure.md"}`},
		{"prompts/get", `{"name":"simple-prompt"}`},
		{"prompts/get", `{"name":"args-prompt","arguments":{"city":"Zürich","state":"ZH"}}`},
		{"prompts/get", `{"name":"completable-prompt","arguments":{"department":"Engineering","name":"Alice"}}`},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"department","value":"E"}}`},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"name","value":"A"},"context":{"arguments":{"department":"Engineering"}}}`},
		{"completion/complete", `{"ref":{"type":"ref/resource","uri":"demo://resource/dynamic/text/{resourceId}"},"argument":{"name":"resourceId","value":"1"}}`},
	},
	tools: [][2]string{
		{"echo", `{"message":"hello"}`},
		{"echo", `{"message":"Привет, мир… ½ ™ ｆｕｌｌ\u3000幅 e\u0301 👩\u200d👩\u200d👧 می\u200cخواهم"}`},
		{"echo", `{"message":""}`},
		{"echo", `{"wrong":1}`},
		{"no-such-tool", `{}`},
		{"get-annotated-message", `{"messageType":"error"}`},
		{"get-annotated-message", `{"messageType":"success","includeImage":true}`},
		{"get-annotated-message", `{"messageType":"debug"}`},
		{"get-structured-content", `{"location":"New York"}`},
		{"get-structured-content", `{"location":"Chicago"}`},
		{"get-sum", `{"a":0.1,"b":0.2}`},
		{"get-sum", `{"a":1e300,"b":9007199254740993}`},
		{"get-tiny-image", `{}`},
		{"get-resource-links", `{"count":10}`},
		{"get-resource-reference", `{"resourceType":"Text","resourceId":-1}`},
		{"gzip-file-as-resource", `{"name":"a.gz","data":"data:text/plain,hello","outputType":"resource"}`},
		{"gzip-file-as-resource", `{"name":"b.gz","data":"data:text/plain,hello","outputType":"resourceLink"}`},
	},
}, {
	name: "filesystem",
	server: func(t testing.TB, mark string) []string {
		dir := filepath.Join(scratch, mark)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return npmServer(t, "filesystem", dir)
	},
	asked: [][2]string{
		{"tools/list", ""},
		{"resources/list", ""},
		{"prompts/list", ""},
		{"ping", ""},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"y","value":"z"}}`},
	},
	tools: [][2]string{
		{"read_text_file", `{"path":"/no/such/place"}`},
		{"read_text_file", `{}`},
	},
}, {
	name: "memory",
	server: func(t testing.TB, mark string) []string {
		return withMemory(t.TempDir(), npmServer(t, "memory", mark))
	},
	asked: [][2]string{
		{"tools/list", ""},
		{"resources/list", ""},
		{"resources/templates/list", ""},
		{"resources/subscribe", `{"uri":"memory://knowledge-graph"}`},
		{"prompts/list", ""},
	},
	read: [][2]string{
		{"resources/read", `{"uri":"memory://knowledge-graph"}`},
	},
	tools: [][2]string{
		{"read_graph", `{}`},
		{"create_entities", `{"entities":[{"name":"Достоевский","entityType":"писатель","observations":["Родился в Москве — 1821 год","夏目漱石と同じく…"]},{"name":"夏目漱石","entityType":"作家","observations":["『吾輩は猫である』を書いた。","ＡＢＣ\u3000全角"]}]}`},
		{"create_relations", `{"relations":[{"from":"夏目漱石","to":"Достоевский","relationType":"読んだ"}]}`},
		{"add_observations", `{"observations":[{"entityName":"Достоевский","contents":["«Идиот»"]}]}`},
		{"read_graph", `{}`},
		{"search_nodes", `{"query":"夏目"}`},
		{"search_nodes", `{"query":"МОСКВЕ"}`},
		{"open_nodes", `{"names":["Достоевский","nobody"]}`},
		{"add_observations", `{"observations":[{"entityName":"nobody","contents":["x"]}]}`},
		{"delete_entities", `{"entityNames":["夏目漱石"]}`},
		{"read_graph", `{}`},
	},
}}

// TestTransparent asks each server the same questions, directly and through
// Pellucid, and compares bytes: what is not tool text is as the server sent it.
func TestTransparent(t *testing.T) {
	for _, ref := range references {
		t.Run(ref.name, func(t *testing.T) {
			t.Parallel()
			in, m := newInstall(t), mark()
			direct := start(t, bare(ref.server(t, m)...))
			wrapped := start(t, in.wrap(ref.name, ref.server(t, m)...))

			handshake(t, direct.initialize(), wrapped.initialize())
			ref.compare(t, in, direct, wrapped)
			if len(wrapped.other) > 0 {
				t.Errorf("lines nobody asked for: %+q", wrapped.other)
			}
			if code := wrapped.exit(); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			direct.cmd.Process.Kill() // not every reference server ends with its input
			direct.code()
			gone(t, m)
		})
	}
}

// compare asks both sessions everything.
func (ref reference) compare(t *testing.T, in *install, direct, wrapped *session) {
	t.Helper()
	for _, q := range ref.asked {
		sameBytes(t, q, direct.call(q[0], q[1]).outcome(), wrapped.call(q[0], q[1]).outcome())
	}
	for _, q := range ref.read {
		sameBytes(t, q, direct.call(q[0], q[1]).outcome(), unmarked(t, wrapped.call(q[0], q[1]).outcome()))
	}
	for _, c := range ref.tools {
		params := `{"name":` + quote(c[0]) + `,"arguments":` + c[1] + `}`
		a, b := direct.call("tools/call", params), wrapped.call("tools/call", params)
		if (a.Error == nil) != (b.Error == nil) {
			t.Fatalf("%s %s:\ndirect  %+q\nwrapped %+q", c[0], c[1], a.outcome(), b.outcome())
		}
		if a.Error == nil {
			in.same(t, c[0]+" "+c[1], a.Result, b.Result, ref.name)
		}
	}
}

// sameBytes compares the outcomes of one question.
func sameBytes(t *testing.T, q [2]string, direct, wrapped string) {
	t.Helper()
	if direct != wrapped {
		t.Errorf("%s %s:\ndirect  %+q\nwrapped %+q", q[0], q[1], cut(direct, wrapped), cut(wrapped, direct))
	}
}

// textReceipt ends the receipt of texts. Two of them name a file `<filename>`, as a tokenizer does.
var textReceipt = regexp.MustCompile(`,"inspected":[1-9][0-9]*(,"findings":\[{"field":"contents/0/text","code":"ambiguous-token","count":1,[^}]*}\])?}}}$`)

// unmarked cuts the receipt off the end of a result that had no _meta.
func unmarked(t *testing.T, outcome string) string {
	t.Helper()
	before, mark, ok := strings.Cut(outcome, `,"_meta":{"`+frame.MetaKey+`":`)
	// Texts alone: all of it was inspected, and no member is empty.
	if !ok || !strings.HasPrefix(mark, `{"untrusted":true,`) || !textReceipt.MatchString(mark) || strings.Contains(mark, `[]`) {
		t.Errorf("no receipt at the end: %+q", outcome)
	}
	return before + "}"
}

// handshake compares two answers of initialize: only the instructions differ,
// and only by the sentence that explains the fence.
func handshake(t *testing.T, direct, wrapped json.RawMessage) {
	t.Helper()
	var a, b map[string]json.RawMessage
	var before, after string
	for _, x := range []struct {
		raw  json.RawMessage
		to   *map[string]json.RawMessage
		text *string
	}{{direct, &a, &before}, {wrapped, &b, &after}} {
		if err := json.Unmarshal(x.raw, x.to); err != nil {
			t.Fatal(err)
		}
		if s, ok := (*x.to)["instructions"]; ok {
			if err := json.Unmarshal(s, x.text); err != nil {
				t.Fatal(err)
			}
		}
		delete(*x.to, "instructions")
	}
	if len(a) != len(b) {
		t.Errorf("initialize: %d members, direct %d", len(b), len(a))
	}
	for name := range a {
		if string(a[name]) != string(b[name]) {
			t.Errorf("initialize: %s: direct %+q, wrapped %+q", name, a[name], b[name])
		}
	}
	if strings.Count(after, frame.Instructions) != 1 || !strings.Contains(after, before) {
		t.Errorf("initialize: instructions %+q", after)
	}
}

// cut shortens a to the place where it departs from b.
func cut(a, b string) string {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	from := max(0, i-60)
	return a[from:min(len(a), from+240)]
}
