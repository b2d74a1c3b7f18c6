// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// at walks down a path of names, given as "name", and indices, given as "#1";
// a last step "name!" is the name itself.
func at(v Value, path ...string) Value {
	for _, step := range path {
		if want, isName := strings.CutSuffix(step, "!"); isName {
			for name := range v.Members() {
				if name.Text() == want {
					return name
				}
			}
			return Value{}
		}
		if step[0] != '#' {
			v = v.Get(step)
			continue
		}
		k, next := int(step[1]-'0'), Value{}
		for e := range v.Elements() {
			if k == 0 {
				next = e
				break
			}
			k--
		}
		v = next
	}
	return v
}

func TestApply(t *testing.T) {
	const doc = ` { "a" : 1.50 , "b" : [ 1 , "x\u0041" , { "c" : null } ] , "d":{} , "e":[ ] } `
	raw := func(s string) []byte { return []byte(s) }
	for _, tt := range []struct {
		name string
		edit func(e *Edits, v Value)
		want string
	}{
		{"nothing", func(e *Edits, v Value) {}, `{ "a" : 1.50 , "b" : [ 1 , "x\u0041" , { "c" : null } ] , "d":{} , "e":[ ] }`},
		{"replace a number", func(e *Edits, v Value) { e.Replace(at(v, "a"), raw("[2]")) }, `{ "a" : [2] , "b" : [ 1 , "x\u0041" , { "c" : null } ] , "d":{} , "e":[ ] }`},
		{"replace a text", func(e *Edits, v Value) { e.ReplaceText(at(v, "b", "#1"), "\n\"") }, `{ "a" : 1.50 , "b" : [ 1 , "\n\"" , { "c" : null } ] , "d":{} , "e":[ ] }`},
		{"surround a text", func(e *Edits, v Value) { e.Surround(at(v, "b", "#1"), "\n<", ">\"") }, `{ "a" : 1.50 , "b" : [ 1 , "\n<x\u0041>\"" , { "c" : null } ] , "d":{} , "e":[ ] }`},
		{"surround what is no text", func(e *Edits, v Value) { e.Surround(at(v, "a"), "<", ">"); e.Surround(Value{}, "<", ">") }, `{ "a" : 1.50 , "b" : [ 1 , "x\u0041" , { "c" : null } ] , "d":{} , "e":[ ] }`},
		{"a text in parts", func(e *Edits, v Value) {
			e.Surround(at(v, "b", "#1"), "no", "")
			e.ReplaceTextWithin(at(v, "b", "#1"), "\n<", at(v, "b", "#1").Text(), ">")
		}, `{ "a" : 1.50 , "b" : [ 1 , "\n<xA>" , { "c" : null } ] , "d":{} , "e":[ ] }`},
		{"replace a name", func(e *Edits, v Value) { e.ReplaceText(at(v, "b", "#2", "c!"), "C") }, `{ "a" : 1.50 , "b" : [ 1 , "x\u0041" , { "C" : null } ] , "d":{} , "e":[ ] }`},
		{"name and value", func(e *Edits, v Value) { e.Replace(at(v, "a"), raw("0")); e.ReplaceText(at(v, "a!"), "z") }, `{ "z" : 0 , "b" : [ 1 , "x\u0041" , { "c" : null } ] , "d":{} , "e":[ ] }`},
		{"remove the first member", func(e *Edits, v Value) { e.Remove(at(v, "a")) }, `{ "b" : [ 1 , "x\u0041" , { "c" : null } ] , "d":{} , "e":[ ] }`},
		{"remove by name", func(e *Edits, v Value) { e.Remove(at(v, "a!")) }, `{ "b" : [ 1 , "x\u0041" , { "c" : null } ] , "d":{} , "e":[ ] }`},
		{"remove a middle member", func(e *Edits, v Value) { e.Remove(at(v, "b")) }, `{ "a" : 1.50 , "d":{} , "e":[ ] }`},
		{"remove the last member", func(e *Edits, v Value) { e.Remove(at(v, "e")) }, `{ "a" : 1.50 , "b" : [ 1 , "x\u0041" , { "c" : null } ] , "d":{} }`},
		{"remove all members", func(e *Edits, v Value) {
			for _, m := range v.Members() {
				e.Remove(m)
			}
		}, `{  }`},
		{"remove the only member", func(e *Edits, v Value) { e.Remove(at(v, "b", "#2", "c")) }, `{ "a" : 1.50 , "b" : [ 1 , "x\u0041" , {  } ] , "d":{} , "e":[ ] }`},
		{"remove elements", func(e *Edits, v Value) { e.Remove(at(v, "b", "#0")); e.Remove(at(v, "b", "#2")) }, `{ "a" : 1.50 , "b" : [ "x\u0041" ] , "d":{} , "e":[ ] }`},
		{"append a member", func(e *Edits, v Value) { e.Append(v, "f", raw("1")) }, `{ "a" : 1.50 , "b" : [ 1 , "x\u0041" , { "c" : null } ] , "d":{} , "e":[ ],"f":1 }`},
		{"append to an empty object", func(e *Edits, v Value) { e.Append(at(v, "d"), "f\n", raw("1")); e.Append(at(v, "d"), "g", raw("2")) }, `{ "a" : 1.50 , "b" : [ 1 , "x\u0041" , { "c" : null } ] , "d":{"f\n":1,"g":2} , "e":[ ] }`},
		{"append a name twice", func(e *Edits, v Value) { e.Append(at(v, "d"), "f", raw("1")); e.Append(at(v, "d"), "f", raw("2")) }, `{ "a" : 1.50 , "b" : [ 1 , "x\u0041" , { "c" : null } ] , "d":{"f":2} , "e":[ ] }`},
		{"append a name that is there", func(e *Edits, v Value) { e.Append(v, "a", raw("2")) }, `{ "a" : 2 , "b" : [ 1 , "x\u0041" , { "c" : null } ] , "d":{} , "e":[ ] }`},
		{"append in place of all", func(e *Edits, v Value) {
			for _, m := range v.Members() {
				e.Remove(m)
			}
			e.Append(v, "z", raw("0"))
		}, `{ "z":0 }`},
		{"append elements", func(e *Edits, v Value) { e.AppendElement(at(v, "b"), raw("9")); e.AppendElement(at(v, "e"), raw("8")) }, `{ "a" : 1.50 , "b" : [ 1 , "x\u0041" , { "c" : null },9 ] , "d":{} , "e":[8 ] }`},
		{"truncate", func(e *Edits, v Value) { e.Truncate(at(v, "b", "#1")); e.Replace(at(v, "b", "#2", "c"), raw("7")) }, `{ "a" : 1.50 , "b" : [ 1] , "d":{} , "e":[ ] }`},
		{"truncate, then append", func(e *Edits, v Value) {
			e.ReplaceText(at(v, "b", "#0"), "x")
			e.Truncate(at(v, "b", "#1"))
			e.AppendElement(at(v, "b"), raw("9"))
			e.Append(v, "z", raw("0"))
		}, `{ "a" : 1.50 , "b" : [ "x",9] , "d":{} , "e":[ ],"z":0 }`},
		{"truncate from the first", func(e *Edits, v Value) { e.Truncate(at(v, "b", "#0")); e.AppendElement(at(v, "b"), raw("9")) }, `{ "a" : 1.50 , "b" : [ 9] , "d":{} , "e":[ ] }`},
		{"wrong kind", func(e *Edits, v Value) { e.AppendElement(v, raw("9")); e.Append(at(v, "e"), "x", raw("8")) }, `{ "a" : 1.50 , "b" : [ 1 , "x\u0041" , { "c" : null } ] , "d":{} , "e":[ ] }`},
		{"last change counts", func(e *Edits, v Value) {
			e.Remove(at(v, "a"))
			e.Replace(at(v, "b"), raw("1"))
			e.ReplaceText(at(v, "b"), "2")
			e.Replace(at(v, "a"), raw("3"))
		}, `{ "a" : 3 , "b" : "2" , "d":{} , "e":[ ] }`},
		{"outermost wins", func(e *Edits, v Value) {
			e.Replace(at(v, "b", "#2", "c"), raw("7"))
			e.Append(at(v, "b", "#2"), "n", raw("7"))
			e.Replace(at(v, "b"), raw("[]"))
			e.ReplaceText(at(v, "a!"), "gone")
			e.Remove(at(v, "a"))
		}, `{ "b" : [] , "d":{} , "e":[ ] }`},
		{"replace the root", func(e *Edits, v Value) { e.Replace(v, raw("0")); e.Remove(at(v, "a")) }, `0`},
		{"remove the root", func(e *Edits, v Value) { e.Remove(v) }, `null`},
	} {
		d := parse(t, doc, Limits{})
		var e Edits
		tt.edit(&e, d.Root())
		for range 2 { // Apply changes nothing
			if got := string(e.Apply([]byte("> "), d.Root())); got != "> "+tt.want {
				t.Errorf("%s:\n got %s\nwant > %s", tt.name, got, tt.want)
			}
		}
	}
}

// Edits of very many values must each cost the same.
func TestApplyMany(t *testing.T) {
	const n = 100_000
	d := parse(t, "["+strings.Repeat(`{"a":1},`, n)+"0]", Limits{})
	var e Edits
	var last Value
	for v := range d.Root().Elements() {
		e.Append(v, "b", []byte("2"))
		e.AppendElement(d.Root(), []byte("3")) // out of order, and all in one place
		last = v
	}
	e.Remove(last)
	want := "[" + strings.TrimSuffix(strings.Repeat(`{"a":1,"b":2},`, n), ",") + strings.Repeat(",3", n+1) + "]"
	if got := string(e.Apply(nil, d.Root())); got != want {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
}

func TestApplyToParts(t *testing.T) {
	d := parse(t, `{"a":[1,2],"b":[3,4],"c":5}`, Limits{})
	var e Edits
	e.Replace(at(d.Root(), "b", "#1"), []byte("x"))
	e.Replace(at(d.Root(), "a", "#0"), []byte("y"))
	for name, want := range map[string]string{"a": "[y,2]", "b": "[3,x]", "c": "5"} {
		if got := string(e.Apply(nil, d.Root().Get(name))); got != want {
			t.Errorf("Apply(%s) = %s, want %s", name, got, want)
		}
	}
	other := parse(t, `[1]`, Limits{})
	if got := string(e.Apply(nil, other.Root())); got != "[1]" {
		t.Errorf("edits of another document: %s", got)
	}
	e.Reset()
	if got := string(e.Apply(nil, d.Root().Get("a"))); e.Len() != 0 || got != "[1,2]" {
		t.Errorf("after Reset: %s", got)
	}
}

func TestApplyMended(t *testing.T) {
	d := parse(t, `{"a":"\ud800","b":1}`, Limits{MendSurrogates: true})
	var e Edits
	e.Remove(d.Root().Get("b"))
	if got := string(e.Apply(nil, d.Root())); got != `{"a":"\ufffd"}` {
		t.Errorf("Apply = %s", got)
	}
}

// A tree is the model against which Edits is checked.
type tree struct {
	open  byte   // '{', '[' or 0
	raw   string // of a leaf
	names []string
	kids  []*tree
	gone  bool
}

func drawTree(t *rapid.T, depth int) *tree {
	kind := rapid.IntRange(0, 3).Draw(t, "kind")
	if depth == 0 || kind < 2 {
		return &tree{raw: rapid.SampledFrom([]string{`1.0`, `"x\u0041"`, `null`, `-0`, `"` + "\u20ac" + `"`, `9007199254740993`}).Draw(t, "leaf")}
	}
	n := &tree{open: "[{"[kind-2]}
	for i := range rapid.IntRange(0, 4).Draw(t, "n") {
		n.names = append(n.names, fmt.Sprintf("%d\n", i))
		n.kids = append(n.kids, drawTree(t, depth-1))
	}
	return n
}

// render appends the tree with the gaps that space draws between its tokens.
func (n *tree) render(dst []byte, space func() string) []byte {
	if n.open == 0 {
		return append(dst, n.raw...)
	}
	dst = append(append(dst, n.open), space()...)
	empty := true
	for i, k := range n.kids {
		if k.gone {
			continue
		}
		if !empty {
			dst = append(append(append(dst, space()...), ','), space()...)
		}
		empty = false
		if n.open == '{' {
			dst = append(append(append(AppendQuote(dst, n.names[i]), space()...), ':'), space()...)
		}
		dst = k.render(dst, space)
	}
	return append(append(dst, space()...), n.open+2)
}

// drawEdits edits the model and the document in the same way, from the inside out.
func drawEdits(t *rapid.T, n *tree, v Value, e *Edits) {
	var vals, names []Value
	for name, val := range v.Members() {
		names, vals = append(names, name), append(vals, val)
	}
	for val := range v.Elements() {
		vals = append(vals, val)
	}
	for i, k := range n.kids {
		drawEdits(t, k, vals[i], e)
		if n.open == '{' && rapid.IntRange(0, 5).Draw(t, "rename") == 0 {
			n.names[i] += "\"new"
			e.ReplaceText(names[i], n.names[i])
		}
		switch rapid.IntRange(0, 10).Draw(t, "op") {
		case 10:
			if n.open == '[' {
				e.Truncate(vals[i])
				n.kids, n.names = n.kids[:i], n.names[:i]
			}
		case 0:
			k.gone = true
			e.Remove(vals[i])
		case 1:
			*k = tree{raw: `"\u0007` + "\u00e9" + `"`}
			e.ReplaceText(vals[i], "\a\u00e9")
		case 2:
			*k = tree{raw: `[1]`}
			e.Replace(vals[i], []byte(`[1]`))
		}
		if len(n.kids) <= i {
			break
		}
	}
	if n.open != 0 && rapid.IntRange(0, 4).Draw(t, "append") == 0 {
		n.names = append(n.names, "added")
		n.kids = append(n.kids, &tree{raw: "7"})
		if n.open == '{' {
			e.Append(v, "added", []byte("7"))
		} else {
			e.AppendElement(v, []byte("7"))
		}
	}
}

func TestApplyModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := drawTree(t, 4)
		spaces := rapid.SampledFrom([]string{"", "", " ", "\n\t"})
		src := model.render(nil, func() string { return spaces.Draw(t, "space") })
		var d Doc
		if err := d.Reset(src, Limits{}); err != nil {
			t.Fatalf("Reset(%s): %v", src, err)
		}
		var e Edits
		if got := e.Apply(nil, d.Root()); string(got) != string(src) {
			t.Fatalf("without edits: %s became %s", src, got)
		}
		drawEdits(t, model, d.Root(), &e)
		if err := checkEdited(t, d.Root(), &e, Limits{}); err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		got := jsontext.Value(e.Apply(nil, d.Root()))
		if err := got.Compact(); err != nil {
			t.Fatalf("%s became %s: %v", src, got, err)
		}
		if want := string(model.render(nil, func() string { return "" })); string(got) != want {
			t.Fatalf("%s became %s, want %s", src, got, want)
		}
	})
}
