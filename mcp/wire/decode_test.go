// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/reuse"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// decodeTests also seed the fuzzers. Where refused is empty the message is
// accepted with the given kind, id and method.
var decodeTests = []struct {
	in      string
	kind    Kind
	id      string
	method  string
	code    int
	refused string // part of the reason
}{
	{in: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`, kind: Request, id: `1`, method: "tools/call"},
	{in: `{"jsonrpc":"2.0","id":"a\u0062","method":"ping"}`, kind: Request, id: `"a\u0062"`, method: "ping"},
	{in: `{"jsonrpc":"2.0","id":-9007199254740992,"method":"ping"}`, kind: Request, id: `-9007199254740992`, method: "ping"},
	{in: ` {"method":"notifications/initialized","jsonrpc":"2.0"} `, kind: Notification, method: "notifications/initialized"},
	{in: `{"result":{},"jsonrpc":"2.0","id":0}`, kind: Response, id: `0`},
	{in: `{"jsonrpc":"2.0","id":"","result":{"a":1e400000}}`, code: CodeParse, refused: "number out of range", id: `""`, kind: Response},
	{in: `{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"no","data":[1]}}`, kind: ErrorResponse, id: `"x"`},
	{in: `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":""}}`, kind: ErrorResponse},
	{in: `{"jsonrpc":"2.0","error":{"code":0,"message":"","stack":"kept"}}`, kind: ErrorResponse},

	{in: ``, code: CodeParse, refused: "unexpected end"},
	{in: `hello`, code: CodeParse, refused: "unexpected byte"},
	{in: `{"jsonrpc":"2.0","id":7,"method":"a"}{}`, code: CodeParse, refused: "data after", id: `7`, kind: Request},
	{in: `{"jsonrpc":"2.0","id":7,"method":"a","id":8}`, code: CodeParse, refused: "duplicate", kind: Request},
	{in: `{"jsonrpc":"2.0","id":7,"result":{"t":"` + "\xff" + `"}}`, code: CodeParse, refused: "UTF-8", id: `7`, kind: Response},
	{in: `{"result":{"t":"` + "\x01" + `"},"jsonrpc":"2.0","id":"q\"r"}`, code: CodeParse, refused: "control", id: `"q\"r"`, kind: Response},
	{in: `{"result":{"id":3,"t":"\ud800"},"id":9,"jsonrpc":"2.0"}`, code: CodeParse, refused: "surrogate", id: `9`, kind: Response},
	{in: `[]`, code: CodeInvalid, refused: "batch"},
	{in: `"text"`, code: CodeInvalid, refused: "not a JSON object"},
	{in: `{}`, code: CodeInvalid, refused: `jsonrpc is not "2.0"`},
	{in: `{"jsonrpc":"1.0","id":1,"method":"a"}`, code: CodeInvalid, refused: `jsonrpc is not`, id: `1`, kind: Request},
	{in: `{"jsonrpc":2.0,"id":1,"method":"a"}`, code: CodeInvalid, refused: `jsonrpc is not`, id: `1`, kind: Request},
	{in: `{"jsonrpc":"2.0","id":1}`, code: CodeInvalid, refused: "neither a request nor", id: `1`},
	{in: `{"jsonrpc":"2.0","id":1,"method":"a","extra":1}`, code: CodeInvalid, refused: "unknown member", id: `1`, kind: Request},
	{in: `{"jsonrpc":"2.0","id":1,"method":"a","Method":"b"}`, code: CodeInvalid, refused: "unknown member", id: `1`, kind: Request},
	{in: `{"jsonrpc":"2.0","id":1,"re` + "\u017f" + `ult":{}}`, code: CodeInvalid, refused: "unknown member", id: `1`},
	{in: `{"jsonrpc":"2.0","id":null,"method":"a"}`, code: CodeInvalid, refused: "null id", kind: Request},
	{in: `{"jsonrpc":"2.0","id":1.0,"method":"a"}`, kind: Request, id: `1.0`, method: "a"},
	{in: `{"jsonrpc":"2.0","id":1e2,"method":"a"}`, kind: Request, id: `1e2`, method: "a"},
	{in: `{"jsonrpc":"2.0","id":-0,"method":"a"}`, kind: Request, id: `-0`, method: "a"},
	{in: `{"jsonrpc":"2.0","id":9007199254740993,"method":"a"}`, kind: Request, id: `9007199254740993`, method: "a"},
	{in: `{"jsonrpc":"2.0","id":true,"method":"a"}`, code: CodeInvalid, refused: "id is neither", kind: Request},
	{in: `{"jsonrpc":"2.0","id":{},"result":{}}`, code: CodeInvalid, refused: "id is neither", kind: Response},
	{in: `{"jsonrpc":"2.0","id":"` + strings.Repeat("i", 4097) + `","result":{}}`, code: CodeInvalid, refused: "id is neither", kind: Response},
	{in: `{"jsonrpc":"2.0","id":1,"method":""}`, code: CodeInvalid, refused: "method is not", id: `1`, kind: Request},
	{in: `{"jsonrpc":"2.0","id":1,"method":"a b"}`, code: CodeInvalid, refused: "method is not", id: `1`, kind: Request},
	{in: `{"jsonrpc":"2.0","id":1,"method":"a\u202e"}`, code: CodeInvalid, refused: "method is not", id: `1`, kind: Request},
	{in: `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("m", 257) + `"}`, code: CodeInvalid, refused: "method is not", id: `1`, kind: Request},
	{in: `{"jsonrpc":"2.0","id":1,"method":7}`, code: CodeInvalid, refused: "method is not", id: `1`, kind: Request},
	{in: `{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}`, code: CodeInvalid, refused: "params is not", id: `1`, kind: Request},
	{in: `{"jsonrpc":"2.0","id":1,"method":"a","params":null}`, code: CodeInvalid, refused: "params is not", id: `1`, kind: Request},
	{in: `{"jsonrpc":"2.0","id":1,"method":"a","result":{}}`, code: CodeInvalid, refused: "both a request", id: `1`, kind: Request},
	{in: `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`, code: CodeInvalid, refused: "both a result", id: `1`, kind: ErrorResponse},
	{in: `{"jsonrpc":"2.0","id":1,"result":{},"params":{}}`, code: CodeInvalid, refused: "params in a response", id: `1`, kind: Response},
	{in: `{"jsonrpc":"2.0","result":{}}`, code: CodeInvalid, refused: "without an id", kind: Response},
	{in: `{"jsonrpc":"2.0","id":null,"result":{}}`, code: CodeInvalid, refused: "without an id", kind: Response},
	{in: `{"jsonrpc":"2.0","id":1,"result":"text"}`, code: CodeInvalid, refused: "result is not", id: `1`, kind: Response},
	{in: `{"jsonrpc":"2.0","id":1,"error":"text"}`, code: CodeInvalid, refused: "error is not", id: `1`, kind: ErrorResponse},
	{in: `{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":""}}`, code: CodeInvalid, refused: "error code", id: `1`, kind: ErrorResponse},
	{in: `{"jsonrpc":"2.0","id":1,"error":{"code":1}}`, code: CodeInvalid, refused: "error message", id: `1`, kind: ErrorResponse},
	{in: `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"","MESSAGE":""}}`, code: CodeInvalid, refused: "case variant", id: `1`, kind: ErrorResponse},
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, tt := range decodeTests {
		m, err := Decode([]byte(tt.in), strictjson.Limits{})
		if tt.refused == "" {
			if err != nil {
				t.Errorf("%.80s: %v", tt.in, err)
			} else if m.Kind != tt.kind || m.ID.raw != tt.id || m.Method != tt.method || m.Local {
				t.Errorf("%.80s: kind %d id %s method %s", tt.in, m.Kind, m.ID.raw, m.Method)
			}
			continue
		}
		var v *Violation
		if !errors.As(err, &v) {
			t.Errorf("%.80q: accepted", tt.in)
			continue
		}
		if v.Code != tt.code || !strings.Contains(v.Reason, tt.refused) || v.ID.raw != tt.id || v.Kind != tt.kind {
			t.Errorf("%.80q: %+v", tt.in, v)
		}
	}
}

// What a peer chose stands in no error text.
func TestViolationIsConstant(t *testing.T) {
	t.Parallel()
	const marker = "IGNOREPREVIOUS"
	for _, in := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"a","` + marker + `":1}`,
		`{"jsonrpc":"` + marker + `","id":1,"method":"a"}`,
		marker,
		`{"jsonrpc":"2.0","id":1,"method":"` + marker + ` x"}`,
	} {
		_, err := Decode([]byte(in), strictjson.Limits{})
		if err == nil || strings.Contains(err.Error(), marker) {
			t.Errorf("%s: error %v", in, err)
		}
		var v *Violation
		if errors.As(err, &v) && !strings.Contains(v.Excerpt, `"`) {
			t.Errorf("%s: no excerpt for the operator", in)
		}
	}
}

func TestDecodeBatch(t *testing.T) {
	t.Parallel()
	type got struct {
		kind Kind
		id   string
		bad  string
	}
	for _, tt := range []struct {
		in   string
		want []got
	}{
		{`[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"b"}]`, []got{{Request, "1", ""}, {Notification, "", ""}}},
		{`[{"jsonrpc":"2.0","id":1,"method":"a"},5,{"jsonrpc":"2.0","id":2}]`, []got{{Request, "1", ""}, {0, "", "not a JSON object"}, {0, "2", "neither"}}},
		{`{"jsonrpc":"2.0","id":1,"method":"a"}`, []got{{Request, "1", ""}}},
		{`[]`, []got{{0, "", "empty batch"}}},
		{`[[]]`, []got{{0, "", "a batch"}}},
		{`[` + strings.Repeat(`1,`, 256) + `1]`, []got{{0, "", "more than 256"}}},
		{`[`, []got{{0, "", "unexpected end"}}},
	} {
		i := 0
		for m, err := range decodeBatch([]byte(tt.in), strictjson.Limits{}) {
			if i >= len(tt.want) {
				t.Fatalf("%.60s: more than %d messages", tt.in, len(tt.want))
			}
			w := tt.want[i]
			var v *Violation
			switch {
			case errors.As(err, &v):
				if w.bad == "" || !strings.Contains(v.Reason, w.bad) || v.ID.raw != w.id {
					t.Errorf("%.60s: element %d: %+v", tt.in, i, v)
				}
			case w.bad != "" || m.Kind != w.kind || m.ID.raw != w.id:
				t.Errorf("%.60s: element %d: %+v", tt.in, i, m)
			}
			i++
		}
		if i != len(tt.want) {
			t.Errorf("%.60s: %d messages, want %d", tt.in, i, len(tt.want))
		}
	}
}

func TestAppend(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ got, want string }{
		{string(NewRequest(IntID(4), "a/b", []byte(`{"x":1.50}`)).Append(nil)), `{"jsonrpc":"2.0","id":4,"method":"a/b","params":{"x":1.50}}`},
		{string(NewRequest(ID{}, "n", nil).Append(nil)), `{"jsonrpc":"2.0","method":"n"}`},
		{string(NewResult(StringID("a\"\n"), []byte(`{}`)).Append(nil)), `{"jsonrpc":"2.0","id":"a\"\n","result":{}}`},
		{string(NewError(ID{}, []byte(`{"code":1,"message":""}`)).Append(nil)), `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`},
	} {
		if tt.got != tt.want {
			t.Errorf("%s, want %s", tt.got, tt.want)
		}
	}
	if n, ok := IntID(-5).Int(); n != -5 || !ok {
		t.Errorf("Int = %d, %v", n, ok)
	}
	if _, ok := StringID("5").Int(); ok {
		t.Error(`"5" is no integer`)
	}
}

func TestReleaseKeepsIDAndMethod(t *testing.T) {
	t.Parallel()
	b := []byte(`{"jsonrpc":"2.0","id":"name","method":"first"}`)
	m, err := Decode(b, strictjson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m.Owning(new(reuse.Buffer)).buf.Set(b)
	id, method := m.ID, m.Method
	m.Release()
	copy(b, strings.Repeat("x", len(b)))
	if id != StringID("name") || method != "first" {
		t.Errorf("id %q and method %q changed with the buffer", id.raw, method)
	}
}

func FuzzDecode(f *testing.F) {
	for _, tt := range decodeTests {
		f.Add([]byte(tt.in))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b, strictjson.Limits{Bytes: 1 << 16})
		if err != nil {
			var v *Violation
			if !errors.As(err, &v) || v.Code == 0 || v.Reason == "" || len(v.Excerpt) > 1000 {
				t.Fatalf("not a violation: %#v", err)
			}
			return
		}
		// What was accepted is accepted, and the same, once re-emitted.
		var out []byte
		switch m.Kind {
		case Request, Notification:
			out = NewRequest(m.ID, m.Method, m.Params.Raw()).Append(nil)
		case Response:
			out = NewResult(m.ID, m.Result.Raw()).Append(nil)
		case ErrorResponse:
			out = NewError(m.ID, m.Error.Raw()).Append(nil)
		default:
			t.Fatalf("kind %d", m.Kind)
		}
		m2, err := Decode(out, strictjson.Limits{})
		if err != nil || m2.Kind != m.Kind || m2.ID != m.ID || m2.Method != m.Method {
			t.Fatalf("%q re-emitted as %q: %v", b, out, err)
		}
	})
}

func FuzzEnvelopeScan(f *testing.F) {
	for _, tt := range decodeTests {
		f.Add([]byte(tt.in), 7)
	}
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		var whole envelopeScan
		whole.feed(b)
		id, kind := whole.envelope()
		// The result does not depend on how the text was cut.
		var pieces envelopeScan
		for rest := b; len(rest) > 0; {
			n := min(len(rest), 1+max(0, cut)%64)
			pieces.feed(rest[:n])
			rest = rest[n:]
		}
		if id2, kind2 := pieces.envelope(); id2 != id || kind2 != kind {
			t.Fatalf("whole: %v %d, in pieces: %v %d", id, kind, id2, kind2)
		}
		// It agrees with the parser where there is something to agree on.
		if m, err := Decode(b, strictjson.Limits{}); err == nil && (m.ID != id || m.Kind != kind) {
			// Escapes in names, and id null, are beyond the scan.
			if !strings.Contains(string(b), `\`) && !m.ID.IsZero() {
				t.Fatalf("scan: %v %d, parser: %v %d", id, kind, m.ID, m.Kind)
			}
		}
	})
}
