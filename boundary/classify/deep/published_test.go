// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
)

// publishedPath is the file that is released.
var publishedPath = filepath.Join("..", "..", "..", "packaging", "models", "detector.safetensors")

func published(t testing.TB) *Model {
	t.Helper()
	m, err := Open(publishedPath, "")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// rowsOf reads a table of JSON lines.
func rowsOf[T any](t *testing.T, path string, least int) (out []T) {
	t.Helper()
	table, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(table)); ; {
		var row T
		if err := d.Decode(&row); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	if len(out) < least {
		t.Fatalf("%s has %d rows", path, len(out))
	}
	return out
}

// The pieces of a text are those of the tokenizer of multilingual-e5-small, with the pieces that
// were left out made too unlikely to be chosen. Each line of the table was made by it.
func TestPieces(t *testing.T) {
	v := published(t).vocabulary
	for _, row := range rowsOf[struct {
		Text   string
		Pieces []int32
	}](t, filepath.Join("testdata", "pieces.jsonl"), 30) {
		if got, _ := v.Cut(nil, row.Text, 1000); !slices.Equal(got, row.Pieces) {
			t.Errorf("%+q: %v, want %v", row.Text, got, row.Pieces)
		}
	}
}

// mustLogit is that of a text by one kernel.
func (m *Model) mustLogit(t testing.TB, k *kernel, text string) float32 {
	t.Helper()
	x, err := m.logit(t.Context(), k, text)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestReference holds the integers against the same network in floating point, whose logits the rows
// beside the released weights have.
func TestReference(t *testing.T) {
	m := published(t)
	var sum, worst float64
	rows := rowsOf[struct {
		ID, Text string
		Pieces   []int32
		Logit    float64
	}](t, filepath.Join("testdata", "check.jsonl"), 189)
	for i, row := range rows {
		if got, _ := m.vocabulary.Cut(nil, row.Text, 1<<20); !slices.Equal(got, row.Pieces) {
			t.Errorf("%s: other pieces", row.ID)
		}
		got := m.mustLogit(t, best, row.Text)
		off := math.Abs(float64(got) - row.Logit)
		sum, worst = sum+off, max(worst, off)
		if i%47 == 0 && got != m.mustLogit(t, &plain, row.Text) {
			t.Errorf("%s: the kernels differ", row.ID)
		}
	}
	t.Logf("off by %.4f on average and %.4f at most", sum/float64(len(rows)), worst)
	if sum/float64(len(rows)) > .02 || worst > .15 {
		t.Errorf("off by %.4f on average and %.4f at most", sum/float64(len(rows)), worst)
	}
}

// TestPublished: the file stays small in memory, and tells an order to a model from a plain sentence.
func TestPublished(t *testing.T) {
	size := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	pool.New = nil
	before := size()
	f, err := Find(publishedPath, "")
	if err != nil {
		t.Fatal(err)
	}
	c := Cascade{Fast: local.Default(), Deep: f}
	scores, err := c.Classify(t.Context(), []string{honest, attack})
	if err != nil || scores[0].Flagged || !scores[1].Flagged {
		t.Errorf("%+v, %v", scores, err)
	}
	if grown := size() - before; grown > 30e6 {
		t.Errorf("%.1f MB", float64(grown)/1e6)
	} else {
		t.Logf("%.1f MB", float64(grown)/1e6)
	}
	said, err := c.Quote(t.Context(), honest+" "+attack+" "+honest)
	if err != nil || said != attack {
		t.Errorf("%q, %v", said, err)
	}
}

func BenchmarkPublished(b *testing.B) {
	m := published(b)
	text := strings.Repeat("The report was sent to the team on Monday, and nobody has answered it so far. ", 30)
	ids, n := m.vocabulary.Cut(nil, text, 300)
	text = text[:n]
	if len(ids) != 300 {
		b.Fatalf("%d pieces", len(ids))
	}
	for _, k := range kernels() {
		b.Run(fmt.Sprintf("deep/%s", k.name), func(b *testing.B) {
			for b.Loop() {
				m.mustLogit(b, k, text)
			}
		})
	}
	b.Run("fast", func(b *testing.B) {
		for b.Loop() {
			local.Default().Score(text)
		}
	})
}
