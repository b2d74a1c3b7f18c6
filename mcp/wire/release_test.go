// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/reuse"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

// TestReleased: in a checked build each use of a message behind its Release panics, and so does
// each use of a value that was taken out of it before.
func TestReleased(t *testing.T) {
	t.Parallel()
	if !reuse.Checked {
		t.Skip("this build does not check: use -race or -tags checkreuse")
	}
	for name, use := range map[string]func(m *Message, v strictjson.Value){
		"Release":        func(m *Message, _ strictjson.Value) { m.Release() },
		"Body":           func(m *Message, _ strictjson.Value) { m.Body() },
		"Append":         func(m *Message, _ strictjson.Value) { m.Append(nil) },
		"Len":            func(m *Message, _ strictjson.Value) { m.Len() },
		"Edit":           func(m *Message, _ strictjson.Value) { m.Edit(new(strictjson.Edits)) },
		"Edited":         func(m *Message, _ strictjson.Value) { m.Edited(new(strictjson.Edits)) },
		"Clone":          func(m *Message, _ strictjson.Value) { m.Clone() },
		"Keep":           func(m *Message, _ strictjson.Value) { m.Keep() },
		"a value's kind": func(_ *Message, v strictjson.Value) { v.Kind() },
		"a value's text": func(_ *Message, v strictjson.Value) { v.Text() },
		"a member":       func(_ *Message, v strictjson.Value) { v.Get("a") },
	} {
		b := reuse.Copy([]byte(`{"jsonrpc":"2.0","id":1,"result":{"a":"secret"}}`), 0)
		m, err := Decode(b.Bytes(), strictjson.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		m.Owning(b)
		v := m.Result.Get("a")
		if panics(func() { v.Kind() }) {
			t.Fatalf("%s: panics before Release", name)
		}
		m.Release()
		if !panics(func() { use(m, v) }) {
			t.Errorf("%s behind Release does not panic", name)
		}
	}
	m := NewResult(IntID(1), nil)
	free := m.Owning(reuse.NewBuffer(0)).Keep()
	free()
	m.Release()
	if !panics(free) {
		t.Error("what Keep has kept is given back twice, without a panic")
	}
}
