// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestTexts(t *testing.T) {
	seen := map[string]bool{}
	for _, tt := range texts() {
		if len(tt.text) != textBytes {
			t.Errorf("%s has %d bytes, want %d", tt.name, len(tt.text), textBytes)
		}
		if valid := utf8.ValidString(tt.text); valid == strings.Contains(tt.name, "ill-formed") {
			t.Errorf("%s: valid UTF-8 is %v", tt.name, valid)
		}
		if seen[tt.name] {
			t.Errorf("two texts are called %s", tt.name)
		}
		seen[tt.name] = true
		switch tt.name {
		case "ascii", "json", "source", "markdown":
			if strings.ContainsFunc(tt.text, func(r rune) bool { return r >= 0x80 }) {
				t.Errorf("%s is not ASCII", tt.name)
			}
		case "french", "german", "russian", "japanese", "korean-nfc":
			if norm.NFC.String(tt.text) != tt.text {
				t.Errorf("%s is not in NFC", tt.name)
			}
		}
	}
}

func TestNaiveCleans(t *testing.T) {
	const in = "\uff41 \u0430<|im_start|>b<b>c</b>[d](https://e/)\u200b"
	if got, want := newNaive().clean(in), "a abcd"; got != want {
		t.Errorf("clean(%+q) = %+q, want %+q", in, got, want)
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		in   []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{1, 100, 2, 3, 2}, 2}} {
		if got := median(tt.in); got != tt.want {
			t.Errorf("median(%v) = %v, want %v", tt.in, got, tt.want)
		}
	}
}

// TestMeasure checks the shape of the figures and those that do not depend on
// the machine.
func TestMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("measures")
	}
	got, err := Measure(Options{Rounds: 1, Slice: 50 * time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	if want := len(texts()) * 6; len(got) != want {
		t.Fatalf("%d cases, want %d", len(got), want)
	}
	for _, c := range got {
		if c.NS <= 0 || c.MBPerS <= 0 || c.MemcpyRatio <= 0 {
			t.Errorf("%+v: a figure is not positive", c)
		}
		text, way, _ := strings.Cut(c.Name, "/")
		if way == memcpyName && c.MemcpyRatio != 1 {
			t.Errorf("%s: ratio to itself is %v", c.Name, c.MemcpyRatio)
		}
		if text == "ascii" && (way == "mcp" || way == "faithful" || way == memcpyName) && c.Allocs != 0 {
			t.Errorf("%s: %v allocations", c.Name, c.Allocs)
		}
	}
}
