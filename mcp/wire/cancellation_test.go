// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"
	"strings"
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

// TestIDOf: an id keeps its bytes, within a bound.
func TestIDOf(t *testing.T) {
	t.Parallel()
	kept := []string{"1", "-1", "9007199254740991", `"1"`, "1.0", "1e0", "-0", "1.5", "9007199254740993", "18446744073709551616", "-1E+300",
		strings.Repeat("9", maxNumberBytes), `"` + strings.Repeat("x", maxIDBytes) + `"`, `""`, `"a\u0062\/"`}
	refused := []string{"null", "true", "[1]", `{"id":1}`, strings.Repeat("9", maxNumberBytes+1), `"` + strings.Repeat("x", maxIDBytes+1) + `"`}
	for i, src := range slices.Concat(kept, refused) {
		var doc strictjson.Doc
		if err := doc.Reset([]byte(src), strictjson.Limits{}); err != nil {
			t.Fatal(src, err)
		}
		if id, ok := IDOf(doc.Root()); ok != (i < len(kept)) || ok && string(id.Append(nil)) != src {
			t.Errorf("%.20s is %v, %t", src, id, ok)
		}
	}
	if id, ok := IDOf(strictjson.Value{}); ok || id != (ID{}) {
		t.Errorf("nothing is %v, %t", id, ok)
	}
}

// TestAnsweredIDs: an answer finds its request, however the server spells the number that it was given.
func TestAnsweredIDs(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"7": "7", "7.0": "7", "70e-1": "7", `"7"`: "7", "-7.0": "-7", "9007199254740993": "9007199254740993", "7.5": "7.5", "1e300": "1e300",
		`"0x7"`: `"0x7"`, `" 7"`: `" 7"`, `"-7"`: `"-7"`, `"9007199254740993"`: `"9007199254740993"`, `"pellucid-7"`: `"pellucid-7"`, `""`: `""`,
	} {
		for _, body := range []string{`"result":{}`, `"error":{"code":1,"message":""}`} {
			m, err := Decode([]byte(`{"jsonrpc":"2.0","id":`+src+`,`+body+`}`), strictjson.Limits{})
			if err != nil || string(m.ID.Append(nil)) != want {
				t.Errorf("%s: %v, %v", src, m, err)
			}
		}
		if m, err := Decode([]byte(`{"jsonrpc":"2.0","id":`+src+`,"method":"ping"}`), strictjson.Limits{}); err != nil || string(m.ID.Append(nil)) != src {
			t.Errorf("request %s: %v, %v", src, m, err)
		}
	}
	var s envelopeScan
	if s.feed([]byte(`{"id":"7","result":[}`)); true {
		if id, kind := s.envelope(); id != IntID(7) || kind != Response {
			t.Errorf("a broken answer: %v %v", id, kind)
		}
	}
}
