// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	configPage   = "../../docs/spec/config.md"
	schemaPage   = "../../docs/config.schema.json"
	schemaID     = "https://raw.githubusercontent.com/pellucid-mcp/pellucid/main/docs/config.schema.json"
	writtenBegin = "<!-- written by 'make docs' -->\n"
	writtenEnd   = "<!-- /written -->\n"
)

// TestDocsConfig compares the tables of docs/spec/config.md, and docs/config.schema.json, with
// what the members are declared as. With PELLUCID_UPDATE_DOCS set it rewrites what is stale, and
// still fails.
func TestDocsConfig(t *testing.T) {
	page, err := os.ReadFile(configPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), writtenBegin)
	_, after, ends := strings.Cut(rest, writtenEnd)
	if !begins || !ends {
		t.Fatalf("%s lacks the line %q or %q", configPage, writtenBegin, writtenEnd)
	}
	for path, want := range map[string]string{
		configPage: before + writtenBegin + memberTables() + writtenEnd + after,
		schemaPage: configSchema(t),
	} {
		old, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if string(old) == want {
			continue
		}
		if os.Getenv("PELLUCID_UPDATE_DOCS") == "" {
			t.Errorf("%s is stale: run make docs", path)
			continue
		}
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s was stale and has been rewritten", path)
	}
}

// memberTables has a table of the file, and one for each object in it.
func memberTables() string {
	var b strings.Builder
	seen := map[string]bool{} // rows, since objects have members in common
	var rows func(section, prefix string, table []member)
	rows = func(section, prefix string, table []member) {
		var inherited []string
		before := ""
		for _, m := range table {
			row := fmt.Sprintf("%s | %s%s |\n", defaultCell(m), m.words+providerCell(section, m.name), changeCell(m.trait))
			key := m.name + "\n" + m.words
			if section != "servers.NAME" {
				key += m.value.kind + row
			}
			if seen[key] {
				inherited = append(inherited, m.name)
				continue
			}
			seen[m.name+"\n"+m.words], seen[key] = true, true
			kind := kindCell(m.value.kind)
			if kind == before && len(kind) > 20 {
				kind = "the same"
			} else {
				before = kind
			}
			fmt.Fprintf(&b, "| `%s%s` | %s | %s", prefix, m.name, kind, row)
			if section != "" && m.value.form != scalar {
				rows(section, prefix+elementName(m)+".", m.value.sample())
			}
		}
		if n := len(inherited); n > 0 && (n < len(table) || section != "servers.NAME") {
			fmt.Fprintf(&b, "| `%s…` | | | as above: `%s` |\n", prefix, strings.Join(inherited, "`, `"))
		}
	}
	section := func(title, name string, table []member) {
		fmt.Fprintf(&b, "\n### Members of %s\n\n| member | value | default | |\n|---|---|---|---|\n", title)
		rows(name, "", table)
	}
	section("the file", "", newRules().members())
	for _, m := range newRules().members() {
		if m.value.form != scalar {
			section("`"+elementName(m)+"`", elementName(m), m.value.sample())
		}
	}
	return b.String() + "\n"
}

// elementName is the name of what an object, list or map holds.
func elementName(m member) string {
	return m.name + map[form]string{listForm: "[]", mapForm: ".NAME"}[m.value.form]
}

// kindCell leaves out bounds, which the schema and the errors say.
func kindCell(s string) string {
	return cell(strings.Replace(longest.ReplaceAllString(s, "$1"), "`true`, `false`", "bool", 1))
}

var longest = regexp.MustCompile("^(list|object|duration|size|integer)(?: of at most [0-9,]+|, [0-9a-zA-Z,]+ to [0-9a-zA-Z,]+)")

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func defaultCell(m member) string {
	switch text := m.usual(); {
	case m.trait&needed != 0:
		return "needed"
	case text != "" && m.name != "version":
		return "`" + cell(text) + "`"
	}
	return ""
}

// providerCell says which providers have a member of a classifier.
func providerCell(path, name string) (out string) {
	for _, m := range new(Classifier).ofProviders() {
		if path != "classifiers.NAME" || m.name != name {
			continue
		}
		for _, of := range []struct{ words, providers string }{{"; needed by ", m.needs}, {"; of ", m.may}} {
			if of.providers != "" {
				out += of.words + "`" + strings.Join(strings.Fields(of.providers), "`, `") + "`"
			}
		}
	}
	return out
}

func changeCell(of trait) string {
	switch {
	case of&restart != 0:
		return " *(restart)*"
	case of&ends != 0:
		return " *(ends sessions)*"
	case of&ofGuard != 0:
		return " *(restart of guard)*"
	}
	return ""
}

func configSchema(t *testing.T) string {
	s := objectSchema(t, newRules().members())
	s["$schema"], s["$id"] = "https://json-schema.org/draft/2020-12/schema", schemaID
	s["title"], s["required"] = "pellucid.yaml", []string{"version"}
	s["description"] = "Configuration of Pellucid. It is described in docs/spec/config.md, and checked further when it is read."
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func objectSchema(t *testing.T, table []member) schema {
	properties, required := schema{}, []string{}
	for _, m := range table {
		properties[m.name] = memberSchema(t, m)
		if m.trait&needed != 0 {
			required = append(required, m.name)
		}
	}
	out := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

func memberSchema(t *testing.T, m member) schema {
	out := maps.Clone(m.value.schema)
	words := m.plainWords()
	if kind := strings.ReplaceAll(m.value.kind, "`", ""); m.value.form == scalar {
		words += " (" + kind + ")"
	}
	out["description"] = strings.TrimSpace(words)
	if text := m.usual(); text != "" && m.name != "version" {
		n, problems := parseYAML([]byte("x: " + text))
		if problems != nil {
			t.Fatalf("%s: %v", m.name, problems)
		}
		out["default"] = plain(n.elements[0])
	}
	if m.value.form == scalar {
		return out
	}
	inner := objectSchema(t, m.value.sample())
	if m.name == "classifiers" {
		return classifiersSchema(out, inner)
	}
	maps.Copy(inner, m.value.each)
	switch m.value.form {
	case objectForm:
		maps.Copy(inner, out)
		return inner
	case listForm:
		out["items"] = inner
		if m.value.short != nil {
			out["items"] = schema{"anyOf": []schema{m.value.short, inner}}
		}
	case mapForm:
		out["additionalProperties"] = inner
	}
	return out
}

// classifiersSchema says which members go with which provider; local has one without saying it.
func classifiersSchema(out, each schema) schema {
	var cases []schema
	for _, provider := range classifierProviders {
		needs, others := []string{}, []string{}
		for _, m := range new(Classifier).ofProviders() {
			switch {
			case slices.Contains(strings.Fields(m.needs), provider):
				needs = append(needs, m.name)
			case !slices.Contains(strings.Fields(m.may), provider):
				others = append(others, m.name)
			}
		}
		cases = append(cases, schema{"if": schema{"properties": schema{"provider": schema{"const": provider}}, "required": []string{"provider"}},
			"then": schema{"propertyNames": schema{"not": schema{"enum": others}}, "required": needs}})
	}
	each["allOf"] = cases
	local := maps.Clone(each)
	local["properties"] = maps.Clone(each["properties"].(schema))
	local["properties"].(schema)["provider"] = schema{"const": Local}
	for _, m := range new(Classifier).ofProviders() {
		if !slices.Contains(strings.Fields(m.may), Local) {
			delete(local["properties"].(schema), m.name)
		}
	}
	delete(local, "required")
	delete(local, "allOf")
	out["properties"], out["additionalProperties"] = schema{Local: local}, each
	return out
}

// plain is a value of a file as encoding/json has it. A number that JSON spells otherwise is a string.
func plain(n *node) any {
	switch n.kind {
	case isList:
		out := []any{}
		for _, e := range n.elements {
			out = append(out, plain(e))
		}
		return out
	case isObject:
		out := map[string]any{}
		for i, name := range n.names {
			out[name.text] = plain(n.elements[i])
		}
		return out
	case isNull:
		return nil
	case isBool:
		return n.text == "true"
	case isNumber:
		if v, err := jsonschema.UnmarshalJSON(strings.NewReader(n.text)); err == nil {
			return v
		}
	}
	return n.text
}

// compiledSchema is docs/config.schema.json, once it has passed the schema of its draft.
func compiledSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	src, err := os.ReadFile(schemaPage)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(src))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	meta, err := c.Compile("https://json-schema.org/draft/2020-12/schema")
	if err != nil {
		t.Fatal(err)
	}
	if err := meta.Validate(doc); err != nil {
		t.Fatalf("not a schema of draft 2020-12: %v", err)
	}
	if err := c.AddResource(schemaID, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(schemaID)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// configurations are those of the repository, by where they stand: files, blocks of pages and
// files of scripts that say version: 1, and those of the tests here.
func configurations(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{"everything": everything, "policyFile": policyFile}
	keep := func(name, text string) {
		if strings.Contains("\n"+text, "\nversion: 1\n") {
			out[name] = text
		}
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			if e != nil && strings.HasPrefix(e.Name(), ".") && len(e.Name()) > 2 {
				return fs.SkipDir
			}
			return err
		}
		ext := filepath.Ext(path)
		if ext != ".md" && ext != ".yaml" && ext != ".yml" && ext != ".txtar" {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch ext {
		case ".md":
			for i, m := range block.FindAllSubmatch(src, -1) {
				keep(fmt.Sprintf("%s, block %d", path, i+1), string(m[1]))
			}
		case ".txtar":
			for _, f := range txtar.Parse(src).Files {
				keep(path+", "+f.Name, string(f.Data))
			}
		default:
			keep(path, string(src))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSchema: the schema takes every configuration of the repository that is read.
func TestSchema(t *testing.T) {
	s := compiledSchema(t)
	o, world := newFixed().options(), newFixed()
	o.Getenv = func(name string) (string, bool) {
		if v, ok := world.env[name]; ok {
			return v, true
		}
		return "https://set.example", true
	}
	passed := 0
	for name, src := range configurations(t) {
		root, problems := parseYAML([]byte(src))
		if problems != nil {
			continue // a test of what is not YAML of this kind
		}
		_, err := Parse([]byte(src), o)
		refused := s.Validate(plain(root))
		switch {
		case err == nil && refused != nil:
			t.Errorf("%s is read, and refused by the schema: %v", name, refused)
		case err == nil:
			passed++
		case refused == nil:
			t.Logf("%s passes the schema: %v", name, err)
		}
	}
	if passed < 15 {
		t.Errorf("%d configurations were found", passed)
	}
}

// TestSchemaRefuses: what an editor shall show as a mistake.
func TestSchemaRefuses(t *testing.T) {
	s := compiledSchema(t)
	const one = "version: 1\nservers:\n  a: {command: [x]"
	for _, src := range []string{
		"listen: 127.0.0.1:1",
		"version: 2",
		"version: \"1\"",
		"version: 1\nlissten: 127.0.0.1:1",
		"version: 1\nlisten: 7420",
		"version: 1\nstore: pellucid.db",
		"version: 1\nhttp: {max_body: 1023}",
		"version: 1\nhttp: {max_body: 32MB}",
		"version: 1\nhttp: {sessions: 0}",
		"version: 1\nhttp: {sessions: 1.5}",
		"version: 1\nhttp: {session_idle: 30}",
		"version: 1\nhttp: {session_idle: 30 minutes}",
		"version: 1\nhttp: {rate: -1}",
		"version: 1\nhttp: {hosts: a}",
		"version: 1\nhttp: {hosts: [a, a]}",
		"version: 1\nlimits: {children: 100001}",
		"version: 1\nauth: {}",
		"version: 1\nauth: {tokens: tokens.json}",
		"version: 1\nauth: {oauth: {}}",
		"version: 1\nauth: {oauth: {issuers: [{name: x}]}}",
		"version: 1\ntelemetry: {metrics: yes}",
		"version: 1\ntelemetry: {log: warning}",
		"version: 1\nreview: {provider: anthropic, url: https://a.example}",
		"version: 1\nreview: {provider: anthropic, url: https://a.example, model: m, key: sk-0123456789}",
		"version: 1\npolicy: {rules: [{name: a, on: result, when: x}]}",
		"version: 1\npolicy: {rules: [{name: a, on: result, when: x, then: drop}]}",
		"version: 1\nguard: {severity: {low: 0.1}}",
		"version: 1\nclassifiers: {x: {mode: shadow}}",
		"version: 1\nclassifiers: {x: {provider: azure, url: https://a.example}}",
		"version: 1\nclassifiers: {x: {provider: azure, url: https://a.example, key: env:X, region: r}}",
		"version: 1\nclassifiers: {local: {provider: azure}}",
		"version: 1\nclassifiers: {local: {key: env:X}}",
		"version: 1\nadmission: {pins: maybe}",
		"version: 1\ndefaults: {llm: {provider: x}}",
		"version: 1\ndefaults: {allow: false}",
		"version: 1\ndefaults: {fence: some}",
		"version: 1\nservers: {a: {}}",
		"version: 1\nservers: {a: {command: []}}",
		one + ", url: https://a.example}",
		one + ", tools: {x: {share: shared}}}",
		one + ", tools: {x: {fence: [prompts]}}}",
		one + ", env: {X: 1}}",
		one + "}\nexceptions: [{server: a, code: nfkc, why: x}]",
	} {
		root, problems := parseYAML([]byte(src))
		if problems != nil {
			t.Fatalf("%s: %v", src, problems)
		}
		if s.Validate(plain(root)) == nil {
			t.Errorf("the schema takes %q", src)
		}
		if _, err := Parse([]byte(src), newFixed().options()); err == nil {
			t.Errorf("%q is read", src)
		}
	}
}

// TestMembers: every member has words, and a name that no other member of its object has.
func TestMembers(t *testing.T) {
	var check func(path string, table []member)
	check = func(path string, table []member) {
		names := map[string]bool{}
		for _, m := range table {
			if at := path + "." + m.name; m.name == "" || m.words == "" || m.value.kind == "" || names[m.name] {
				t.Errorf("%s lacks a name of its own, words or a kind", at)
			}
			names[m.name] = true
			if m.value.form != scalar {
				check(path+"."+m.name, m.value.sample())
			}
		}
	}
	check("", newRules().members())
}
