// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strconv"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/validate"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// TestErrorContent: an error that a tool reports reaches the client whatever its structuredContent is; what its
// schema, or the protocol's, refuses is left out, and the text says so. An error is no way around the schema.
func TestErrorContent(t *testing.T) {
	t.Parallel()
	const slow = `,"outputSchema":{"type":"object","properties":{"s":{"pattern":"^(([a-z]{1,30}){1,30})$"}}}`
	long := `{"s":"` + strings.Repeat("a", 50_000) + `"}`
	const fits, leaks = `{"x":1}`, `{"x":"LEAK"}`
	for _, c := range []struct {
		name, revision, schema, content string
		mode                            Validation
		left                            finding.Code // why it is left out; "": it is delivered, or was not there
		delivered                       string       // in the answer
		verdict                         validate.Conformity
	}{
		{name: "none", schema: pointSchema, verdict: validate.Absent},
		{name: "null", schema: pointSchema, content: `null`, verdict: validate.Absent},
		{name: "fitting", schema: pointSchema, content: fits, delivered: `"structuredContent":` + fits, verdict: validate.Valid},
		{name: "refused", schema: pointSchema, content: leaks, left: finding.SchemaInvalid, verdict: validate.Invalid},
		{name: "refused, 2026-07-28", revision: "2026-07-28", schema: pointSchema, content: leaks, left: finding.SchemaInvalid, verdict: validate.Invalid},
		{name: "array", schema: pointSchema, content: `["LEAK"]`, left: finding.ShapeInvalid, verdict: validate.Invalid},
		{name: "array, nothing declared", content: `["LEAK"]`, left: finding.ShapeInvalid, verdict: validate.Invalid},
		{name: "array, 2026-07-28", revision: "2026-07-28", schema: pointSchema, content: `["LEAK"]`, left: finding.SchemaInvalid, verdict: validate.Invalid},
		{name: "string", schema: pointSchema, content: `"LEAK"`, left: finding.ShapeInvalid, verdict: validate.Invalid},
		{name: "too costly", schema: slow, content: long, left: finding.SchemaUnverifiable, verdict: validate.Unverifiable},
		{name: "too costly, passed", schema: slow, content: long, mode: Validation{PassUnverifiable: true}, delivered: long, verdict: validate.Unverifiable},
		{name: "audited", schema: pointSchema, content: leaks, mode: Validation{Mode: policy.Audit}, delivered: leaks, verdict: validate.Invalid},
		{name: "strict", schema: pointSchema, content: leaks, mode: Validation{Strict: true}, left: finding.SchemaInvalid, verdict: validate.Invalid},
		{name: "nothing declared", content: leaks, delivered: leaks},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, func(cfg *Config) { cfg.Validation = c.mode })
			params := `{"name":"read"}`
			if c.revision != "" {
				params = `{"name":"read","_meta":{"io.modelcontextprotocol/protocolVersion":"` + c.revision + `"}}`
			} else {
				r.greet("2025-11-25")
			}
			r.declare(tool("read", c.schema))
			content := ""
			if c.content != "" {
				content = `,"structuredContent":` + c.content
			}
			got := r.result(r.request("2", "tools/call", params), `{"content":[{"type":"text","text":"quota exceeded"}],"isError":true`+content+`}`)
			all := string(got["result"])
			if !strings.Contains(got.text("result", "content", 0, "text"), "quota exceeded") || string(got.at("result", "isError")) != "true" {
				t.Fatalf("the message is not delivered: %s", all)
			}
			if strings.Contains(all, "LEAK") != strings.Contains(c.delivered, "LEAK") || !strings.Contains(all, c.delivered) {
				t.Errorf("delivered: %.2000s", all)
			}
			d := r.last()
			if told := strings.Contains(all, hintContent); told != (c.left != "") || told != holds(d, c.left) {
				t.Errorf("told %t: %.2000s\nrecord: %s", told, all, d.AppendJSON(nil))
			}
			if told := got.at("result", "structuredContent"); c.left != "" && told != nil {
				t.Errorf("structuredContent is there: %s", told)
			}
			if d.Validation.Conformity != c.verdict || d.Verdict == Withheld {
				t.Errorf("record: %s", d.AppendJSON(nil))
			}
		})
	}
}

// TestErrorContentOfTasks: so it is with the results of tasks.
func TestErrorContentOfTasks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.greet("2025-11-25")
	r.declare(tool("read", pointSchema))
	r.result(r.request("2", "tools/call", `{"name":"read","task":{}}`), `{"task":{"taskId":"t1","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":1000}}`)
	got := r.result(r.request("3", "tasks/result", `{"taskId":"t1"}`), `{"content":[{"type":"text","text":"quota exceeded"}],"isError":true,"structuredContent":{"x":"LEAK"}}`)
	all := string(got["result"])
	if !strings.Contains(all, "quota exceeded") || !strings.Contains(all, hintContent) || strings.Contains(all, "LEAK") {
		t.Errorf("got %s\n%s", all, got["error"])
	}
}

// TestErrorContentInspected: so it is at /v1/result.
func TestErrorContentInspected(t *testing.T) {
	t.Parallel()
	key, err := frame.NewKey([]byte(strings.Repeat("k", 32)))
	if err != nil {
		t.Fatal(err)
	}
	i, err := NewInspector(Config{Name: "s", Key: key, Sink: NewLines(discard{})})
	if err != nil {
		t.Fatal(err)
	}
	clean, d, err := i.Inspect(t.Context(), ToolResult{Tool: "t", Schema: []byte(`{"type":"object","required":["x"]}`),
		Raw: []byte(`{"content":[{"type":"text","text":"quota exceeded"}],"isError":true,"structuredContent":{"y":"LEAK"}}`)})
	if all := string(clean); err != nil || !strings.Contains(all, "quota exceeded") || !strings.Contains(all, hintContent) || strings.Contains(all, "LEAK") {
		t.Errorf("got %s, %v\n%s", all, err, d.AppendJSON(nil))
	}
}

// TestNotStructured: a result without the content that its tool promises is flagged, and counts as nothing worse.
func TestNotStructured(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.declare(tool("read", pointSchema))
	for i, content := range []string{"", `,"structuredContent":null`} { // null: the repair leaves it out
		got := r.result(r.request(strconv.Itoa(2+i), "tools/call", `{"name":"read"}`), `{"content":[{"type":"text","text":"{\"x\":1}"}]`+content+`}`)
		if d := r.last(); d.Verdict == Withheld || !holds(d, finding.NotStructured) || !strings.Contains(string(got["result"]), string(finding.NotStructured)) {
			t.Errorf("record: %s\n%s", d.AppendJSON(nil), got["result"])
		}
	}
}
