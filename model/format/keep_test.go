// SPDX-License-Identifier: Apache-2.0

package format_test

import (
	"testing"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/eventstream"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// TestKeeps: of which requests the provider keeps the answer, as far as the request shows it whole.
func TestKeeps(t *testing.T) {
	for src, want := range map[string]bool{
		`{"input":"x"}`:                                  true,
		`{"input":"x","store":true}`:                     true,
		`{"input":"x","store":null}`:                     true,
		`{"input":"x","store":false}`:                    false,
		`{"input":"x","conversation":"c"}`:               false,
		`{"input":"x","conversation":null}`:              true,
		`{"input":"x","prompt":{"id":"p"}}`:              false,
		`{"input":[{"type":"item_reference","id":"i"}]}`: false,
	} {
		if a := format.Of(format.Responses).Asks(format.Parse([]byte(src))); a.Keeps != want {
			t.Errorf("%s: %v", src, a.Keeps)
		}
	}
	for _, f := range format.All {
		if _, keeps := f.(format.Keeper); keeps != (f.Name() == format.Responses) {
			t.Errorf("%s: %v", f.Name(), keeps)
		}
	}
}

// TestTurns: what was said, up to an answer and with the next request.
func TestTurns(t *testing.T) {
	f := format.Of(format.Responses).(format.Keeper)
	const answer = `{"id":"r","status":"completed","output":[{"type":"reasoning","id":"rs_1"},{"type":"function_call","id":"fc_1","call_id":"c","name":"read","arguments":"{}"}]}`
	const call = `{"type":"function_call","id":"fc_1","call_id":"c","name":"read","arguments":"{}"}`
	for _, tt := range []struct {
		name, said, answer string
		own                bool
		items, id          string
	}{
		{"a text", `"Read \u00e9."`, answer, false, `[{"role":"user","content":"Read \u00e9."},{"type":"reasoning","id":"rs_1"},` + call + `]`, "r"},
		{"items", ` [ {"role":"user","content":"x"} ] `, answer, false, `[{"role":"user","content":"x"},{"type":"reasoning","id":"rs_1"},` + call + `]`, "r"},
		{"the guard's own", `"x"`, answer, true, `[{"role":"user","content":"x"},{"type":"function_call","call_id":"c","name":"read","arguments":"{}"}]`, "r"},
		{"nothing said", ``, `{"id":"r","status":"incomplete","output":[]}`, false, `[]`, "r"},
		{"only the answer", `[]`, answer, false, `[{"type":"reasoning","id":"rs_1"},` + call + `]`, "r"},
		{"failed", `"x"`, `{"id":"r","status":"failed","output":[]}`, false, ``, ""},
		{"no id", `"x"`, `{"status":"completed","output":[]}`, false, ``, ""},
		{"no output", `"x"`, `{"id":"r","status":"completed"}`, false, ``, ""},
	} {
		items, id := f.AppendTurn(nil, []byte(tt.said), format.Parse([]byte(tt.answer)), tt.own)
		if string(items) != tt.items || id != tt.id {
			t.Errorf("%s: %q %s", tt.name, id, items)
		}
	}
	for _, tt := range []struct{ src, items, want string }{
		{`{"previous_response_id":"r","model":"m","input":"go on"}`, `[{"a":1}]`, `{"model":"m","input":[{"a":1},{"role":"user","content":"go on"}]}`},
		{`{"model":"m","input":[{"b":2},{"c":3}],"previous_response_id":"r"}`, `[{"a":1}]`, `{"model":"m","input":[{"a":1},{"b":2},{"c":3}]}`},
		{`{"model":"m","input":[],"previous_response_id":"r"}`, `[{"a":1}]`, `{"model":"m","input":[{"a":1}]}`},
		{`{"model":"m","previous_response_id":"r"}`, `[]`, `{"model":"m","input":[]}`},
	} {
		if got := f.AppendContinued(nil, format.Parse([]byte(tt.src)), []byte(tt.items)); string(got) != tt.want {
			t.Errorf("%s", got)
		}
	}
	for data, want := range map[string]bool{
		`{"type":"response.completed","response":{"id":"r"}}`:  true,
		`{"type":"response.incomplete","response":{"id":"r"}}`: true,
		`{"type":"response.failed","response":{"id":"r"}}`:     false,
		`{"type":"response.created","response":{"id":"r"}}`:    false,
		``: false,
	} {
		if got := f.Ended(eventstream.Event{Data: []byte(data)}); got.Exists() != want {
			t.Errorf("%s: %v", data, got.Exists())
		}
	}
}

// FuzzTurns: whatever was asked and answered, a turn is a strict JSON array, a request that
// continues it is a strict request without the id, and a third one continues that.
func FuzzTurns(f *testing.F) {
	f.Add([]byte(`{"input":"x"}`), []byte(`{"id":"r","status":"completed","output":[{"type":"message","id":"m"}]}`), []byte(`{"previous_response_id":"r","input":[{"b":1}]}`), true)
	f.Add([]byte(`{"input":[ ]}`), []byte(`{"id":"r","status":"incomplete","output":[ {"type":"reasoning"} , 1 ]}`), []byte(`{"previous_response_id":"r","input":"\ud83d\ude00"}`), true)
	f.Add([]byte(`{"input":[{"a":[1,2]} ,3]}`), []byte(`{"id":"r","status":"completed","output":[]}`), []byte(`{"input":null,"previous_response_id":"r"}`), false)
	f.Fuzz(func(t *testing.T, first, answer, next []byte, own bool) {
		k := format.Of(format.Responses).(format.Keeper)
		strict := func(src []byte) strictjson.Value {
			var d strictjson.Doc
			if d.Reset(src, strictjson.Limits{}) != nil {
				return strictjson.Value{}
			}
			return d.Root()
		}
		a, b, said := strict(first), strict(next), strict(answer)
		if a.Kind() != '{' || b.Kind() != '{' || said.Kind() != '{' {
			return
		}
		items, id := k.AppendTurn(nil, k.Asks(a).Said, said, own)
		if id == "" {
			return
		}
		if strict(items).Kind() != '[' {
			t.Fatalf("no array: %q", items)
		}
		whole := strict(k.AppendContinued(nil, b, items))
		if whole.Kind() != '{' || whole.Get("previous_response_id").Exists() || whole.Get("input").Len() < strict(items).Len() {
			t.Fatalf("%q", whole.Raw())
		}
		if items, id = k.AppendTurn(nil, k.Asks(whole).Said, said, !own); id == "" || strict(items).Kind() != '[' {
			t.Fatalf("%q", items)
		}
	})
}
