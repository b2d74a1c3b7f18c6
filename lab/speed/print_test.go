// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// TestPrintCases: a heading for each text, and a line for each way.
func TestPrintCases(t *testing.T) {
	var b strings.Builder
	if err := PrintCases(&b, terminal.Palette{}, []Case{{Name: "ascii/memcpy", NS: 20, MemcpyRatio: 1}, {Name: "ascii/mcp", NS: 40.4, MemcpyRatio: 2.02, Allocs: 3}, {Name: "json/mcp"}}); err != nil {
		t.Fatal(err)
	}
	for want, n := range map[string]int{"\nascii ": 1, "\njson ": 1, "\n  mcp                        40        2.0          0        3\n": 1, "fields of 2000 bytes": 1} {
		if strings.Count(b.String(), want) != n {
			t.Errorf("%q is not there %d times:\n%s", want, n, b.String())
		}
	}
}

// TestPrintGateway: the direct way has no figures of a proxy, and a target says whether it is met.
func TestPrintGateway(t *testing.T) {
	r := &GatewayReport{
		Figures: []Figure{
			{Transport: "http", Script: "json", Bytes: 1024, Sessions: 8, Way: Direct, P50: 10, P99: 20, Rate: 30},
			{Transport: "http", Script: "json", Bytes: 1024, Sessions: 8, Way: "gateway", P50: 15, AddedP50: 5, RSS: 2_500_000},
			{Transport: "pipes", Script: "json", Bytes: 1024, Sessions: 8, Way: Direct},
		},
		Targets: []Target{{Name: "one", Got: "1", Want: "2", Met: true}, {Name: "two", Got: "3", Want: "2"}},
	}
	var b strings.Builder
	if err := r.Print(&b, terminal.Palette{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nhttp, json, ", "\npipes, json, ", "        5 ", "     2.5\n", "\nmet      one ", "\nNOT MET  two ", "3, wanted 2\n"} {
		if strings.Count(b.String(), want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, b.String())
		}
	}
}

// TestLayers: every layer has a name of its own and a configuration, and is found by the name.
func TestLayers(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range Layers() {
		if l.name == "" || seen[l.name] || LayerConfig(l.name) == "" || IsRole(l.name) {
			t.Errorf("%q", l.name)
		}
		seen[l.name] = true
	}
	if len(seen) != 7 || LayerConfig("other") != "" {
		t.Errorf("%d layers", len(seen))
	}
}
