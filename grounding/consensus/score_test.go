// SPDX-License-Identifier: Apache-2.0

package consensus

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

var numerals = []struct {
	in   string
	want Score
	err  error
}{
	{in: "0", want: 0},
	{in: "1", want: One},
	{in: "0.5", want: 500_000},
	{in: "0.50", want: 500_000},
	{in: "5e-1", want: 500_000},
	{in: "0.05E+1", want: 500_000},
	{in: "0.000001", want: 1},
	{in: "1e-6", want: 1},
	{in: "100e-2", want: One},
	{in: "1.000000000", want: One},
	{in: "0.333333", want: 333_333},
	{in: "0e999999999999", want: 0},
	{in: "0.3333333", err: tooPrecise},
	{in: "1e-7", err: tooPrecise},
	{in: "1e-99999999999999999999", err: tooPrecise},
	{in: "1.0000001", err: outOfRange},
	{in: "1.1", err: outOfRange},
	{in: "2", err: outOfRange},
	{in: "10", err: outOfRange},
	{in: "1e1", err: outOfRange},
	{in: "1e99999999999999999999", err: outOfRange},
	{in: "-0.5", err: outOfRange},
	{in: "-0", err: outOfRange},
	{in: "", err: malformed},
	{in: ".5", err: malformed},
	{in: "5.", err: malformed},
	{in: "00.5", err: malformed},
	{in: "+1", err: malformed},
	{in: "1e", err: malformed},
	{in: "1e+", err: malformed},
	{in: "1e1e1", err: malformed},
	{in: "0x1", err: malformed},
	{in: "0.5 ", err: malformed},
	{in: "0,5", err: malformed},
	{in: "NaN", err: malformed},
	{in: "\uff11", err: malformed},
	{in: "0." + strings.Repeat("0", 63), err: tooLong},
}

func TestParseScore(t *testing.T) {
	for _, tt := range numerals {
		if got, err := parseScore(tt.in); got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("ParseScore(%q) = %v, %v; want %v, %v", tt.in, got, err, tt.want, tt.err)
		}
	}
}

// FuzzParseScore compares with exact rationals.
func FuzzParseScore(f *testing.F) {
	for _, tt := range numerals {
		f.Add(tt.in)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parseScore(s)
		if err != nil {
			if got != 0 || err != malformed && err != outOfRange && err != tooPrecise && err != tooLong {
				t.Fatalf("ParseScore(%q) = %v, %v", s, got, err)
			}
			return
		}
		if i := strings.IndexAny(s, "eE"); i >= 0 && len(s)-i > 5 {
			return // more than the oracle should expand
		}
		want, ok := new(big.Rat).SetString(s)
		if !ok || want.Cmp(big.NewRat(int64(got), int64(One))) != 0 {
			t.Fatalf("ParseScore(%q) = %v, want %v", s, got, want)
		}
		if again, err := parseScore(got.String()); err != nil || again != got {
			t.Fatalf("%v is spelled %s and read as %v, %v", got, got, again, err)
		}
	})
}

func TestScoreJSON(t *testing.T) {
	var v struct{ S Score }
	if err := strictjson.Unmarshal([]byte(`{"S":0.25}`), &v, strictjson.Limits{}); err != nil || v.S != One/4 {
		t.Errorf("%v, %v", v.S, err)
	}
	for _, bad := range []string{`"0.25"`, `null`, `2`, `-1`, `[]`} {
		if err := strictjson.Unmarshal([]byte(`{"S":`+bad+`}`), &v, strictjson.Limits{}); err == nil {
			t.Errorf("%s is read as %v", bad, v.S)
		}
	}
	if b, err := Score(250_000).MarshalJSON(); string(b) != "0.25" || err != nil {
		t.Errorf("%s, %v", b, err)
	}
}

func TestWeightString(t *testing.T) {
	for _, tt := range []struct {
		w    Weight
		want string
	}{
		{Weight{}, "0"},
		{Weight{lo: 1}, "0.000000000000000000000001"},
		{product(One, One, One, One), "1"},
		{product(One/2, One/2, One, One), "0.25"},
		{product(800_000, 900_000, One, One), "0.72"},
		{product(1, 1, 1, 1), "0.000000000000000000000001"},
		{product(One, One, One, One).plus(product(One, One, One, One)).plus(product(One/2, One, One, One)), "2.5"},
		{Weight{1<<64 - 1, 1<<64 - 1}, "340282366920938.463463374607431768211455"},
	} {
		if got := tt.w.String(); got != tt.want {
			t.Errorf("%v.String() = %s, want %s", [2]uint64{tt.w.hi, tt.w.lo}, got, tt.want)
		}
	}
}

// TestWeightArithmetic compares with big integers.
func TestWeightArithmetic(t *testing.T) {
	scores := rapid.Custom(func(t *rapid.T) Score {
		return Score(rapid.OneOf(rapid.Uint32Range(0, uint32(One)), rapid.SampledFrom([]uint32{0, 1, uint32(One) - 1, uint32(One)})).Draw(t, "score"))
	})
	toBig := func(w Weight) *big.Int {
		n := new(big.Int).SetUint64(w.hi)
		return n.Lsh(n, 64).Add(n, new(big.Int).SetUint64(w.lo))
	}
	rapid.Check(t, func(t *rapid.T) {
		var sum Weight
		want := new(big.Int)
		for range rapid.IntRange(1, 50).Draw(t, "terms") {
			p := big.NewInt(1)
			var s [4]Score
			for k := range s {
				s[k] = scores.Draw(t, "factor")
				p.Mul(p, big.NewInt(int64(s[k])))
			}
			sum = sum.plus(product(s[0], s[1], s[2], s[3]))
			want.Add(want, p)
		}
		if toBig(sum).Cmp(want) != 0 {
			t.Fatalf("sum %v, want %v", sum, want)
		}
		share := scores.Draw(t, "share")
		for _, x := range [][2]Weight{
			{product(scores.Draw(t, "a"), One, One, One), sum},
			{{rapid.Uint64().Draw(t, "hi"), rapid.Uint64().Draw(t, "lo")}, {rapid.Uint64().Draw(t, "hi"), rapid.Uint64().Draw(t, "lo")}},
		} {
			left := new(big.Int).Mul(toBig(x[0]), big.NewInt(int64(One)))
			right := new(big.Int).Mul(toBig(x[1]), big.NewInt(int64(share)))
			if got := x[0].exceeds(share, x[1]); got != (left.Cmp(right) > 0) {
				t.Fatalf("%v exceeds %v of %v: %v", x[0], share, x[1], got)
			}
		}
	})
}

// TestWeightCarries is about a carry that chance does not find.
func TestWeightCarries(t *testing.T) {
	third := Weight{(1<<64 - 1) / 3, 1<<64 - 1}
	if got, want := third.times(3), [3]uint64{1, 1, 1<<64 - 3}; got != want {
		t.Errorf("%x, want %x", got, want)
	}
}
