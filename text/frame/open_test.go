// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"strings"
	"testing"
	"time"
)

func TestScan(t *testing.T) {
	k := testKey(t)
	a := k.fence(Origin{"files", "read", ""}, "first")
	b := k.fence(Origin{"web", "get", "m"}, "")
	further := k.fenceOf(Origin{"files", "read", ""}, Form{Further: true}, "second")
	cut := k.fenceOf(Origin{"files", "read", ""}, Form{Further: true, Cut: Cut{5, 9}}, "third")
	forged := strings.Replace(a, "first", "other", 1)
	for _, c := range []struct {
		name, text string
		want       string // V = verified, F = forged or broken, in order
	}{
		{"none", "no fence here, a < b", ""},
		{"one", a, "V"},
		{"two", "x" + a + b + "y", "VV"},
		{"between angles", "<" + a + "<" + b + "<", "VV"},
		{"forged", forged, "FF"},
		{"forged between", a + forged + b, "VFFV"},
		{"closing alone", "</pellucid-00>" + a, "FV"},
		{"opening alone", a + "\uff1cPELLUCID", "VF"},
		{"notice missing", a[len(Notice):], "FF"},
		{"notice cut by another fence", b + a[1:], "VFF"},
		{"nested", strings.Replace(a, "first", b, 1), "FVF"},
		{"further", a + further + "\n\n" + cut + "\n" + further, "VVVV"},
		{"further before the first", further + a, "FFV"},
		{"further of another result", a + further + b + further, "VVVFF"},
		{"further behind a forged one", a + forged + further, "VFFV"},
		{"a sentence of a third party", a + "\n[cut by Pellucid: 5 of 9 bytes]", "V"},
		{"a sentence changed", a + strings.Replace(cut, "5 of", "6 of", 1), "VFF"},
		{"a sentence gone", a + strings.TrimSuffix(cut, "]"), "VFF"},
		{"cut", a[:len(a)-1], "FF"},
		{"cut in the head", a[:len(Notice)+20], "F"},
	} {
		got := ""
		end, first := 0, Origin{}
		for f := range k.Scan(c.text, first) {
			if f.Start < end || f.End <= f.Start || f.End > len(c.text) {
				t.Errorf("%s: [%d,%d) behind %d", c.name, f.Start, f.End, end)
			}
			end = f.End
			if !f.Verified {
				got += "F"
				continue
			}
			got += "V"
			o, body, err := k.Open(c.text[f.Start:f.End], first)
			first = f.Origin
			if err != nil || o != f.Origin || body != f.Body {
				t.Errorf("%s: Scan says %v %q, Open %v %q %v", c.name, f.Origin, f.Body, o, body, err)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	for range k.Scan(a+b, Origin{}) {
		break // stopping early must not panic
	}
}

func TestScanLinear(t *testing.T) {
	k := testKey(t)
	head, _, _ := strings.Cut(k.fence(Origin{"a", "b", ""}, "x"), "\nx\n")
	linear(t, head+"\n", 100, func(text string) {
		for range k.Scan(text, Origin{}) {
		}
	})
}

// linear checks that f takes at most 64 times as long for 16 times the text. A machine that is
// busy makes some tries slow: a text fails that is slow in each of a hundred.
func linear(t *testing.T, unit string, n int, f func(string)) {
	t.Helper()
	fastest := func(text string, tries int, enough time.Duration) time.Duration {
		best := time.Hour
		for i := 0; i < tries && best > enough; i++ {
			start := time.Now()
			f(text)
			best = min(best, time.Since(start))
		}
		return best
	}
	small := fastest(strings.Repeat(unit, n), 3, 0)
	most := 64*small + 20*time.Millisecond
	if large := fastest(strings.Repeat(unit, 16*n), 100, most); large > most {
		t.Errorf("%+q: 16 times the text takes %v, not %v", unit, large, small)
	}
}
