// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// checkEdited holds ResetEdited against Apply and Reset, which it stands for.
func checkEdited(t interface{ Fatalf(string, ...any) }, v Value, e *Edits, lim Limits) error {
	want := e.Apply([]byte("> "), v)
	var parsed, edited Doc
	parseErr := parsed.Reset(want[2:], lim)
	got, err := edited.ResetEdited([]byte("> "), v, e, lim)
	switch {
	case !bytes.Equal(got, want):
		t.Fatalf("the text is %q, Apply's %q", got, want)
	case err != nil && edited.Root().Exists():
		t.Fatalf("an error, and a document: %v", err)
	case err == nil && parseErr != nil:
		t.Fatalf("%q: no error, Reset says %v", want, parseErr)
	case err != nil:
		return err
	}
	mended := 0
	for i := range edited.nodes {
		if edited.nodes[i].end&isMended != 0 {
			mended++
		}
		edited.nodes[i].end &^= isMended // a second parser finds nothing to mend
	}
	if !slices.Equal(edited.nodes, parsed.nodes) {
		t.Fatalf("%q: entries %v, want %v", want, edited.nodes, parsed.nodes)
	}
	if edited.Mended != mended {
		t.Fatalf("%q: %d mended, %d are marked", want, edited.Mended, mended)
	}
	return nil
}

func TestResetEdited(t *testing.T) {
	const doc = ` { "a" : 1.50 , "b" : [ 1 , "x\u0041" , { "c" : "\ud800" } ] , "d":{} } `
	for _, tt := range []struct {
		name string
		edit func(e *Edits, v Value)
		lim  Limits
		want Code // 0: no error
	}{
		{"nothing", func(*Edits, Value) {}, Limits{}, 0},
		{"a value, blanks around it", func(e *Edits, v Value) { e.Replace(at(v, "a"), []byte(" [ 2 ] ")) }, Limits{}, 0},
		{"a name by a value", func(e *Edits, v Value) { e.Replace(at(v, "a!"), []byte(` "z\n" `)) }, Limits{}, 0},
		{"a name by no string", func(e *Edits, v Value) { e.Replace(at(v, "a!"), []byte(`1`)) }, Limits{}, CodeToken},
		{"a mended text is kept", func(e *Edits, v Value) { e.Surround(at(v, "b", "#2", "c"), "<", ">") }, Limits{}, 0},
		{"no value", func(e *Edits, v Value) { e.Replace(at(v, "a"), []byte("1 1")) }, Limits{}, CodeTrailing},
		{"nothing in the place of a value", func(e *Edits, v Value) { e.Append(v, "e", nil) }, Limits{}, CodeEnd},
		{"a lone surrogate", func(e *Edits, v Value) { e.Append(v, "e", []byte(`"\ud800"`)) }, Limits{MendSurrogates: true}, CodeSurrogate},
		{"a name that is there", func(e *Edits, v Value) { e.ReplaceText(at(v, "a!"), "b") }, Limits{}, CodeDuplicate},
		{"a name that is added, too", func(e *Edits, v Value) { e.ReplaceText(at(v, "a!"), "z"); e.Append(v, "z", []byte("1")) }, Limits{}, CodeDuplicate},
		{"a name by case", func(e *Edits, v Value) { e.Append(v, "A", []byte("1")) }, Limits{FoldedNames: true}, CodeFolded},
		{"a name inside of what is added", func(e *Edits, v Value) { e.Append(v, "e", []byte(`{"a":1,"a":2}`)) }, Limits{}, CodeDuplicate},
		{"too deep", func(e *Edits, v Value) { e.Replace(at(v, "b", "#2", "c"), []byte(`[]`)) }, Limits{Depth: 3}, CodeDepth},
		{"just not too deep", func(e *Edits, v Value) { e.Replace(at(v, "b", "#1"), []byte(`[]`)) }, Limits{Depth: 3}, 0},
		{"too many", func(e *Edits, v Value) { e.AppendElement(at(v, "b"), []byte(`1`)) }, Limits{Values: 12}, CodeValues},
		{"too long", func(e *Edits, v Value) { e.ReplaceText(at(v, "a"), strings.Repeat("x", 64)) }, Limits{Bytes: 64}, CodeBytes},
		{"the root", func(e *Edits, v Value) { e.Replace(v, []byte("0")) }, Limits{}, 0},
		{"no root", func(e *Edits, v Value) { e.Remove(v) }, Limits{}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := parse(t, doc, Limits{MendSurrogates: true})
			var e Edits
			tt.edit(&e, d.Root())
			err := checkEdited(t, d.Root(), &e, tt.lim)
			var got Code
			if err != nil {
				got = err.(*SyntaxError).Code
			}
			if got != tt.want {
				t.Errorf("%v, want code %d", err, tt.want)
			}
		})
	}
	var d Doc
	if _, err := d.ResetEdited(nil, Value{}, new(Edits), Limits{}); err == nil {
		t.Error("a document of nothing")
	}
}

// A part of a document becomes one of its own, and a Doc serves again.
func TestResetEditedPart(t *testing.T) {
	src := parse(t, `{"a":[1,{"b":"\u0041"}],"c":2}`, Limits{})
	var d Doc
	for range 2 {
		var e Edits
		e.ReplaceText(at(src.Root(), "a", "#0"), "one")
		text, err := d.ResetEdited(nil, src.Root().Get("a"), &e, Limits{})
		if want := `["one",{"b":"\u0041"}]`; err != nil || string(text) != want || string(d.Root().Raw()) != want {
			t.Fatalf("%s, %v, want %s", text, err, want)
		}
		if got := at(d.Root(), "#1", "b").Text(); got != "A" {
			t.Errorf("the text inside is %q", got)
		}
	}
}

// FuzzResetEdited edits any document at places and with values that the input chooses.
func FuzzResetEdited(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"x"}],"c":"\ud800"}`), []byte{0, 1, 2, 3, 4, 5, 6, 7}, []byte(`"z"`))
	f.Add([]byte(`[[],{},"a",{"a":{"b":1}}]`), []byte{9, 1, 8, 2, 7, 3}, []byte(`{"a":1,"a":2}`))
	f.Add([]byte(`{"a":1,"b":2}`), []byte{2, 1, 2, 3}, []byte(`b`))
	f.Fuzz(func(t *testing.T, src, plan, raw []byte) {
		var d, one Doc
		lim := Limits{MendSurrogates: true}
		if d.Reset(src, lim) != nil || len(d.nodes) == 0 {
			return
		}
		valid := one.Reset(raw, Limits{}) == nil
		var e Edits
		for len(plan) > 1 && e.Len() < 64 {
			v := Value{&d, uint32(plan[0]) % uint32(len(d.nodes))}
			name, text := fmt.Sprint("n", plan[1]/16), strings.ToValidUTF8(string(raw), "?")
			switch plan[1] % 9 {
			case 0:
				e.Remove(v)
			case 1:
				e.Replace(v, raw)
				valid = valid && !v.isName()
			case 2:
				e.ReplaceText(v, text)
			case 3:
				e.Surround(v, text, "\\")
			case 4:
				if !v.isName() {
					e.Append(v, name, raw)
				}
			case 5:
				e.AppendElement(v, raw)
			case 6:
				e.ReplaceTextWithin(v, "\n", text, "")
			case 7:
				for w := range d.Root().Elements() {
					if w.i >= v.i {
						e.Truncate(w)
						break
					}
				}
			case 8:
				e.ReplaceText(v, name)
			}
			plan = plan[2:]
		}
		err := checkEdited(t, d.Root(), &e, Limits{})
		if err != nil && valid {
			var again Doc
			if again.Reset(e.Apply(nil, d.Root()), Limits{}) == nil {
				t.Fatalf("%v, but Reset accepts %q", err, e.Apply(nil, d.Root()))
			}
		}
	})
}
