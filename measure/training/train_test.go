// SPDX-License-Identifier: Apache-2.0

package training

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
	"github.com/pellucid-mcp/pellucid/measure/corpora"
)

// The weights that come with the program are, byte for byte, those that the command
// makes of the data; all but the limit, for which it makes fourteen more models.
func TestWeights(t *testing.T) {
	if testing.Short() || runtime.GOARCH != "amd64" {
		t.Skip("some seconds; and where multiplication and addition are fused the last bits differ")
	}
	dir, err := corpora.Dir(filepath.Join("..", ".."))
	if errors.Is(err, corpora.ErrAbsent) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	all, kind, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := model(all, kind, local.Default().Limit())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(m.Bytes(), local.Default().Bytes()) {
		t.Errorf("trained %s, but %s comes with the program: run `make model`", m.Version(), local.Default().Version())
	}
}

// No group stands on both sides of a fold, and each is left out once.
func TestFolds(t *testing.T) {
	var all []*text
	for _, g := range []string{"a", "b", "c", "d", "e"} {
		all = append(all, &text{group: g, attack: g < "c"}, &text{group: g})
	}
	seen := map[string]int{}
	for _, fold := range folds(all) {
		attacks := 0
		for _, g := range fold {
			seen[g]++
			if g < "c" {
				attacks++
			}
		}
		if attacks != 1 {
			t.Errorf("a fold with %d groups of attacks", attacks)
		}
	}
	for _, x := range all {
		if seen[x.group] != 1 {
			t.Errorf("%s is left out %d times", x.group, seen[x.group])
		}
	}
}

func TestLimit(t *testing.T) {
	var js []judgement
	for i := range 1000 {
		js = append(js, judgement{&text{}, float32(i) / 1000})
	}
	over := 0
	for _, j := range js {
		if j.p > limitOf(js) {
			over++
		}
	}
	if over != 10 {
		t.Errorf("%d of 1000 exceed the limit", over)
	}
}

func TestBeside(t *testing.T) {
	all := []*text{{clean: "one"}, {clean: "two\nlines"}}
	run := func(script string) ([]detector, error) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "detectors")
		if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		return beside("sh "+path, all, io.Discard)
	}
	list, err := run(`while read -r line; do case $line in *two*) echo '{"b":true,"a":false}';; *) echo '{"a":true,"b":false}';; esac; done`)
	if err != nil || len(list) != 2 || list[0].name != "a" || !list[0].flags["one"] || list[0].flags["two\nlines"] || !list[1].flags["two\nlines"] {
		t.Errorf("%v %v", list, err)
	}
	var out strings.Builder
	table(&out, []judgement{{&text{clean: "one", family: "f", attack: true}, 0.9}, {&text{clean: "two\nlines", family: "g"}, 0.1}}, 0.5, list)
	for _, want := range []string{"\n| Attacks: recall | n | model | phrases | a | b |\n|---|---|---|---|---|---|\n| f | 1 | 100.0 %"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	for name, script := range map[string]string{
		"too few": `read -r line; echo '{}'`, "too many": `echo '{}'; echo '{}'; echo '{}'`, "not JSON": `cat`, "fails": `exit 1`,
	} {
		if _, err := run(script); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
