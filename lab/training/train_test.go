// SPDX-License-Identifier: Apache-2.0

package training

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
	"github.com/pellucid-mcp/pellucid/lab/injections"
	"github.com/pellucid-mcp/pellucid/platform/datatest"
)

// The weights that come with the program are, byte for byte, those that the command
// makes of the data; all but the calibration, for which it makes fourteen more models.
func TestWeights(t *testing.T) {
	if testing.Short() || runtime.GOARCH != "amd64" {
		t.Skip("some seconds; and where multiplication and addition are fused the last bits differ")
	}
	dir, err := datatest.CorporaDir(filepath.Join("..", ".."))
	if errors.Is(err, datatest.ErrAbsent) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	all, kind, err := loadAll(filepath.Join("..", ".."), dir)
	if errors.Is(err, injections.ErrAbsent) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := model(all, kind, local.Default().Calibration())
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
	all = append(all, &text{group: ownPrefix + "attack", attack: true})
	seen := map[string]int{ownPrefix + "attack": 1} // never left out, since they are not judged
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
		js = append(js, judgement{text: &text{}, p: float32(i) / 1000})
	}
	for _, alarms := range []float64{0.001, 0.01, 0.1} {
		over := 0
		for _, j := range js {
			if j.p > limitOf(js, alarms) {
				over++
			}
		}
		if over != int(1000*alarms) {
			t.Errorf("%d of 1000 exceed the limit for %v", over, alarms)
		}
	}
}

// Texts of one sort whose logits are all too high get scores like the others, and the score is the
// share of attacks.
func TestCalibrate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var js []judgement
	for i := range 8000 {
		j := judgement{text: &text{family: "a", sort: i % 2 * 4, attack: i%4 > 1}, fold: i % 7}
		j.logit = float32(r.NormFloat64())
		if j.attack {
			j.logit += 2
		}
		if j.sort > 0 {
			j.logit += 3
		}
		js = append(js, j)
	}
	c := calibrate(js)
	var flagged [2]int
	var near, attacks int
	for _, j := range js {
		if !j.attack && j.p > c.Limits[6] {
			flagged[j.sort/4]++
		}
		if j.p > 0.75 && j.p < 0.85 {
			near++
			attacks += sideOf(j)
		}
	}
	if flagged[0] < 100 || flagged[1] < 100 { // without calibration: 0 and 400
		t.Errorf("false alarms %v of 2000 each: one sort has nearly all", flagged)
	}
	if share := float64(attacks) / float64(near); share < 0.7 || share > 0.9 {
		t.Errorf("%.2f of the texts with a score near 0.8 are attacks", share)
	}
	for i := 1; i < len(c.Limits); i++ {
		if c.Limits[i] > c.Limits[i-1] {
			t.Errorf("limits %v", c.Limits)
		}
	}
}

func TestTable(t *testing.T) {
	var out strings.Builder
	var js []judgement
	for i := range 100 {
		js = append(js, judgement{text: &text{clean: "two", family: "g"}, p: float32(i) / 200})
	}
	js = append(js, judgement{text: &text{clean: "one", family: "f", lang: "German", attack: true}, p: 0.9},
		judgement{text: &text{clean: "one", family: "ipi-bipia-x", attack: true}, p: 0.1})
	table(&out, js, &extra{rows: js, authors: js[:100]}, &local.Calibration{})
	for _, want := range []string{
		"\n| recall | 100.0 % | 100.0 % | 0.0 % |",
		"\n| Attacks that text alone can decide: recall | n | at 1 % | at 5 % | phrases |\n|---|---|---|---|---|\n| f | 1 | 100.0 %",
		"\n| ipi-bipia-x | 1 | 0.0 %", "\n| g | 100 | 1.0 %", "\n| German | 1 | 100.0 %", "\n| all languages | 1 | 100.0 %", "\n| Honest texts by test authors: false alarms | n | at 1 % | at 5 % | phrases |\n|---|---|---|---|---|\n| g | 100 | 1.0 %", "under the curve (the share of pairs of an attack and an honest text that the score orders rightly): 1.000",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
