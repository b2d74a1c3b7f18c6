// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/reuse"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// TestMessageLong: a message that a transport has let in can be copied and edited, however
// long the operator lets messages be.
func TestMessageLong(t *testing.T) {
	t.Parallel()
	const size = 41 << 20
	m, err := Decode(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"m","params":{"a":%q}}`, strings.Repeat("x", size)),
		strictjson.Limits{Bytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if n := m.Clone().Len(); n != m.Len() {
		t.Errorf("the copy has %d bytes, want %d", n, m.Len())
	}
	var e strictjson.Edits
	e.Append(m.Params, "b", []byte("1"))
	if err := m.Edit(&e); err != nil || m.Params.Get("b").Text() != "" || m.Params.Len() != 2 {
		t.Errorf("%v, %d members", err, m.Params.Len())
	}
}

// TestFrontSharedBytes: what a message carries may be another's too. A stream writes it in one
// line and leaves it as it is.
func TestFrontSharedBytes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const lines = "{\n\"a\":1\r\n}"
	shared := []byte(lines)
	v, id := b.begin("2025-11-25")
	resp := b.postTo(v, listBody, []string{"Mcp-Session-Id", id}, func(m *Message) { v.write(NewResult(m.ID, shared)) })
	if got := all(t, resp); !strings.Contains(got, `"result":{ "a":1  }}`) || string(shared) != lines {
		t.Errorf("%q, and %q is left", got, shared)
	}
}

// TestKeep: what is kept outlives the message, for every reader beside it, and is given back
// once, by the last of them.
func TestKeep(t *testing.T) {
	t.Parallel()
	b := reuse.Copy([]byte(`{"jsonrpc":"2.0","id":1,"result":{"a":"\ud800"}}`), 0)
	m, err := Decode(b.Bytes(), strictjson.Limits{MendSurrogates: true})
	if err != nil {
		t.Fatal(err)
	}
	m.Owning(b)
	body := m.Body()
	first, second := m.Keep(), m.Keep()
	first()
	m.Release()
	if got := string(body); got != `{"a":"\ufffd"}` {
		t.Errorf("%q behind Release", got)
	}
	second()
	if reuse.Checked && !panics(func() { b.Bytes() }) {
		t.Error("the bytes were not given back")
	}
	NewResult(IntID(1), []byte(`{}`)).Keep()() // of no pool
}

// TestKeepEdited: an edit has memory of its own, and leaves what is kept as it is.
func TestKeepEdited(t *testing.T) {
	t.Parallel()
	b := reuse.Copy([]byte(`{"jsonrpc":"2.0","id":1,"result":{"a":1}}`), 0)
	m, err := Decode(b.Bytes(), strictjson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m.Owning(b)
	body, free := m.Body(), m.Keep()
	var e strictjson.Edits
	e.Replace(m.Result.Get("a"), []byte("2"))
	if err := m.Edit(&e); err != nil {
		t.Fatal(err)
	}
	if got := string(body) + string(m.Body()); got != `{"a":1}{"a":2}` {
		t.Errorf("%q", got)
	}
	m.Release()
	free()
}
