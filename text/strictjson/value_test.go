// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"slices"
	"strings"
	"testing"
	"unsafe"
)

func TestValue(t *testing.T) {
	const src = ` {"s":"a\nb","n":-12,"t":true,"f":false,"z":null,"o":{"x":1,"y":{"q":[]}},"a":[1,[2,3],"x"],"\u0065sc":7} `
	d := parse(t, src, Limits{})
	root := d.Root()
	for name, want := range map[string]Kind{"s": '"', "n": '0', "t": 't', "f": 'f', "z": 'n', "o": '{', "a": '[', "esc": '0', "absent": 0, "S": 0} {
		if got := root.Get(name).Kind(); got != want {
			t.Errorf("Get(%q).Kind() = %c, want %c", name, got, want)
		}
		if got := root.Get(name).Exists(); got != (want != 0) {
			t.Errorf("Get(%q).Exists() = %v", name, got)
		}
	}
	var names []string
	for name, val := range root.Members() {
		if !name.isName() || val.isName() {
			t.Errorf("IsName wrong at %q", name.Text())
		}
		names = append(names, name.Text())
	}
	if want := []string{"s", "n", "t", "f", "z", "o", "a", "esc"}; !slices.Equal(names, want) {
		t.Errorf("names = %q, want %q", names, want)
	}
	var elements []string
	for e := range root.Get("a").Elements() {
		elements = append(elements, string(e.Raw()))
	}
	if want := []string{"1", "[2,3]", `"x"`}; !slices.Equal(elements, want) {
		t.Errorf("elements = %q, want %q", elements, want)
	}
	if root.Len() != 8 || root.Get("a").Len() != 3 || root.Get("o").Len() != 2 || root.Get("s").Len() != 0 {
		t.Error("Len is wrong")
	}
	if got := root.Get("o").Offset(); got != strings.Index(src, `{"x"`) {
		t.Errorf("Offset = %d", got)
	}
	if got := string(root.Get("s").AppendText([]byte("<"))); got != "<a\nb" {
		t.Errorf("AppendText = %q", got)
	}
	if v, ok := root.Get("t").Bool(); !v || !ok {
		t.Error("Bool of true")
	}
	if v, ok := root.Get("f").Bool(); v || !ok {
		t.Error("Bool of false")
	}
	if _, ok := root.Get("z").Bool(); ok {
		t.Error("Bool of null")
	}
	for range root.Get("a").Members() {
		t.Error("an array has members")
	}
	for range root.Elements() {
		t.Error("an object has elements")
	}
}

func TestAbsent(t *testing.T) {
	var v Value
	var d Doc
	if v != d.Root() || v.Exists() || v.Kind() != 0 || v.Raw() != nil || v.Text() != "" || v.Len() != 0 || v.Offset() != 0 || v.Mended() || v.isName() || v.Get("a").Exists() {
		t.Error("an absent value is something")
	}
	if _, ok := v.Int64(); ok {
		t.Error("an absent value is a number")
	}
	var e Edits
	e.Replace(v, []byte("1"))
	e.Remove(v)
	e.Append(v, "a", []byte("1"))
	if e.Len() != 0 || len(e.Apply(nil, v)) != 0 {
		t.Error("edits of an absent value do something")
	}
}

func TestTextAliases(t *testing.T) {
	src := []byte(`["plain","esc\u0061ped"]`)
	var d Doc
	if err := d.Reset(src, Limits{}); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for e := range d.Root().Elements() {
		texts = append(texts, e.Text())
	}
	if unsafe.StringData(texts[0]) != &src[2] {
		t.Error("a string without escapes was copied")
	}
	if texts[1] != "escaped" {
		t.Errorf("Text = %q", texts[1])
	}
}

func TestInt64(t *testing.T) {
	for _, tt := range []struct {
		src  string
		want int64
		ok   bool
	}{
		{"0", 0, true}, {"-1", -1, true}, {"9007199254740993", 9007199254740993, true},
		{"9223372036854775807", 9223372036854775807, true}, {"-9223372036854775808", -9223372036854775808, true},
		{"9223372036854775808", 0, false}, {"-9223372036854775809", 0, false}, {"100000000000000000000000", 0, false},
		{"-0", 0, false}, {"1.0", 0, false}, {"1e3", 0, false}, {`"1"`, 0, false}, {"true", 0, false},
	} {
		got, ok := parse(t, tt.src, Limits{}).Root().Int64()
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("Int64 of %s = %d, %v", tt.src, got, ok)
		}
	}
}

func TestStrays(t *testing.T) {
	known := []string{"method", "id", "params", "task"}
	for src, want := range map[string]string{
		`{"method":1,"id":2,"other":3}`:         "",
		`{"Method":1}`:                          "Method",
		`{"method":1,"METHOD":2}`:               "METHOD",
		`{"\u004dethod":1}`:                     "Method",
		`{"param\u017f":1}`:                     "param\u017f",
		"{\"tas\u212a\":1}":                     "tas\u212a",
		`{"methods":1,"i":2,"\u0131d":3,"":4}`:  "",
		`{"x":{"Method":1}}`:                    "",
		`["Method"]`:                            "",
		`{"\u006dethod":1,"ID":2,"PARAMS":[1]}`: "ID",
	} {
		name, found := parse(t, src, Limits{}).Root().Strays(known)
		if found != (want != "") || name.Text() != want {
			t.Errorf("Strays of %s = %+q, %v; want %+q", src, name.Text(), found, want)
		}
	}
}

func TestAppendStrings(t *testing.T) {
	for want, list := range map[string][]string{`[]`: nil, `["a\"\n"]`: {"a\"\n"}, `["",":"]`: {"", ":"}} {
		if got := string(AppendStrings(nil, list)); got != want {
			t.Errorf("%q: %s, want %s", list, got, want)
		}
	}
}

func TestAppendQuote(t *testing.T) {
	for s, want := range map[string]string{
		"":                          `""`,
		"a/<>&'\u00e9\u2028\u007f":  "\"a/<>&'\u00e9\u2028\u007f\"",
		"\"\\\b\f\n\r\t":            `"\"\\\b\f\n\r\t"`,
		"\x00\x1f\x0b":              `"\u0000\u001f\u000b"`,
		"a\xffb\xed\xa0\x80":        "\"a\ufffdb\ufffd\ufffd\ufffd\"",
		"\xc3\n\xa9":                "\"\ufffd\\n\ufffd\"",
		"12345678\x01\U0001f600\"x": "\"12345678\\u0001\U0001f600\\\"x\"",
	} {
		if got := string(AppendQuote(nil, s)); got != want {
			t.Errorf("AppendQuote(%+q) = %+q, want %+q", s, got, want)
		}
	}
}
