// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"testing"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

func TestNewCancellation(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		of     ID
		reason string
		modern bool
		want   string
	}{
		{IntID(7), "", false, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`},
		{StringID(`a"b`), "timed out", false, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a\"b","reason":"timed out"}}`},
		{IntID(-1), "client gone", true, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":-1,"reason":"client gone","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`},
	} {
		m := NewCancellation(tt.of, tt.reason, tt.modern)
		if got := string(m.Append(nil)); got != tt.want {
			t.Errorf("%s\nwant %s", got, tt.want)
		}
		if m.Kind != Notification || m.Route.Cancels != tt.of {
			t.Errorf("kind %v, cancels %v", m.Kind, m.Route.Cancels)
		}
		back, err := Decode(m.Append(nil), strictjson.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if id, ok := IDOf(back.Params.Get("requestId")); id != tt.of || !ok {
			t.Errorf("it names %v, want %v", id, tt.of)
		}
	}
}

// TestIDOf: a spelling that another program may read as another id is no id.
func TestIDOf(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]ID{
		"1": IntID(1), "-1": IntID(-1), "9007199254740991": IntID(1<<53 - 1), `"1"`: StringID("1"), `"\u0061"`: StringID("a"),
		"1.0": {}, "1e0": {}, "-0": {}, "1.5": {}, "9007199254740993": {}, "null": {}, "true": {}, "[1]": {}, `{"id":1}`: {},
	} {
		var doc strictjson.Doc
		if err := doc.Reset([]byte(src), strictjson.Limits{}); err != nil {
			t.Fatal(src, err)
		}
		if id, ok := IDOf(doc.Root()); id != want || ok == want.IsZero() {
			t.Errorf("%s is %v, %t", src, id, ok)
		}
	}
}
