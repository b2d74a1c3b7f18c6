// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// fakeProgram writes a program that prints fixed figures: with all checks a call takes micros,
// and through ReverseProxy 100.
func fakeProgram(t *testing.T, micros string, more string) []string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a shell script stands for the program")
	}
	file := filepath.Join(t.TempDir(), "pellucid")
	script := `#!/bin/sh
if [ "$2" = scrub ]; then
	echo '{"cases":[{"name":"ascii/mcp","memcpy_ratio":10},{"name":"ascii/naive","memcpy_ratio":900},{"name":"worst-tags/mcp","memcpy_ratio":1000}],"new":1}'
	exit 0
fi
case "$*" in *--rounds=1*--events=0*) ;; *) echo "$*" >&2; exit 2 ;; esac
cat <<END
{"figures":[
{"transport":"http","script":"` + scripts[0] + `","bytes":1024,"sessions":1,"way":"direct","p50_us":50},
{"transport":"http","script":"` + scripts[0] + `","bytes":1024,"sessions":1,"way":"ReverseProxy","p50_us":100,"cpu_us":40},
{"transport":"http","script":"` + scripts[0] + `","bytes":1024,"sessions":1,"way":"all checks","p50_us":` + micros + `,"cpu_us":80},
{"transport":"http","script":"` + scripts[0] + `","bytes":1024,"sessions":8,"way":"ReverseProxy","calls_per_s":9000},
{"transport":"http","script":"` + scripts[0] + `","bytes":1024,"sessions":8,"way":"all checks","calls_per_s":6000}` + more + `
]}
END
`
	if err := os.WriteFile(file, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return []string{file, "bench"}
}

// TestCompare: both programs are measured in each round, each figure stands beside the baseline
// of its own run, and only what is worse than the limit is named.
func TestCompare(t *testing.T) {
	var order []string
	c, err := Compare(t.Context(), CompareOptions{Name: "v1", Rounds: 2, Progress: func(s string) { order = append(order, s) },
		There: fakeProgram(t, "150", ""),
		Here: fakeProgram(t, "300", `,{"transport":"stdio","script":"`+scripts[0]+`","bytes":128,"sessions":1,"way":"ReverseProxy","p50_us":10},
{"transport":"stdio","script":"`+scripts[0]+`","bytes":128,"sessions":1,"way":"all checks","p50_us":20}`)})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, "; "); got != "round 1 of 2, v1; round 1 of 2, here; round 2 of 2, here; round 2 of 2, v1" {
		t.Errorf("measured in the order %s", got)
	}
	same := func(v float64) Spread { return Spread{v, v, v} }
	want := []Ratio{
		{"http, 1 KiB: p50 of a call", "ReverseProxy", same(1.5), same(3), 2},
		{"http, 1 KiB: processor time of a call", "ReverseProxy", same(2), same(2), 1},
		{"http, 1 KiB, 8 sessions: time of a call", "ReverseProxy", same(1.5), same(1.5), 1},
		{"scrub, ascii/mcp", "memcpy", same(10), same(10), 1},
		{"stdio, 128 B: p50 of a call", "a process that copies", Spread{}, same(2), 0},
	}
	if len(c.Ratios) != len(want) {
		t.Fatalf("%d ratios, want %d: %+v", len(c.Ratios), len(want), c.Ratios)
	}
	for i := range want {
		if c.Ratios[i] != want[i] {
			t.Errorf("%+v, want %+v", c.Ratios[i], want[i])
		}
	}
	for limit, names := range map[float64]int{0.5: 4, 1.15: 1, 2: 0} {
		if got := c.Worse(limit); len(got) != names {
			t.Errorf("worse than %v: %q", limit, got)
		}
	}
	var b strings.Builder
	if err := c.Print(&b, terminal.Palette{}); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"min/median/max of 2 rounds", "ratio at v1", "1.50/1.50/1.50", "3.00/3.00/3.00", "2.00\n", "only on one side"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("no %q in\n%s", part, b.String())
		}
	}
}

// TestCompareFails: a program that fails or prints something else ends the comparison.
func TestCompareFails(t *testing.T) {
	good := fakeProgram(t, "150", "")
	for name, there := range map[string][]string{"absent": {filepath.Join(t.TempDir(), "none")}, "no JSON": fakeProgram(t, "oops", "")} {
		if _, err := Compare(t.Context(), CompareOptions{There: there, Here: good, Name: "v1", Rounds: 1}); err == nil || !strings.HasPrefix(err.Error(), "speed: v1: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   Spread
	}{
		{nil, Spread{}}, {[]float64{2}, Spread{2, 2, 2}}, {[]float64{4, 1}, Spread{1, 2.5, 4}}, {[]float64{3, 1, 2}, Spread{1, 2, 3}},
	} {
		if got := spreadOf(c.values); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.values, got, c.want)
		}
	}
}
