// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
)

// parse parses one text under lim or fails the test.
func parse(t testing.TB, src string, lim Limits) *Doc {
	t.Helper()
	d := new(Doc)
	if err := d.Reset([]byte(src), lim); err != nil {
		t.Fatalf("Reset(%+q): %v", src, err)
	}
	return d
}

// verdicts is the one table of what is accepted; it seeds the fuzz targets too.
var verdicts = []struct {
	src  string
	lim  Limits
	code Code // 0 = accepted
	at   int
}{
	// Literals, white space, one text.
	{src: `null`}, {src: `true`}, {src: `false`}, {src: " \t\r\n1 \n"}, {src: `""`}, {src: `[]`}, {src: `{}`}, {src: `[ ]`}, {src: `{ }`},
	{src: ``, code: CodeEnd},
	{src: `  `, code: CodeEnd, at: 2},
	{src: `tru`, code: CodeEnd, at: 3},
	{src: `trux`, code: CodeToken, at: 3},
	{src: `True`, code: CodeToken},
	{src: `nullx`, code: CodeTrailing, at: 4},
	{src: `1 2`, code: CodeTrailing, at: 2},
	{src: "1\x00", code: CodeTrailing, at: 1},
	{src: "1\f", code: CodeTrailing, at: 1},
	{src: "\v1", code: CodeToken},
	{src: "\u00a01", code: CodeToken},
	{src: "\xef\xbb\xbf1", code: CodeBOM},
	{src: "\xef\xbb", code: CodeToken},
	{src: "1\xef\xbb\xbf", code: CodeTrailing, at: 1},
	{src: "\x1e{}", code: CodeToken},
	{src: `NaN`, code: CodeToken}, {src: `Infinity`, code: CodeToken}, {src: `'a'`, code: CodeToken}, {src: `// c`, code: CodeToken},

	// Arrays and objects.
	{src: `[1,2]`}, {src: `{"a":{"b":[{}]}}`},
	{src: `[`, code: CodeEnd, at: 1},
	{src: `[1`, code: CodeEnd, at: 2},
	{src: `[1,`, code: CodeEnd, at: 3},
	{src: `[1,]`, code: CodeToken, at: 3},
	{src: `[,1]`, code: CodeToken, at: 1},
	{src: `[1 2]`, code: CodeToken, at: 3},
	{src: `[1}`, code: CodeToken, at: 2},
	{src: `]`, code: CodeToken},
	{src: `{`, code: CodeEnd, at: 1},
	{src: `{"a"`, code: CodeEnd, at: 4},
	{src: `{"a":`, code: CodeEnd, at: 5},
	{src: `{"a":1`, code: CodeEnd, at: 6},
	{src: `{"a":1,`, code: CodeEnd, at: 7},
	{src: `{"a":1,}`, code: CodeToken, at: 7},
	{src: `{"a" 1}`, code: CodeToken, at: 5},
	{src: `{"a"=1}`, code: CodeToken, at: 4},
	{src: `{a:1}`, code: CodeToken, at: 1},
	{src: `{1:1}`, code: CodeToken, at: 1},
	{src: `{"a":1 "b":2}`, code: CodeToken, at: 7},
	{src: `{"a":}`, code: CodeToken, at: 5},
	{src: `{,}`, code: CodeToken, at: 1},

	// Names.
	{src: `{"a":1,"A":2}`}, {src: `{"":1}`}, {src: `{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}`},
	{src: `{"a":1,"a":2}`, code: CodeDuplicate, at: 7},
	{src: `{"":1,"":2}`, code: CodeDuplicate, at: 6},
	{src: `{"a":1,"\u0061":2}`, code: CodeDuplicate, at: 7},
	{src: `{"\u0061":1,"a":2}`, code: CodeDuplicate, at: 12},
	{src: `{"\ud83d\ude00":1,"` + "\U0001f600" + `":2}`, code: CodeDuplicate, at: 18},
	{src: `{"\/":1,"/":2}`, code: CodeDuplicate, at: 8},
	{src: `[{"x":[{"a":1,"b":1,"a":2}]}]`, code: CodeDuplicate, at: 20},
	{src: `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":0,"c":1}`, code: CodeDuplicate, at: 61},
	{src: `{"a":1,"A":2}`, lim: Limits{FoldedNames: true}, code: CodeFolded, at: 7},
	{src: `{"a":1,"a":2}`, lim: Limits{FoldedNames: true}, code: CodeDuplicate, at: 7},
	{src: `{"k":1,"\u212a":2}`, lim: Limits{FoldedNames: true}, code: CodeFolded, at: 7},
	{src: "{\"s\":1,\"\u017f\":2}", lim: Limits{FoldedNames: true}, code: CodeFolded, at: 7},
	{src: `{"\u0041":1,"\u0061":2}`, lim: Limits{FoldedNames: true}, code: CodeFolded, at: 12},
	{src: `{"a":1,"b":2}`, lim: Limits{FoldedNames: true}},

	// Strings.
	{src: `"\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00"`}, {src: "\"\u00e9\u20ac\U0001f600\u007f\u2028\ufeff\ufffd\""}, {src: `"\u0000"`}, {src: `"\uffff"`},
	{src: `"`, code: CodeEnd, at: 1},
	{src: `"abcdefghijk`, code: CodeEnd, at: 12},
	{src: `"a\`, code: CodeEnd, at: 3},
	{src: `"a\u12`, code: CodeEnd, at: 6},
	{src: `"a\u12"`, code: CodeEscape, at: 2},
	{src: `"\x41"`, code: CodeEscape, at: 1},
	{src: `"\'"`, code: CodeEscape, at: 1},
	{src: `"\U0041"`, code: CodeEscape, at: 1},
	{src: `"\u+041"`, code: CodeEscape, at: 1},
	{src: "\"a\nb\"", code: CodeControl, at: 2},
	{src: "\"12345678\x00\"", code: CodeControl, at: 9},
	{src: "\"\x1f\"", code: CodeControl, at: 1},
	{src: "\"\xff\"", code: CodeUTF8, at: 1},
	{src: "\"ab\xc0\x80\"", code: CodeUTF8, at: 3},
	{src: "\"\xed\xa0\x80\"", code: CodeUTF8, at: 1},
	{src: "\"\xf4\x90\x80\x80\"", code: CodeUTF8, at: 1},
	{src: "\"12345678\xe2\x82\"", code: CodeUTF8, at: 9},
	{src: "\"\xe2\x82", code: CodeUTF8, at: 1},
	{src: "\"\xff\n\"", code: CodeUTF8, at: 1},
	{src: "{\"\x80\":1}", code: CodeUTF8, at: 2},
	{src: "\"\xc3\\n\xa9\"", code: CodeUTF8, at: 1},
	{src: `"\ud800"`, code: CodeSurrogate, at: 1},
	{src: `"a\udc00"`, code: CodeSurrogate, at: 2},
	{src: `"\ud800\ud800"`, code: CodeSurrogate, at: 1},
	{src: `"\ud800\u0041"`, code: CodeSurrogate, at: 1},
	{src: `"\udc00\ud800"`, code: CodeSurrogate, at: 1},
	{src: `{"\ud800":1}`, code: CodeSurrogate, at: 2},
	{src: `"\ud800\udc0`, code: CodeSurrogate, at: 1},
	{src: `"\ud800\ud800\udc00\udc00"`, lim: Limits{MendSurrogates: true}},
	{src: `{"\ud800":1}`, lim: Limits{MendSurrogates: true}, code: CodeSurrogate, at: 2},
	{src: "\"\xed\xa0\x80\"", lim: Limits{MendSurrogates: true}, code: CodeUTF8, at: 1},

	// Numbers.
	{src: `0`}, {src: `-0`}, {src: `-0.0e-0`}, {src: `1E+2`}, {src: `0.5`}, {src: `123456789012345678901234567890`},
	{src: `1.7976931348623157e308`}, {src: `5e-324`}, {src: `0e99999`}, {src: `0e-99999`},
	{src: `01`, code: CodeNumber, at: 1},
	{src: `-01`, code: CodeNumber, at: 2},
	{src: `-`, code: CodeEnd, at: 1},
	{src: `-a`, code: CodeNumber, at: 1},
	{src: `+1`, code: CodeToken},
	{src: `.5`, code: CodeToken},
	{src: `1.`, code: CodeEnd, at: 2},
	{src: `1.e2`, code: CodeNumber, at: 2},
	{src: `1e`, code: CodeEnd, at: 2},
	{src: `1e+`, code: CodeEnd, at: 3},
	{src: `[1e+]`, code: CodeNumber, at: 4},
	{src: `0x10`, code: CodeTrailing, at: 1},
	{src: `1_000`, code: CodeTrailing, at: 1},
	{src: `[1e400]`, code: CodeNumberRange, at: 1},
	{src: `-1.8e308`, code: CodeNumberRange},
	{src: `1e-400`, code: CodeNumberRange},
	{src: `1e9999999999999999999999`, code: CodeNumberRange},
	{src: `1` + strings.Repeat("0", 309), code: CodeNumberRange},
	{src: `1` + strings.Repeat("0", 308)},
	{src: `0.` + strings.Repeat("0", 400) + `1`, code: CodeNumberRange},
	{src: `0.` + strings.Repeat("0", maxNumber-2)},
	{src: `[0.` + strings.Repeat("0", maxNumber-1) + `]`, code: CodeNumberLong, at: 1},

	// Limits.
	{src: `[[1]]`, lim: Limits{Depth: 2}},
	{src: `[[[1]]]`, lim: Limits{Depth: 2}, code: CodeDepth, at: 2},
	{src: `{"a":{"b":{}}}`, lim: Limits{Depth: 2}, code: CodeDepth, at: 10},
	{src: strings.Repeat("[", 128) + strings.Repeat("]", 128)},
	{src: strings.Repeat("[", 129), code: CodeDepth, at: 128},
	{src: strings.Repeat("[", 20_000), lim: Limits{Depth: math.MaxInt}, code: CodeDepth, at: 10_000},
	{src: `[1,2,3]`, lim: Limits{Values: 4}},
	{src: `[1,2,3,4]`, lim: Limits{Values: 4}, code: CodeValues, at: 7},
	{src: `{"a":1}`, lim: Limits{Values: 3}},
	{src: `{"a":1}`, lim: Limits{Values: 2}, code: CodeValues, at: 5},
	{src: `{"a":1}`, lim: Limits{Values: 1}, code: CodeValues, at: 1},
	{src: `[[],{}]`, lim: Limits{Values: 2}, code: CodeValues, at: 4},
	{src: `[true]`, lim: Limits{Values: 1}, code: CodeValues, at: 1},
	{src: `"abcd"`, lim: Limits{Bytes: 6}},
	{src: `"abcd" `, lim: Limits{Bytes: 6}, code: CodeBytes, at: 6},
}

func TestReset(t *testing.T) {
	var d Doc // one for all: what a text leaves behind must not matter
	for _, tt := range verdicts {
		err := d.Reset([]byte(tt.src), tt.lim)
		var syntax *SyntaxError
		if tt.code == 0 {
			if err != nil {
				t.Errorf("Reset(%.80q) = %v, want no error", tt.src, err)
			} else if got := string(d.Root().Raw()); d.Mended == 0 && got != strings.Trim(tt.src, " \t\r\n") {
				t.Errorf("Reset(%.80q): Raw = %q", tt.src, got)
			}
			continue
		}
		if !errors.As(err, &syntax) || syntax.Code != tt.code || syntax.Offset != tt.at {
			t.Errorf("Reset(%.80q) = %v, want %v at %d", tt.src, err, tt.code, tt.at)
		}
		if d.Root().Exists() {
			t.Errorf("Reset(%.80q): a root in spite of the error", tt.src)
		}
	}
}

// Every cut of a text is an error, and no cut breaks anything.
func TestResetTruncated(t *testing.T) {
	src := "{\"a\\u00e9\":[1.5e3,true,null,\"\\ud83d\\ude00 \u20ac\U0001f600\"],\"b\":{\"c\":-0}}"
	for i := range len(src) {
		var d Doc
		if err := d.Reset([]byte(src[:i]), Limits{}); err == nil {
			t.Errorf("Reset(%q): no error", src[:i])
		}
	}
}

func TestErrorsAreConstant(t *testing.T) {
	for c := Code(1); c <= CodeType; c++ {
		if c.String() == "unknown code" {
			t.Errorf("Code %d has no text", c)
		}
	}
	var d Doc
	err := d.Reset([]byte(`{"secret":1,"secret":2}`), Limits{})
	if want := "strictjson: duplicate member name at byte 12"; err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

func TestMend(t *testing.T) {
	src := []byte(`{"k":"a\ud800b","n":"x\uDC00\ud83d\ude00\uDBFF"}`)
	before := string(src)
	var d Doc
	if err := d.Reset(src, Limits{MendSurrogates: true}); err != nil {
		t.Fatal(err)
	}
	if string(src) != before {
		t.Error("the caller's bytes were changed")
	}
	if d.Mended != 3 {
		t.Errorf("Mended = %d, want 3", d.Mended)
	}
	if got, want := string(d.Root().Raw()), `{"k":"a\ufffdb","n":"x\ufffd\ud83d\ude00\ufffd"}`; got != want {
		t.Errorf("Raw = %s, want %s", got, want)
	}
	if got, want := d.Root().Get("n").Text(), "x\ufffd\U0001f600\ufffd"; got != want {
		t.Errorf("Text = %+q, want %+q", got, want)
	}
	for name, v := range d.Root().Members() {
		if name.Mended() || !v.Mended() {
			t.Errorf("Mended: name %v, value %v", name.Mended(), v.Mended())
		}
	}
	if err := d.Reset([]byte(`"a"`), Limits{}); err != nil || d.Mended != 0 || string(d.Root().Raw()) != `"a"` {
		t.Errorf("after a clean text: Mended %d, %v", d.Mended, err)
	}
}

// A million members with colliding fingerprints and long equal prefixes must
// cost a comparison or two each: with all pairs this test would not end.
func TestManyMembers(t *testing.T) {
	for name, member := range map[string]func(b []byte, i int) []byte{
		"short":   func(b []byte, i int) []byte { return strconv.AppendInt(append(b, '"'), int64(i), 10) },
		"escaped": func(b []byte, i int) []byte { return strconv.AppendInt(append(b, `"\u0061`...), int64(i), 10) },
		"prefix": func(b []byte, i int) []byte {
			return strconv.AppendInt(append(b, `"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa`...), int64(i), 10)
		},
	} {
		b := []byte{'{'}
		const n = 400_000
		for i := range n {
			b = append(member(b, i), `":0,`...)
		}
		end := len(b)
		b = append(member(b, n/2), `":0}`...)
		var d Doc
		err := d.Reset(b, Limits{})
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Code != CodeDuplicate || syntax.Offset != end {
			t.Errorf("%s: %v, want duplicate at %d", name, err, end)
		}
		b = append(b[:end-1], '}')
		if err := d.Reset(b, Limits{FoldedNames: name == "escaped"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := d.Root().Len(); got != n {
			t.Errorf("%s: Len = %d", name, got)
		}
	}
}

func TestMemoryIsBoundedAndReturned(t *testing.T) {
	var d Doc
	big := []byte("[" + strings.Repeat("0,", 500_000) + "0]")
	if err := d.Reset(big, Limits{}); err != nil {
		t.Fatal(err)
	}
	if c := cap(d.nodes); c > 2*len(d.nodes) {
		t.Errorf("index of %d entries has room for %d", len(d.nodes), c)
	}
	if err := d.Reset([]byte(`{"small":1}`), Limits{}); err != nil {
		t.Fatal(err)
	}
	if c := cap(d.nodes); c > 1<<16 {
		t.Errorf("after a small text the index still has room for %d entries", c)
	}
}

func TestAllocations(t *testing.T) {
	src := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"plain\n text"}],"isError":false,"n":[1,2.5e10,-3],"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7}}`)
	var d Doc
	var e Edits
	var out []byte
	var sum int
	replacement := []byte(`"new"`)
	if n := testing.AllocsPerRun(100, func() {
		if err := d.Reset(src, Limits{}); err != nil {
			t.Fatal(err)
		}
		result := d.Root().Get("result")
		for c := range result.Get("content").Elements() {
			sum += len(c.Get("type").Text())
			e.Reset()
			e.Replace(c.Get("text"), replacement)
		}
		for name, v := range result.Members() {
			sum += len(name.Text()) + v.Len()
		}
		if _, found := result.Strays([]string{"content", "isError"}); found {
			t.Fatal("stray")
		}
		id, _ := d.Root().Get("id").Int64()
		sum += int(id)
		out = e.Apply(out[:0], d.Root())
	}); n != 0 {
		t.Errorf("%v allocations a message, want 0", n)
	}
}
