// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// tokens reads src with jsontext and returns its strings, decoded, in their order.
func tokens(src []byte) (texts []string, err error) {
	dec := jsontext.NewDecoder(bytes.NewReader(src))
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return texts, err
		}
		if tok.Kind() == '"' {
			texts = append(texts, tok.String())
		}
		if dec.StackDepth() == 0 {
			break
		}
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return texts, errors.New("trailing data")
	}
	return texts, nil
}

func texts(dst []string, v Value) []string {
	if v.Kind() == '"' {
		dst = append(dst, v.Text())
	}
	for name, val := range v.Members() {
		dst = texts(append(dst, name.Text()), val)
	}
	for e := range v.Elements() {
		dst = texts(dst, e)
	}
	return dst
}

// checkSpans checks the index against the text it stands for: values are
// separate, in order, and each parses by itself to the same bytes.
func checkSpans(t *testing.T, v Value, end int) {
	if v.Offset() < end {
		t.Fatalf("value at %d begins before %d", v.Offset(), end)
	}
	if raw := v.Raw(); !json.Valid(raw) {
		t.Fatalf("value %q is not JSON", raw)
	}
	end = v.Offset()
	for name, val := range v.Members() {
		checkSpans(t, name, end)
		checkSpans(t, val, name.Offset()+len(name.Raw()))
		end = val.Offset() + len(val.Raw())
	}
	for e := range v.Elements() {
		checkSpans(t, e, end)
		end = e.Offset() + len(e.Raw())
	}
}

// stricter are the reasons to refuse that jsontext does not have.
func stricter(code Code) bool {
	switch code {
	case CodeNumberRange, CodeNumberLong, CodeDepth, CodeValues, CodeBytes:
		return true
	}
	return false
}

func FuzzReset(f *testing.F) {
	for _, tt := range verdicts {
		f.Add([]byte(tt.src))
	}
	var reused Doc
	f.Fuzz(func(t *testing.T, src []byte) {
		before := bytes.Clone(src)
		var d Doc
		err := d.Reset(src, Limits{})
		again := reused.Reset(src, Limits{})
		if (err == nil) != (again == nil) || err != nil && err.Error() != again.Error() {
			t.Fatalf("a reused Doc says %v, a new one %v", again, err)
		}
		want, oracle := tokens(src)
		var syntax *SyntaxError
		if err != nil {
			if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > len(src) {
				t.Fatalf("%v", err)
			}
			if oracle == nil && !stricter(syntax.Code) {
				t.Fatalf("%q: refused (%v), but jsontext accepts", src, err)
			}
		} else {
			if oracle != nil {
				t.Fatalf("%q: accepted, but jsontext says %v", src, oracle)
			}
			got := texts(nil, d.Root())
			if len(got) != len(want) {
				t.Fatalf("%q: strings %q, want %q", src, got, want)
			}
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("%q: string %q, want %q", src, got[i], want[i])
				}
			}
			checkSpans(t, d.Root(), 0)
		}
		fuzzMended(t, src, err)
		if !bytes.Equal(src, before) {
			t.Fatalf("Reset changed the text")
		}
	})
}

// fuzzMended checks that mending accepts no more than lone surrogates, and that
// what it yields is strict.
func fuzzMended(t *testing.T, src []byte, strict error) {
	var d, again Doc
	err := d.Reset(src, Limits{MendSurrogates: true})
	if err != nil {
		if strict == nil {
			t.Fatalf("%q: mending refuses (%v)", src, err)
		}
		return
	}
	if (d.Mended > 0) != (strict != nil) {
		t.Fatalf("%q: %d mended, though strictly %v", src, d.Mended, strict)
	}
	out := new(Edits).Apply(nil, d.Root())
	if err := again.Reset(out, Limits{}); err != nil {
		t.Fatalf("%q: mended form %q: %v", src, out, err)
	}
	for _, s := range texts(nil, d.Root()) {
		if !utf8.ValidString(s) {
			t.Fatalf("%q: text %q", src, s)
		}
	}
}

// FuzzEdits drives edits by the bytes of ops, one for each value met, and
// checks that what is emitted is one strict text.
func FuzzEdits(f *testing.F) {
	for i, tt := range verdicts {
		f.Add([]byte(tt.src), []byte{byte(i), byte(i >> 2), 1, 2, 3, 4, 5})
	}
	f.Add([]byte(`{"a":[1,{"b":2,"c":[]}],"d":{}}`), []byte{0, 5, 3, 1, 4, 2, 3, 3, 5})
	f.Fuzz(func(t *testing.T, src, ops []byte) {
		var d, again Doc
		if d.Reset(src, Limits{MendSurrogates: true}) != nil {
			return
		}
		var e Edits
		if got := e.Apply(nil, d.Root()); !bytes.Equal(got, d.Root().Raw()) {
			t.Fatalf("without edits: %q", got)
		}
		var walk func(v Value)
		walk = func(v Value) {
			if len(ops) == 0 {
				return
			}
			op := ops[0]
			ops = ops[1:]
			inside := func() {
				for name, val := range v.Members() {
					if op&8 != 0 {
						e.ReplaceText(name, name.Text()) // so that names stay different
					}
					walk(val)
				}
				for el := range v.Elements() {
					walk(el)
				}
			}
			if op&16 != 0 {
				inside()
			}
			switch op & 7 {
			case 1:
				e.Remove(v)
			case 2:
				e.Replace(v, []byte(`{"r":[]}`))
			case 3:
				e.ReplaceText(v, string(ops))
			case 4:
				e.Append(v, string(ops), []byte(`"new"`))
			case 5:
				e.AppendElement(v, []byte(`[]`))
			case 6:
				e.Surround(v, string(ops), "\x00\"")
			case 7:
				e.ReplaceTextWithin(v, "\n", v.Text(), string(ops))
			}
			if op&16 == 0 {
				inside()
			}
		}
		walk(d.Root())
		out := e.Apply(nil, d.Root())
		if err := again.Reset(out, Limits{}); err != nil {
			t.Fatalf("%q became %q: %v", src, out, err)
		}
		if twice := e.Apply(nil, d.Root()); !bytes.Equal(out, twice) {
			t.Fatalf("%q became %q, then %q", src, out, twice)
		}
	})
}
