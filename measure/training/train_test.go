// SPDX-License-Identifier: Apache-2.0

package training

import (
	"bytes"
	"cmp"
	"errors"
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

func TestTable(t *testing.T) {
	var out strings.Builder
	table(&out, []judgement{{&text{clean: "one", family: "f", attack: true}, 0.9}, {&text{clean: "two\nlines", family: "g"}, 0.1}}, 0.5)
	for _, want := range []string{"\n| Attacks: recall | n | model | phrases |\n|---|---|---|---|\n| f | 1 | 100.0 %"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// A page without the lines that mark the place of its table is left as it is.
func TestInsert(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	for _, tt := range []struct{ before, after string }{
		{"a\n" + begin + "old\n" + end + "\nb\n", "a\n" + begin + "new\n" + end + "\nb\n"},
		{"a\n", ""}, {begin, ""}, {end, ""},
	} {
		if err := os.WriteFile(path, []byte(tt.before), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Insert(path, []byte("new\n"))
		got, readErr := os.ReadFile(path)
		if readErr != nil {
			t.Fatal(readErr)
		}
		if want := cmp.Or(tt.after, tt.before); string(got) != want || (err == nil) != (tt.after != "") {
			t.Errorf("%q: %q, %v", tt.before, got, err)
		}
	}
}
