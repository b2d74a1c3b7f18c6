// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/validate"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// forbidden are results of tools that the published schema of 2025-11-25 forbids, and that
// no leniency covers.
var forbidden = []struct{ name, result string }{
	{"no content", `{}`},
	{"content null", `{"content":null}`},
	{"content an object", `{"content":{"type":"text","text":"LEAK"}}`},
	{"content a string", `{"content":"LEAK"}`},
	{"isError a string", `{"content":[{"type":"text","text":"LEAK"}],"isError":"yes"}`},
	{"unknown block", `{"content":[{"type":"marquee","text":"LEAK"}]}`},
	{"block without a type", `{"content":[{"text":"LEAK"}]}`},
	{"text without text", `{"content":[{"type":"text","value":"LEAK"}]}`},
	{"text a number", `{"content":[{"type":"text","text":7}]}`},
	{"image without data", `{"content":[{"type":"image","mimeType":"image/png","alt":"LEAK"}]}`},
	{"image without a type", `{"content":[{"type":"image","data":"AAAA","alt":"LEAK"}]}`},
	{"audio without data", `{"content":[{"type":"audio","mimeType":"audio/wav","alt":"LEAK"}]}`},
	{"structuredContent an array", `{"content":[],"structuredContent":["LEAK"]}`},
	{"structuredContent a string", `{"content":[],"structuredContent":"LEAK"}`},
	{"link without uri", `{"content":[{"type":"resource_link","name":"LEAK"}]}`},
	{"resource without uri", `{"content":[{"type":"resource","resource":{"text":"LEAK"}}]}`},
	{"resource without text and blob", `{"content":[{"type":"resource","resource":{"uri":"x:y","note":"LEAK"}}]}`},
	{"priority over one", `{"content":[{"type":"text","text":"LEAK","annotations":{"priority":2}}]}`},
}

// TestShapeWithheld: what the published schema forbids does not reach the client, nor a
// classifier, nor a reviewer who could release it.
func TestShapeWithheld(t *testing.T) {
	t.Parallel()
	delivered := 0
	for _, c := range forbidden {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.greet("2025-11-25")
			got := r.result(r.request("2", "tools/call", `{"name":"read"}`), c.result)
			text := got.text("result", "content", 0, "text")
			if !strings.HasPrefix(text, placeholderWhole) || strings.Contains(string(got["result"]), "LEAK") {
				delivered++
				t.Errorf("delivered: %s", got["result"])
				return
			}
			d := r.last()
			if d.Validation.Conformity != validate.Invalid || d.Withheld[0].Code != finding.ShapeInvalid || d.Validation.Pointer == "" {
				t.Errorf("record: %s", d.AppendJSON(nil))
			}
		})
	}
	t.Logf("%d of %d delivered", delivered, len(forbidden))
}

// greet opens a session of that revision.
func (r *rig) greet(revision string) {
	r.t.Helper()
	r.result(r.request("1", "initialize", `{"protocolVersion":"`+revision+`","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`),
		`{"protocolVersion":"`+revision+`","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`)
}

// TestShapeRepaired: what real servers get wrong is delivered in the valid form.
func TestShapeRepaired(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, revision, result, want, not string }{
		{"structured only", "2025-11-25", `{"structuredContent":{"a":1.50}}`, `{"structuredContent":{"a":1.50},"content":[]`, ""},
		{"null members", "2025-11-25", `{"content":[{"type":"text","text":"t","annotations":null,"_meta":null,"more":null}],"isError":null}`, `"more":null}]`, `"isError":null`},
		{"no result type", "2026-07-28", `{"content":[],"structuredContent":[1]}`, `"structuredContent":[1]`, ""},
		{"a link for an old client", "2024-11-05", `{"content":[{"type":"resource_link","uri":"x:\u202ey","name":"n"}]}`, `<x:y>`, "resource_link"},
		{"audio for an old client", "2024-11-05", `{"content":[{"type":"audio","data":"AAAA","mimeType":"audio/wav"}]}`, `"blob":"AAAA"`, `"audio"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			params := `{"name":"read"}`
			if c.revision == "2026-07-28" {
				params = `{"name":"read","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`
			} else {
				r.greet(c.revision)
			}
			got := string(r.result(r.request("2", "tools/call", params), c.result)["result"])
			if !strings.Contains(got, c.want) || c.not != "" && strings.Contains(got, c.not) {
				t.Errorf("got %s", got)
			}
			if d := r.last(); d.Verdict != Changed || !holds(d, finding.ShapeRepaired) {
				t.Errorf("record: %s", d.AppendJSON(nil))
			}
		})
	}
}

// TestShapeEntries: one wrong entry is left out of its list and named to the operator.
func TestShapeEntries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, bad, good, name string }{
		{"tools/list", `{"name":"bad\u001b[31m","inputSchema":{"type":"array"}}`, `{"name":"good","inputSchema":{"type":"object"}}`, "tools"},
		{"tools/list", `{"name":"bad\u001b[31m"}`, `{"name":"good","inputSchema":{"type":"object"}}`, "tools"},
		{"tools/list", `7`, `{"name":"good","inputSchema":{"type":"object"}}`, "tools"},
		{"prompts/list", `{"name":"bad\u001b[31m","arguments":{}}`, `{"name":"good"}`, "prompts"},
		{"resources/list", `{"uri":"bad\u001b[31m"}`, `{"uri":"x:y","name":"good"}`, "resources"},
		{"resources/templates/list", `{"uriTemplate":"bad\u001b[31m","name":7}`, `{"uriTemplate":"x:{y}","name":"good"}`, "resourceTemplates"},
	} {
		t.Run(c.method, func(t *testing.T) {
			r := newRig(t)
			r.greet("2025-06-18")
			got := r.result(r.request("2", c.method, ""), `{"`+c.name+`":[`+c.bad+`,`+c.good+`]}`)
			if list := string(got.at("result", c.name)); list != "["+c.good+"]" {
				t.Errorf("list %s", list)
			}
			d := r.last()
			if d.Verdict != Changed || !holds(d, finding.ShapeInvalid) || !strings.HasPrefix(d.Validation.Pointer, c.name+"/0") {
				t.Errorf("record: %s", d.AppendJSON(nil))
			}
			log := r.log.String()
			if !strings.Contains(log, "left out") || strings.HasPrefix(c.bad, "{") && !strings.Contains(log, "bad") || strings.Contains(log, "\x1b") {
				t.Errorf("log: %s", log)
			}
		})
	}
}

// TestShapeElsewhere: prompts, resources, completions and the greeting are judged too.
func TestShapeElsewhere(t *testing.T) {
	t.Parallel()
	for method, result := range map[string]string{
		"prompts/get":         `{"messages":[{"role":"system","content":{"type":"text","text":"LEAK"}}]}`,
		"resources/read":      `{"contents":[{"uri":"x:y","body":"LEAK"}]}`,
		"completion/complete": `{"completion":{"values":"LEAK"}}`,
		"initialize":          `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":"LEAK"}`,
	} {
		t.Run(method, func(t *testing.T) {
			r := newRig(t)
			got := r.result(r.request("1", method, `{"protocolVersion":"2025-11-25"}`), result)
			if got.text("error", "message") != errWithheld.text {
				t.Errorf("got %s %s", got["result"], got["error"])
			}
		})
	}
}

// TestShapeModes: audit delivers and records, off does not look.
func TestShapeModes(t *testing.T) {
	t.Parallel()
	for mode, recorded := range map[policy.Mode]bool{policy.Audit: true, policy.Off: false} {
		r := newRig(t, func(c *Config) { c.Validation.Mode = mode })
		got := r.result(r.request("1", "tools/call", `{"name":"read"}`), `{"content":[],"isError":"yes"}`)
		if d := r.last(); got.text("result", "isError") != "yes" || holds(d, finding.ShapeInvalid) != recorded {
			t.Errorf("mode %d: %s", mode, d.AppendJSON(nil))
		}
	}
}

// TestShapeUnjudged: no classifier is asked about what is withheld for its form or its
// declared schema.
func TestShapeUnjudged(t *testing.T) {
	t.Parallel()
	for _, mode := range []policy.Mode{policy.Enforce, policy.Shadow} {
		w := &words{}
		j := newJury(t, &ShadowOptions{}, aMember(t, w, func(o *classify.Options) { o.Mode = mode }))
		r := newRig(t, j.set)
		r.declare(tool("read", pointSchema))
		for _, result := range []string{`{"content":[{"type":"text","text":"evil","annotations":7}]}`,
			`{"content":[{"type":"text","text":"evil"}],"structuredContent":{"x":"evil"}}`} {
			got := r.result(r.request("1", "tools/call", `{"name":"read"}`), result)
			if !strings.HasPrefix(got.text("result", "content", 0, "text"), placeholderWhole) {
				t.Errorf("delivered: %s", got["result"])
			}
		}
		if j.Shadow.Close(context.Background()); len(w.seen) > 0 {
			t.Errorf("mode %s: asked about %q", mode, w.seen)
		}
	}
}

// TestShapeNotReleased: what is no valid result stays withheld though a reviewer has
// released it.
func TestShapeNotReleased(t *testing.T) {
	for name, body := range map[string]string{
		"form":   `{"content":[{"type":"text","text":"LEAK","annotations":7}]}`,
		"schema": `{"content":[{"type":"text","text":"LEAK"}],"structuredContent":{"x":"no number"}}`,
	} {
		w := newWard(t, hold.Options{})
		w.declare(tool("read", pointSchema))
		if text, _ := w.ask(question, body); !strings.HasPrefix(text, placeholderWhole) {
			t.Errorf("%s: %q", name, text)
		}
		id := strings.Repeat("0a", 16)
		if err := w.queue.Hold(context.Background(), hold.Item{ID: id, Server: "srv", Tool: "read", Principal: "ann", Rule: "finding",
			Code: finding.HiddenTag, Call: hold.CallOf("ann", "srv", "read", []byte(`{"path":"a"}`)), Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
		if err := w.queue.Release(context.Background(), id, "bob"); err != nil {
			t.Fatal(err)
		}
		if text := w.fromQueue(question).text("result", "content", 0, "text"); !strings.HasPrefix(text, placeholderWhole) {
			t.Errorf("%s: released: %q", name, text)
		}
	}
}

// TestShapeInspected: the plug-in doors judge the form too.
func TestShapeInspected(t *testing.T) {
	t.Parallel()
	i, sink := newTestInspector(t, Config{Name: "srv"})
	for _, c := range forbidden {
		clean, d, err := i.Inspect(t.Context(), ToolResult{Tool: "read", Raw: []byte(c.result)})
		if err != nil || d.Verdict != Withheld || strings.Contains(string(clean), "LEAK") {
			t.Errorf("%s: %v %s", c.name, err, clean)
		}
	}
	if len(sink.all()) == 0 {
		t.Error("nothing was recorded")
	}
}

// TestCallOfLeftOut: a tool that was left out of the list for its form cannot be called, its
// neighbour can; where forms are only recorded, both can.
func TestCallOfLeftOut(t *testing.T) {
	t.Parallel()
	const page = `{"tools":[{"name":"read","inputSchema":{"type":"object"}},{"name":"bad","inputSchema":[]},{"description":"x"},"x"]}`
	for _, mode := range []policy.Mode{policy.Enforce, policy.Audit, policy.Off} {
		r := newRig(t, func(c *Config) { c.Validation.Mode = mode })
		list := r.result(r.request("1", mcpmsg.ListTools, ""), page)
		if mode == policy.Enforce && string(list.at("result", "tools")) != `[{"name":"read","inputSchema":{"type":"object"}}]` {
			t.Errorf("tools %s", list.at("result", "tools"))
		}
		for _, tool := range []string{"bad", "", "read"} {
			r.client.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"` + tool + `"}}`)
			if mode == policy.Enforce && tool != "read" {
				got := parse(t, r.client.next())
				if s := got.text("result", "content", 0, "text"); !strings.HasPrefix(s, placeholderForm) || string(got.at("result", "isError")) != "true" {
					t.Errorf("%q is answered with %s", tool, got)
				}
				if d := r.last(); d.Withheld[0].Code != finding.ShapeInvalid {
					t.Errorf("record %+v", d)
				}
				continue
			}
			if id := r.awaits(mcpmsg.CallTool); r.result(id, `{"content":[]}`)["result"] == nil {
				t.Errorf("%q is refused", tool)
			}
		}
	}
	// Where the client has not listed the tools, the gateway does, before the call.
	r := newRig(t)
	r.client.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"bad"}}`)
	id := r.awaits(mcpmsg.ListTools)
	r.server.send(`{"jsonrpc":"2.0","id":` + id + `,"result":` + page + `}`)
	if got := parse(t, r.client.next()); !strings.HasPrefix(got.text("result", "content", 0, "text"), placeholderForm) {
		t.Errorf("answer %s", got)
	}
}
