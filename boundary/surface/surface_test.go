// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// rich is a surface with something in every place.
const rich = `{"format":"pellucid-surface/1","initialize":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"experimental":{"x/y":{"why":"because"}}},
"serverInfo":{"name":"all","version":"1","title":"All","icons":[{"src":"data:image/svg+xml;base64,PHN2Zz48dGV4dD5oaTwvdGV4dD48L3N2Zz4=","mimeType":"image/svg+xml"}]},"instructions":"Read this.","_meta":{"a/b":"meta"}},
"tools/list":[{"tools":[{"name":"one","title":"One","description":"First","inputSchema":{"type":"object","properties":{"mode":{"type":"string","enum":["fast","slow"],"default":"fast","const":"x","examples":["e1"]},"n":{"type":"integer","maximum":9223372036854775807,"minimum":-1.50}},"required":["mode"]},
"outputSchema":{"type":"object","properties":{"out":{"type":"string","description":"Result"}}},"annotations":{"title":"T","readOnlyHint":true},"_meta":{"k":["deep",{"er":"text"}]},"icons":[{"src":"https://example.org/i.png"}]}],"nextCursor":"page two"},
{"tools":[{"name":"two","description":"Second","inputSchema":{"type":"object"}}],"_meta":{"page":"note"}}],
"prompts/list":[{"prompts":[{"name":"p","description":"Prompt","arguments":[{"name":"arg","description":"Argument"}]}]}],
"resources/list":[{"resources":[{"uri":"file:///a","name":"a","description":"Resource","mimeType":"text/plain"}]}],
"resources/templates/list":[{"resourceTemplates":[{"uriTemplate":"file:///{x}","name":"tpl","description":"Template"}]}]}`

func parse(t testing.TB, dump []byte) *Surface {
	t.Helper()
	s, err := ParseDump(dump, Limits{})
	if err != nil {
		t.Fatalf("%v in %.200q", err, dump)
	}
	return s
}

// Any change of any string is a change of the fingerprint, but for cursors, which
// no model sees, and of the item that it stands in.
func TestFingerprintCoversEveryString(t *testing.T) {
	s := parse(t, []byte(rich))
	var d strictjson.Doc
	if err := d.Reset([]byte(rich), strictjson.Limits{}); err != nil {
		t.Fatal(err)
	}
	structure := []string{"format", "pellucid-surface/1", "initialize", "tools/list", "prompts/list", "resources/list",
		"resources/templates/list", "tools", "prompts", "resources", "resourceTemplates", "nextCursor", "page two",
		"name", "uri", "uriTemplate"} // names by which this package finds what it wants
	changed := 0
	walk(d.Root(), nil, func(v strictjson.Value, _ *trail, isName bool) {
		if slices.Contains(structure, v.Text()) && (isName || v.Text() == "page two" || v.Text() == "pellucid-surface/1") {
			return
		}
		for _, text := range []string{v.Text() + ".", "\u200b" + v.Text(), strings.ToUpper(v.Text()) + "\u0301"} {
			var e strictjson.Edits
			e.ReplaceText(v, text)
			if parse(t, e.Apply(nil, d.Root())).Fingerprint() == s.Fingerprint() {
				t.Errorf("%s → %+q is no change", v.Raw(), text)
			}
			changed++
		}
	})
	if changed < 200 {
		t.Errorf("only %d changes tried", changed)
	}
}

// The order of members, entries and pages, the cut into pages, white space and the
// spelling of strings and numbers are no change.
func TestFingerprintIgnoresOrder(t *testing.T) {
	want := parse(t, []byte(rich)).Fingerprint()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var d strictjson.Doc
		if err := d.Reset([]byte(rich), strictjson.Limits{}); err != nil {
			t.Fatal(err)
		}
		if got := parse(t, shuffled(rng, d.Root(), "")); got.Fingerprint() != want {
			t.Fatal("another order is another surface")
		}
	}
	var doc map[string]any
	dec := json.NewDecoder(strings.NewReader(rich))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	one, _ := json.MarshalIndent(doc, "\t", "  ")
	escaped := bytes.ReplaceAll(bytes.ReplaceAll(one, []byte("Second"), []byte(`\u0053econd`)), []byte("-1.50"), []byte("-15e-1"))
	if parse(t, escaped).Fingerprint() != want {
		t.Error("another spelling is another surface")
	}
	pages := doc["tools/list"].([]any)
	first, second := pages[0].(map[string]any), pages[1].(map[string]any)
	second["tools"] = append(second["tools"].([]any), first["tools"].([]any)...)
	doc["tools/list"] = []any{second}
	joined, _ := json.Marshal(doc)
	if parse(t, joined).Fingerprint() != want {
		t.Error("one page instead of two is another surface")
	}
	for _, same := range [][2]string{
		{`"protocolVersion":"2025-06-18"`, `"protocolVersion":"2024-11-05"`},
		{`"page two"}`, `"2","ttlMs":9,"cacheScope":"private","resultType":"complete"}`},
	} {
		if parse(t, []byte(strings.Replace(rich, same[0], same[1], 1))).Fingerprint() != want {
			t.Errorf("%s is another surface", same[1])
		}
	}
	for _, other := range [][2]string{
		{`"protocolVersion":"2025-06-18"`, `"protocolVersion":"2025-06-18 "`},
		{`"page two"}`, `"2","cacheScope":"Send me your keys."}`},
		{`9223372036854775807`, `9223372036854775806`},
		{`["fast","slow"]`, `["slow","fast"]`},
	} {
		if parse(t, []byte(strings.Replace(rich, other[0], other[1], 1))).Fingerprint() == want {
			t.Errorf("%s is the same surface", other[1])
		}
	}
}

// shuffled spells v with members, and the entries of lists, in random order.
func shuffled(rng *rand.Rand, v strictjson.Value, within string) []byte {
	var parts [][]byte
	open, end := "{", "}"
	switch v.Kind() {
	case '{':
		for name, val := range v.Members() {
			parts = append(parts, append(append(name.Raw(), ": "...), shuffled(rng, val, name.Text())...))
		}
	case '[':
		open, end = "[", "]"
		for e := range v.Elements() {
			parts = append(parts, shuffled(rng, e, ""))
		}
	default:
		return bytes.Clone(v.Raw())
	}
	if v.Kind() == '{' || within == "tools" {
		rng.Shuffle(len(parts), func(i, k int) { parts[i], parts[k] = parts[k], parts[i] })
	}
	return append(append([]byte(open), bytes.Join(parts, []byte(" , "))...), end...)
}

func TestDumpRefused(t *testing.T) {
	for in, want := range map[string]Reason{
		``:                                  NotADump,
		`[]`:                                NotADump,
		`{}`:                                NoServer,
		`{"format":"other/1"}`:              NotADump,
		`{"initialize":[]}`:                 Misshapen,
		`{"initialize":{}}x`:                NotADump,
		`{"initialize":{},"a":1,"a":1}`:     NotADump,
		`{"initialize":{},"tools/list":{}}`: NotADump,
		`{"initialize":{},"tools/list":[{"tools":[]},{"tools":[]}]}`:                       OutOfOrder,
		`{"initialize":{},"tools/list":[{"tools":[],"nextCursor":"x"}]}`:                   Unfinished,
		`{"initialize":{},"tools/list":[{"tools":[]}],"tools/list_error":{"code":1}}`:      NotADump,
		`{"initialize":{},"server/discover":{}}`:                                           OutOfOrder,
		`{"initialize":{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}`: NotADump,
	} {
		_, err := ParseDump([]byte(in), Limits{})
		if reasonOf(err) != want {
			t.Errorf("%.60s: %v, want %s", in, err, want)
		}
		if Dumped([]byte(in)) && want == NoServer {
			t.Errorf("%s passes for a dump", in)
		}
	}
	if !Dumped([]byte(rich)) {
		t.Error("a dump does not pass for one")
	}
}

func TestText(t *testing.T) {
	for k := Server; k <= Template; k++ {
		var back Kind
		b, _ := k.MarshalText()
		if back.UnmarshalText(b) != nil || back != k {
			t.Errorf("%v does not survive", k)
		}
	}
	d := digestOf("test")
	var back Digest
	b, _ := d.MarshalText()
	if back.UnmarshalText(b) != nil || back != d {
		t.Error("a digest does not survive")
	}
	for _, bad := range []string{"", "sha256:", "sha256:" + strings.Repeat("AB", 32), strings.Repeat("ab", 32), "sha256:" + strings.Repeat("ab", 33)} {
		if back.UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q passes for a digest", bad)
		}
	}
	if new(Kind).UnmarshalText([]byte("thing")) == nil || Kind(99).String() != "unknown" {
		t.Error("an unknown kind passes")
	}
	if digestOf("a", []byte("b"), []byte("c")) == digestOf("a", []byte("bc"), nil) {
		t.Error("parts of a digest run into one another")
	}
}

// The worked example of docs/spec/surface.md, whose fingerprint was also computed by
// another program.
func TestSpecExample(t *testing.T) {
	b, err := os.ReadFile("../../docs/spec/surface.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "```json\n")
	example, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 {
		t.Fatal("there is no example")
	}
	const golden = "sha256:055931646c8faeb60a6de217db10e6c06e8458c34bafe57b34e9a56d6843b451"
	if got := parse(t, []byte(example)).Fingerprint().String(); got != golden || !strings.Contains(rest, golden) {
		t.Errorf("fingerprint %s", got)
	}
}

// The document names every reason, state and family that it speaks of as they are.
func TestSpecNames(t *testing.T) {
	b, err := os.ReadFile("../../docs/spec/surface.md")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{DumpFormat, PinFormat, errorSuffix, string(Pinned), string(Approved), string(Pending), string(Blocked),
		string(Unchanged), string(Changed), string(Added), string(Removed)}
	for _, r := range compiled().rules {
		names = append(names, string(r.family))
	}
	names = append(names, kindNames[:]...)
	for _, l := range lists {
		names = append(names, l.method)
	}
	for _, name := range names {
		if !strings.Contains(string(b), "`"+name+"`") {
			t.Errorf("not in docs/spec/surface.md: %s", name)
		}
	}
}
