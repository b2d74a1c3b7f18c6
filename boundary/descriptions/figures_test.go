// SPDX-License-Identifier: Apache-2.0

package descriptions

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/model/interval"
	"github.com/pellucid-mcp/pellucid/platform/datatest"
)

// named splits a row of the collections, which is a tool's name and its description.
var named = regexp.MustCompile(`(?s)^([A-Za-z0-9_.\-]{1,64}): (.*)$`)

// toolOf is the surface of one tool that a row describes.
func toolOf(t testing.TB, row string) surface.Item {
	t.Helper()
	name, text := "tool", row
	if m := named.FindStringSubmatch(row); m != nil {
		name, text = m[1], m[2]
	}
	return tool(t, name, text)
}

func tool(t testing.TB, name, description string) surface.Item {
	t.Helper()
	entry, err := json.Marshal(map[string]any{"name": name, "description": description, "inputSchema": map[string]any{"type": "object"}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := surface.ParseDump(fmt.Appendf(nil, `{"initialize":{"serverInfo":{"name":"s","version":"1"}},"tools/list":[{"tools":[%s]}]}`, entry), surface.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	it, ok := s.Item(surface.Key{Kind: surface.Tool, Name: name})
	if !ok {
		t.Fatalf("no item %q", name)
	}
	return it
}

// A count is of items by what found something in them.
type count struct{ all, wording, model, either int }

func (c *count) add(v *Findings) {
	c.all++
	if len(v.Wording) > 0 {
		c.wording++
	}
	if len(v.Told) > 0 {
		c.model++
	}
	if v.Flagged() {
		c.either++
	}
}

func (c *count) log(t *testing.T, what string) {
	t.Logf("| %s | %d | %s | %s | %s |", what, c.all, interval.Format(c.wording, c.all), interval.Format(c.model, c.all), interval.Format(c.either, c.all))
}

// TestPoisoned: of descriptions that are poisoned in plain words most are told. Those of this package are by the
// author of the rules, who has looked at most of them; those beside the repository are by other authors.
func TestPoisoned(t *testing.T) {
	own, err := os.ReadFile(filepath.Join("testdata", "poisoned.txt"))
	if err != nil {
		t.Fatal(err)
	}
	lists := map[string][]string{"own": strings.Split(strings.TrimSpace(string(own)), "\n")[1:]}
	if dir, err := datatest.Find(filepath.Join("..", ".."), "cases"); err == nil {
		b, err := os.ReadFile(filepath.Join(dir, "descriptions_poisoned.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			var row struct{ Text string }
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatal(err)
			}
			lists["others"] = append(lists["others"], row.Text)
		}
	}
	for name, list := range lists {
		var c count
		for _, text := range list {
			v := New().one(t.Context(), new(tool(t, "tool", text)))
			c.add(&v)
			if !v.Flagged() {
				t.Logf("%s: not told: %s", name, text)
			}
		}
		c.log(t, name)
		if c.either*100 < c.all*60 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// TestFigures prints what is told of poisoned and of honest descriptions, and holds the share
// of honest ones to 1.2 % of the rows and 1 % of the items of public servers. Families of tools that only say what
// harm they do are counted apart: their descriptions give no model an order.
func TestFigures(t *testing.T) {
	root, err := datatest.Find(filepath.Join("..", ".."), "corpora")
	if err != nil {
		t.Skip(err)
	}
	j := New()
	t.Log("| family | n | wording | model | either |")
	totals := map[string]count{}
	for _, file := range []string{"attack_tool_poisoning", "benign_tool_descriptions"} {
		by := map[string]*count{}
		total := count{}
		err := datatest.Read(filepath.Join(root, file+".jsonl.gz"), func(row datatest.Row) error {
			it := toolOf(t, row.Text)
			v := j.one(t.Context(), &it)
			if by[row.Family] == nil {
				by[row.Family] = &count{}
			}
			by[row.Family].add(&v)
			if row.Family != "tool-poison-asb-attack-tool" {
				total.add(&v)
			}
			if v.Flagged() && !row.Attack {
				t.Logf("honest: %+q %v", row.Text[:min(len(row.Text), 200)], v.Told)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range slices.Sorted(maps.Keys(by)) {
			by[f].log(t, f)
		}
		total.log(t, "all of "+file)
		totals[file] = total
	}
	if n := totals["benign_tool_descriptions"]; n.all < 1000 || n.either*1000 > n.all*12 {
		t.Errorf("honest descriptions: %+v", n)
	}
	if n := totals["attack_tool_poisoning"]; n.either*10 < n.all*8 {
		t.Errorf("poisoned descriptions: %+v", n)
	}
	total, texts := surfaces(t, j)
	total.log(t, fmt.Sprintf("items of public servers (%d texts)", texts))
	if total.all < 1000 || total.either*100 > total.all {
		t.Errorf("items of public servers: %+v", total)
	}
}

// surfaces judges the saved surfaces of public servers.
func surfaces(t *testing.T, j *Judge) (total count, texts int) {
	dir, err := datatest.Find(filepath.Join("..", ".."), "mcp-surfaces")
	if err != nil {
		t.Skip(err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(paths) < 40 {
		t.Fatalf("%d surfaces, %v", len(paths), err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := surface.ParseDump(b, surface.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, it := range s.Items() {
			v := j.one(t.Context(), &it)
			texts += len(it.Prose())
			total.add(&v)
			if v.Flagged() {
				t.Logf("%s: %s: %v %v", strings.TrimSuffix(filepath.Base(path), ".json"), it.Key, v.Told, len(v.Wording))
			}
		}
	}
	return total, texts
}
