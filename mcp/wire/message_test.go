// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// TestMessageLong: a message that a transport has let in can be copied and edited, however
// long the operator lets messages be.
func TestMessageLong(t *testing.T) {
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
	b := newBench(t)
	const lines = "{\n\"a\":1\r\n}"
	shared := []byte(lines)
	v, id := b.begin("2025-11-25")
	resp := b.postTo(v, listBody, []string{"Mcp-Session-Id", id}, func(m *Message) { v.write(NewResult(m.ID, shared)) })
	if got := all(t, resp); !strings.Contains(got, `"result":{ "a":1  }}`) || string(shared) != lines {
		t.Errorf("%q, and %q is left", got, shared)
	}
}
