// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/datatest"
)

// described is a surface of one tool with this description.
func described(t testing.TB, text string) *surface.Surface {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	s, err := surface.ParseDump([]byte(`{"initialize":{"serverInfo":{"name":"s","version":"1"}},"tools/list":[{"tools":[{"name":"t","description":`+
		string(quoted)+`,"inputSchema":{"type":"object"}}]}]}`), surface.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// report is what check says of a surface beside its pins.
func report(s *surface.Surface) *Server {
	var r Server
	r.describe(s)
	return &r
}

// TestDescriptions holds what is looked for by default against honest descriptions and
// the surfaces of real servers: the wide set rejects nothing that the narrow one lets
// pass, and at most 1 % are told. Most of these texts were trained on, so that the share
// of poison found is no measure; that of MODEL.md is.
func TestDescriptions(t *testing.T) {
	root, err := datatest.Find(filepath.Join("..", ".."), "corpora")
	if err != nil {
		t.Skip(err)
	}
	count := map[string]map[string]int{}
	for _, file := range []string{"benign_tool_descriptions", "attack_tool_poisoning"} {
		n := map[string]int{}
		count[file] = n
		err := datatest.Read(filepath.Join(root, file+".jsonl.gz"), func(row datatest.Row) error {
			n["all"]++
			s := described(t, row.Text)
			narrow, wide := s.Inspect(surface.Rules{Narrow: true}).Err() != nil, s.Inspect(surface.Rules{}).Err() != nil
			for what, is := range map[string]bool{"narrow": narrow, "wide alone": wide && !narrow, "told": len(report(s).Told) > 0, "wording": len(s.Lint()) > 0, "removed": len(s.Removals()) > 0} {
				if is {
					n[what]++
				}
				if is && what == "wide alone" && file == "benign_tool_descriptions" {
					t.Errorf("%+q", row.Text)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %v", file, n)
	}
	if n := count["benign_tool_descriptions"]; n["all"] < 1000 || n["told"]*100 > n["all"] || n["removed"]*200 > n["all"] {
		t.Errorf("honest descriptions: %v", n)
	}
	if n := count["attack_tool_poisoning"]; n["told"] == 0 || n["wording"]*10 < n["all"] {
		t.Errorf("poisoned descriptions: %v", n)
	}
}

// TestRealSurfacesTold: few texts of real servers are told, and none is rejected by the wide
// set alone.
func TestRealSurfacesTold(t *testing.T) {
	dir, err := datatest.Find(filepath.Join("..", ".."), "mcp-surfaces")
	if err != nil {
		t.Skip(err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(paths) < 40 {
		t.Fatalf("%d surfaces, %v", len(paths), err)
	}
	texts, tells, removals := 0, 0, 0
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := surface.ParseDump(b, surface.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if s.Inspect(surface.Rules{}).Err() != nil && s.Inspect(surface.Rules{Narrow: true}).Err() == nil {
			t.Errorf("%s: rejected by the wide set alone", filepath.Base(path))
		}
		for _, it := range s.Items() {
			texts += len(it.Prose())
		}
		for _, x := range report(s).Told {
			tells++
			t.Logf("%s: %s (%.2f): %s", strings.TrimSuffix(filepath.Base(path), ".json"), x.Place, x.Score, x.Shown)
		}
		for _, x := range s.Removals() {
			removals++
			t.Logf("%s: %s: %s (%d)", strings.TrimSuffix(filepath.Base(path), ".json"), x.Key(), x.Code, x.N)
		}
	}
	t.Logf("%d surfaces, %d texts, %d told, %d items with removals", len(paths), texts, tells, removals)
	if texts < 1000 || tells*100 > texts {
		t.Errorf("%d of %d texts are told", tells, texts)
	}
}
