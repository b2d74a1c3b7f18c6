// SPDX-License-Identifier: Apache-2.0

//go:build race

package wire

import (
	"bytes"
	"testing"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// TestReleaseOverwrites: what is read of a message after Release is no text.
func TestReleaseOverwrites(t *testing.T) {
	line := append(GetBuffer(64), `{"jsonrpc":"2.0","id":1,"result":{"a":"secret"}}`...)
	m, err := Decode(line, strictjson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m.buf = line
	kept := m.Result.Raw()
	m.Release()
	if want := bytes.Repeat([]byte{0xdb}, len(kept)); !bytes.Equal(kept, want) {
		t.Errorf("%q is left", kept)
	}
}
