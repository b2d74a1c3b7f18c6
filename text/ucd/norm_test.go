// SPDX-License-Identifier: Apache-2.0

package ucd

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// hardTexts seed the fuzz targets and the differential tests.
var hardTexts = []string{
	"", "plain", "e\u200c\u0301", "\u0435\u0301", "\u1100\u200b\u1161", "q\u0301\u200d\u0316",
	"a" + strings.Repeat("\u0316", 31), "\U00010041\u0301", strings.Repeat("\ufdfa", 66),
	"x\U0001d16d\u0301", "\U0001ccd6", "\u0406gnore", "i\u0261nore", "\u0301\u0316", "\u0344", "\u0f73\u0f71",
	"\u1100\u1161\u11a8", "\uac00\u11a8", "\uac01\u11a8", "\u1100\u1161\u11a7", "\u09c7\u09be", "\u0cc6\u0cc2\u0cd5",
	"\u2adc", "\u0958", "\ufb2c", "\u1e9b\u0323", "\u212b", "\u2126", "te\u017ft", "\u217f", "\u03f2", "\uff1cb\uff1ex",
	"\xed\xa0\x80", "\xc0\x80", "\xe2\x82", "\xe2\x82\x41", "\xf0\x9f\x98\u0301", "e\xff\u0301", "\xf4\x90\x80\x80",
	"\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u0344\u0343\u0340", "a\u0345\u0301\u0345\u0316\u0327",
	"\U000110a5\U000110ba", "\U00011131\U00011127", "\u0fb2\u0f81", "\u30ab\u3099\u3099", "\u1161\u11a8", "\u0b47\u0300\u0b3e",
}

func TestNormal(t *testing.T) {
	if got := string(Append([]byte("e\u0301 "), NFC, "e\u0301")); got != "e\u0301 \u00e9" {
		t.Errorf("Append: %+q", got)
	}
	for _, c := range []struct{ in, nfc, nfkc string }{
		{"", "", ""},
		{"e\u0301", "\u00e9", "\u00e9"},
		{"te\u017ft", "te\u017ft", "test"},
		{"\u217f", "\u217f", "m"},
		{"\u03f2", "\u03f2", "\u03c2"},
		{"\uff1cb\uff1ex", "\uff1cb\uff1ex", "<b>x"},
		{"\u202f", "\u202f", " "},
		{"10\u2076 2\u00bd", "10\u2076 2\u00bd", "106 21\u20442"},
		{"\U00010041\u0301", "\U00010041\u0301", "\U00010041\u0301"}, // golang/go#81028
		{"\u1100\u1161\u11a8", "\uac01", "\uac01"},
		{"\u1100\u1161\u11a7", "\uac00\u11a7", "\uac00\u11a7"}, // U+11A7 is no trailing consonant
		{"\u0b47\u0300\u0b3e", "\u0b47\u0300\u0b3e", "\u0b47\u0300\u0b3e"},
		{"\u2adc", "\u2add\u0338", "\u2add\u0338"},
		{"\xe2\x82A", "\ufffdA", "\ufffdA"},
		{"\xc0\x80", "\ufffd\ufffd", "\ufffd\ufffd"},
		{"e\xff\u0301", "e\ufffd\u0301", "e\ufffd\u0301"},
	} {
		if got := NFC.String(c.in); got != c.nfc {
			t.Errorf("NFC of %+q: %+q, not %+q", c.in, got, c.nfc)
		}
		if got := NFKC.String(c.in); got != c.nfkc {
			t.Errorf("NFKC of %+q: %+q, not %+q", c.in, got, c.nfkc)
		}
	}
}

// TestNoStreamSafe: x/text makes 33 characters of this, by the Stream-Safe Text
// Process; a hash must not.
func TestNoStreamSafe(t *testing.T) {
	in := "a" + strings.Repeat("\u0316", 31)
	if got := NFKC.String(in); got != in || utf8.RuneCountInString(got) != 32 {
		t.Errorf("%+q", got)
	}
}

// TestLongRun: a run that needs the counting sort keeps the order within a class.
func TestLongRun(t *testing.T) {
	pairs := 200_000
	in := "b" + strings.Repeat("\u0301\u0316", pairs)
	want := "b" + strings.Repeat("\u0316", pairs) + strings.Repeat("\u0301", pairs)
	if NFC.String(in) != want {
		t.Error("long run is not in order")
	}
	var b Buffer
	b.Decompose(NFC, "c"+strings.Repeat("\u0301\u0316", 20), 0)
	if !slices.IsSortedFunc(b.Cells[1:21], func(x, y Cell) int { return int(x.Start) - int(y.Start) }) {
		t.Error("not stable")
	}
}

// TestPieces: decomposing in pieces, then composing, is the same as normalising the whole.
func TestPieces(t *testing.T) {
	var b, whole Buffer
	for _, s := range hardTexts {
		for _, f := range []Form{NFC, NFKC} {
			b.Reset()
			for i := 0; i < len(s); {
				_, w, _ := Decode(s[i:])
				b.Decompose(f, s[i:i+w], i)
				i += w
			}
			b.Compose()
			if got, want := string(b.AppendTo(nil)), string(whole.Append(nil, f, s)); got != want {
				t.Errorf("form %d of %+q: %+q, not %+q", f, s, got, want)
			}
		}
	}
}

// TestSegments: cutting a long text where Append cuts it changes nothing.
func TestSegments(t *testing.T) {
	var b, whole Buffer
	var long strings.Builder
	compare := func() {
		for _, f := range []Form{NFC, NFKC} {
			whole.Reset()
			whole.Decompose(f, long.String(), 0)
			whole.Compose()
			want := string(whole.AppendTo(nil))
			if got := string(b.Append(nil, f, long.String())); got != want {
				t.Fatalf("form %d of %+.2000q: differs", f, long.String())
			}
			if !b.isNormal(f, want) {
				t.Fatalf("form %d of %+.2000q: not normal", f, long.String())
			}
		}
		long.Reset()
	}
	randomStrings(50_000, func(s string) {
		if long.WriteString(s); long.Len() > 4000 {
			compare()
		}
	})
	for _, r := range []rune{0xFF21, 0xFDFA, 0x1161, 0xAC00, 0x301, 0xFF76, 0x2F800, 0x9BE, 0x1D15E} {
		for _, s := range []string{"", "\u0301", "\u11a8", "\u3099", "\uff9e", "e", "\xff"} {
			long.WriteString("x" + strings.Repeat(string(r)+s, 2000/len(string(r)+s)))
			compare()
		}
	}
}

func TestNormalAllocs(t *testing.T) {
	var b Buffer
	dst := make([]byte, 0, 1<<16)
	work := func() {
		for _, s := range hardTexts {
			dst = b.Append(dst[:0], NFKC, s)
			dst = b.AppendSkeleton(dst[:0], s)
			b.isNormal(NFC, s)
		}
	}
	work()
	if n := testing.AllocsPerRun(10, work); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if s := "already normal: \u00e9\ud55c"; testing.AllocsPerRun(10, func() { NFKC.String(s) }) != 0 {
		t.Error("String of normal text allocates")
	}
}

func addHardTexts(f *testing.F) {
	for _, s := range hardTexts {
		f.Add(s)
	}
}

// FuzzNormal holds the algebra of the forms for any bytes.
func FuzzNormal(f *testing.F) {
	addHardTexts(f)
	f.Fuzz(func(t *testing.T, s string) {
		c, k := NFC.String(s), NFKC.String(s)
		for _, x := range []struct {
			f    Form
			form string
		}{{NFC, c}, {NFKC, k}} {
			if !utf8.ValidString(x.form) {
				t.Fatalf("form %d of %+q is ill-formed", x.f, s)
			}
			if !x.f.IsNormal(x.form) || x.f.String(x.form) != x.form {
				t.Fatalf("form %d of %+q is no fix point", x.f, s)
			}
			if x.f.IsNormal(s) != (x.form == s) {
				t.Fatalf("IsNormal(%d, %+q) is wrong", x.f, s)
			}
		}
		if NFKC.String(c) != k || NFC.String(k) != k {
			t.Fatalf("NFC and NFKC of %+q do not agree", s)
		}
		checkCells(t, s)
	})
}

// checkCells: the spans of the cells cover the text, and those of different
// segments neither overlap nor swap.
func checkCells(t *testing.T, s string) {
	t.Helper()
	for _, f := range []Form{NFC, NFKC} {
		var b Buffer
		b.Decompose(f, s, 0)
		b.Compose()
		covered := make([]bool, len(s))
		done, end := 0, 0 // end of all earlier segments, of this one
		for i, x := range b.Cells {
			if x.Start >= x.End || int(x.End) > len(s) {
				t.Fatalf("cell %d of %+q: span %d..%d", i, s, x.Start, x.End)
			}
			// A cell that came from the same character as the one before is in
			// its segment whatever it is.
			if x.CCC == 0 && Of(x.R)&f.joins() == 0 && int(x.Start) >= end {
				done = end
			}
			if int(x.Start) < done {
				t.Fatalf("cell %d of %+q: begins at %d, before %d", i, s, x.Start, done)
			}
			end = max(end, int(x.End))
			for j := x.Start; j < x.End; j++ {
				covered[j] = true
			}
		}
		if i := slices.Index(covered, false); i >= 0 {
			t.Fatalf("byte %d of %+q is in no cell", i, s)
		}
	}
}

// FuzzSkeleton: never panics, is well-formed, and equivalent texts share it.
func FuzzSkeleton(f *testing.F) {
	addHardTexts(f)
	f.Fuzz(func(t *testing.T, s string) {
		got := string(AppendSkeleton(nil, s))
		if !utf8.ValidString(got) || string(AppendSkeleton(nil, NFC.String(s))) != got {
			t.Fatalf("skeleton of %+q: %+q", s, got)
		}
	})
}
