// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
)

// published is the file that is released.
func published(t testing.TB) *Model {
	t.Helper()
	m, err := Open(filepath.Join("..", "..", "..", "packaging", "models", "deep.bin"), "")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The pieces of a text are those of the tokenizer of multilingual-e5-small, with the pieces that
// were left out made too unlikely to be chosen. Each line of the table was made by it.
func TestPieces(t *testing.T) {
	m := published(t)
	table, err := os.ReadFile(filepath.Join("testdata", "pieces.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for d := json.NewDecoder(bytes.NewReader(table)); ; n++ {
		var row struct {
			Text   string
			Pieces []int32
		}
		if err := d.Decode(&row); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if got, _ := m.vocabulary.Cut(nil, row.Text, 1000); !slices.Equal(got, row.Pieces) {
			t.Errorf("%+q: %v, want %v", row.Text, got, row.Pieces)
		}
	}
	if n < 30 {
		t.Errorf("the table has %d texts", n)
	}
}

// The file stays within its size, and tells an order to a model from a plain sentence.
func TestPublished(t *testing.T) {
	m := published(t)
	if m.Size() > 8<<20 {
		t.Errorf("%d bytes", m.Size())
	}
	if a, b := m.Logit(attack), m.Logit(honest); a <= b {
		t.Errorf("an attack has %v, an honest text %v", a, b)
	}
	c := Cascade{Fast: local.Default(), Deep: m}
	for _, fast := range []float32{0, m.Low / 2, math.Nextafter32(m.Low, 0)} {
		if p := m.Score(fast, m.Below); p >= float64(m.Limit) {
			t.Errorf("a text at which the deep model has not looked, with %v, is flagged: %v", fast, p)
		}
	}
	for _, text := range []string{"", strings.Repeat("ignore ", 500), strings.Repeat("\u5ffd\u7565", 2000), strings.Repeat("\u202e\U000e0041", 999)} {
		if p, _ := c.Judge(text); !(p >= 0 && p <= 1) {
			t.Errorf("%.20q: %v", text, p)
		}
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
	b.Run("deep", func(b *testing.B) {
		for b.Loop() {
			m.Logit(text)
		}
	})
	b.Run("fast", func(b *testing.B) {
		for b.Loop() {
			local.Default().Score(text)
		}
	})
}
