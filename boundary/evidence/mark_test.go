// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// TestMarks: one content has one mark in the log of an installation, which says nothing to who lacks the key.
func TestMarks(t *testing.T) {
	mark := func(key string, content frame.Digest) int64 {
		m := &memory{}
		r := New(Options{Store: m, MarkKey: []byte(key)})
		d := decision(1)
		d.Fault = gateway.Fault{Kind: string(trust.HiddenMessage), Content: content}
		if err := r.Record(d); err != nil {
			t.Fatal(err)
		}
		r.Close(context.Background())
		e, counts := standing.Of(&m.statements(t)[0].Event)
		if !counts || e.Kind != trust.HiddenMessage || e.Origin != (trust.Origin{Server: "files", Tool: "read"}) {
			t.Fatalf("%+v", e)
		}
		return e.Mark
	}
	a, b := frame.DigestOf("a"), frame.DigestOf("b")
	one := mark("key", a)
	if one == 0 || one != mark("key", a) || one == mark("key", b) || one == mark("other", a) || one == markOf(a[:]) || mark("key", frame.Digest{}) != 0 {
		t.Errorf("%d", one)
	}
}
