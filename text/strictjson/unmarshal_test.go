// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type implementation struct {
	Name    string         `json:"name"`
	Version string         `json:"version,omitempty"`
	Count   int8           `json:"count"`
	Extra   map[string]any `json:"extra"`
	Inner   *struct {
		ID string `json:"id"`
	} `json:"inner"`
}

func TestUnmarshal(t *testing.T) {
	for _, tt := range []struct {
		src  string
		code Code
		at   int
	}{
		{src: `{"name":"a","count":3,"extra":{"x":[1]},"inner":{"id":"\u00e9"}}`},
		{src: `{}`},
		{src: `{"Name":"a"}`, code: CodeUnknownMember},
		{src: `{"name":"a","secret-name":1}`, code: CodeUnknownMember},
		{src: `{"inner":{"ID":"a"}}`, code: CodeUnknownMember},
		{src: `{"name":"a","Name":"b"}`, code: CodeFolded, at: 12},
		{src: `{"extra":{"x":1,"X":2}}`, code: CodeFolded, at: 16},
		{src: `{"name":"a","name":"b"}`, code: CodeDuplicate, at: 12},
		{src: `{"name":1}`, code: CodeType},
		{src: `{"count":128}`, code: CodeType},
		{src: `{"count":1.5}`, code: CodeType},
		{src: `{"name":"a"`, code: CodeEnd, at: 11},
		{src: `{"extra":{"x":1e400}}`, code: CodeNumberRange, at: 14},
		{src: `{"name":"\ud800"}`, code: CodeSurrogate, at: 9},
		{src: `[]`, code: CodeType},
	} {
		got := implementation{Name: "before", Extra: map[string]any{"k": "v"}}
		err := Unmarshal([]byte(tt.src), &got, Limits{})
		if tt.code == 0 {
			if err != nil || got.Name == "before" || got.Extra["k"] != nil {
				t.Errorf("Unmarshal(%s) = %+v, %v", tt.src, got, err)
			}
			continue
		}
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Code != tt.code || tt.at != 0 && syntax.Offset != tt.at {
			t.Errorf("Unmarshal(%s): %v, want %v at %d", tt.src, err, tt.code, tt.at)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error quotes the text: %v", err)
		}
		if diff := cmp.Diff(implementation{Name: "before", Extra: map[string]any{"k": "v"}}, got); diff != "" {
			t.Errorf("Unmarshal(%s) touched the variable: %s", tt.src, diff)
		}
	}
	var s string
	if err := Unmarshal([]byte(`"a\udc00"`), &s, Limits{MendSurrogates: true}); err != nil || s != "a\ufffd" {
		t.Errorf("mended: %+q, %v", s, err)
	}
}

func TestUnmarshalWantsPointer(t *testing.T) {
	for _, v := range []any{nil, 1, (*int)(nil)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Unmarshal into %T: no panic", v)
				}
			}()
			_ = Unmarshal([]byte("1"), v, Limits{})
		}()
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, tt := range verdicts {
		f.Add([]byte(tt.src))
	}
	f.Add([]byte(`{"name":"a","count":3,"extra":{"x":[1]},"inner":{"id":"b"}}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		var d Doc
		accepted := d.Reset(src, Limits{FoldedNames: true}) == nil
		got := implementation{Name: "before"}
		err := Unmarshal(src, &got, Limits{})
		if err == nil && !accepted {
			t.Errorf("%q: Unmarshal accepts what Reset refuses", src)
		}
		if err != nil && (got.Name != "before" || got.Inner != nil || got.Extra != nil) {
			t.Errorf("%q: touched in spite of %v", src, err)
		}
		var syntax *SyntaxError
		if err != nil && (!errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > len(src)) {
			t.Errorf("%q: %v", src, err)
		}
		var v any
		if err := Unmarshal(src, &v, Limits{}); (err == nil) != accepted {
			t.Errorf("%q: into any: %v, though Reset says %v", src, err, accepted)
		}
	})
}
