// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/gowebpki/jcs"

	"github.com/pellucid-mcp/pellucid/platform/datatest"
)

func TestCanonicalVectors(t *testing.T) {
	dir, err := datatest.Find("../..", "jcs")
	if err != nil {
		t.Skip(err)
	}
	inputs, err := filepath.Glob(filepath.Join(dir, "input", "*.json"))
	if err != nil || len(inputs) == 0 {
		t.Fatalf("%d vectors of RFC 8785: %v", len(inputs), err)
	}
	for _, input := range inputs {
		name := filepath.Base(input)
		src, err := os.ReadFile(input)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(dir, "output", name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Canonical(nil, src, Limits{}); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: got %s, %v; want %s", name, got, err, want)
		}
	}
}

func TestCanonical(t *testing.T) {
	for _, tt := range []struct {
		src, want string
		code      Code
		at        int
	}{
		{src: ` [ ] `, want: `[]`},
		{src: `{ "b" : [ 1 , 2 ] , "a" : { } }`, want: `{"a":{},"b":[1,2]}`},
		{src: `{"aa":1,"a":2,"":3}`, want: `{"":3,"a":2,"aa":1}`},
		{src: `{"\ufb33":1,"\ud83d\ude00":2,"\ud7ff":3,"\ud83d\ude02":4}`, want: "{\"\ud7ff\":3,\"\U0001f600\":2,\"\U0001f602\":4,\"\ufb33\":1}"},
		{src: `{"x":{"d":[{"z":1,"y":2}],"c":2},"b":{"q":1,"p":2}}`, want: `{"b":{"p":2,"q":1},"x":{"c":2,"d":[{"y":2,"z":1}]}}`},
		{src: `"\u0041\/\u001F\u000a\u20ac"`, want: "\"A/\\u001f\\n\u20ac\""},
		{src: `[-0,0.0,-0e5]`, want: `[0,0,0]`},
		{src: `[1.0,1E2,1e21,1e-7,0.000001,100000000000000000000e0]`, want: `[1,100,1e+21,1e-7,0.000001,100000000000000000000]`},
		{src: `[5e-324,1.7976931348623157e308]`, want: `[5e-324,1.7976931348623157e+308]`},
		{src: `[9007199254740992,-9007199254740992,9007199254740991]`, want: `[9007199254740992,-9007199254740992,9007199254740991]`},
		{src: `9007199254740994.0`, want: `9007199254740994`},
		{src: `1E30`, want: `1e+30`},
		{src: `[9007199254740993]`, code: CodeUnsafeInteger, at: 1},
		{src: `[-9007199254740994]`, code: CodeUnsafeInteger, at: 1},
		{src: `[1,9007199254740993.0]`, code: CodeUnsafeInteger, at: 3},
		{src: `9007199254740.993e3`, code: CodeUnsafeInteger},
		{src: `90071992547409930e-1`, code: CodeUnsafeInteger},
		{src: `1000000000000000000000`, code: CodeUnsafeInteger},
		{src: `1e400`, code: CodeNumberRange},
		{src: `{"a":1,"a":1}`, code: CodeDuplicate, at: 7},
		{src: `"\ud800"`, code: CodeSurrogate, at: 1},
	} {
		got, err := Canonical([]byte(">"), []byte(tt.src), Limits{MendSurrogates: true})
		var syntax *SyntaxError
		switch {
		case tt.code == 0 && (err != nil || string(got) != ">"+tt.want):
			t.Errorf("Canonical(%s) = %s, %v; want %s", tt.src, got, err, tt.want)
		case tt.code != 0 && (!errors.As(err, &syntax) || syntax.Code != tt.code || syntax.Offset != tt.at || string(got) != ">"):
			t.Errorf("Canonical(%s) = %s, %v; want %v at %d", tt.src, got, err, tt.code, tt.at)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	for _, tt := range verdicts {
		f.Add([]byte(tt.src))
	}
	f.Add([]byte(`{"\ufb33":1,"\ud83d\ude00":[4.50,1e21],"":-0.0}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		got, err := Canonical(nil, src, Limits{})
		if err != nil {
			return
		}
		again, err := Canonical(nil, got, Limits{})
		if err != nil && !bytes.ContainsAny(src, ".eE") || err == nil && !bytes.Equal(again, got) {
			t.Errorf("%q: %s is not its own canonical form: %s, %v", src, got, again, err)
		}
		oracle, err := jcs.Transform(src)
		if err == nil && !bytes.Equal(got, oracle) {
			t.Errorf("%q: %s, want %s", src, got, oracle)
		}
	})
}
