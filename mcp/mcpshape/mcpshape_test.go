// SPDX-License-Identifier: Apache-2.0

package mcpshape

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/platform/datatest"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// TestSurfaces: of the surfaces of real servers no entry is left out.
func TestSurfaces(t *testing.T) {
	dir, err := datatest.Find("../..", "mcp-surfaces")
	if err != nil {
		t.Skip(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	tools := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc strictjson.Doc
		if err := doc.Reset(b, strictjson.Limits{MendSurrogates: true}); err != nil {
			t.Fatal(err)
		}
		root := doc.Root()
		revision := root.Get("initialize").Get("protocolVersion").Text()
		judge := func(method string, v strictjson.Value) {
			if r := Check(Revision(revision, v), mcpmsg.Result, method, v); !r.Clean() {
				t.Errorf("%s %s: %+v", filepath.Base(file), method, r)
			}
		}
		judge(mcpmsg.Initialize, root.Get("initialize"))
		for _, method := range []string{mcpmsg.ListTools, mcpmsg.ListPrompts, mcpmsg.ListResources, mcpmsg.ListTemplates} {
			for page := range root.Get(method).Elements() {
				if !page.Get("error").Exists() {
					tools += page.Get("tools").Len()
					judge(method, page)
				}
			}
		}
	}
	if tools < 500 {
		t.Errorf("%d tools in %d files: the test reads too little", tools, len(files))
	}
}

// TestPlace: a fault is named by the table's words and by ordinals.
func TestPlace(t *testing.T) {
	for _, c := range []struct {
		method, src string
		want        Fault
	}{
		{mcpmsg.CallTool, `{}`, Fault{"required", "content"}},
		{mcpmsg.CallTool, `{"content":[{"type":"text","text":"a"},{"type":"image","data":7,"mimeType":"a"}]}`, Fault{"type", "content/1/data"}},
		{mcpmsg.CallTool, `{"content":[{"type":"evil"}]}`, Fault{"enum", "content/0/type"}},
		{mcpmsg.CallTool, `{"content":[{"type":"resource","resource":{"uri":"a"}}]}`, Fault{"anyOf", "content/0/resource"}},
		{mcpmsg.CallTool, `{"content":[{"type":"text","text":"a","annotations":{"priority":1.5}}]}`, Fault{"maximum", "content/0/annotations/priority"}},
		{mcpmsg.Initialize, `{"protocolVersion":"x","capabilities":{"experimental":{"evil":7}},"serverInfo":{"name":"a","version":"b"}}`,
			Fault{"type", "capabilities/experimental/#0"}},
		{mcpmsg.CallTool, `[]`, Fault{"type", ""}},
	} {
		var doc strictjson.Doc
		if err := doc.Reset([]byte(c.src), strictjson.Limits{}); err != nil {
			t.Fatal(err)
		}
		if r := Check(newestLegacy, mcpmsg.Result, c.method, doc.Root()); r.Fault != c.want {
			t.Errorf("%s: %+v, want %+v", c.src, r.Fault, c.want)
		}
	}
}

// TestCursor: a cursor that is no string leaves its list whole.
func TestCursor(t *testing.T) {
	for _, cursor := range []string{"5", "null", `["a"]`, `{"a":1}`, "true"} {
		var doc strictjson.Doc
		if err := doc.Reset([]byte(`{"resources":[],"nextCursor":`+cursor+`}`), strictjson.Limits{}); err != nil {
			t.Fatal(err)
		}
		r := Check(newestLegacy, mcpmsg.Result, mcpmsg.ListResources, doc.Root())
		var e strictjson.Edits
		r.Mend(&e)
		if got := string(e.Apply(nil, doc.Root())); r.Fault != (Fault{}) || got != `{"resources":[]}` {
			t.Errorf("%s: %s, %+v", cursor, got, r.Fault)
		}
	}
}

// TestLeniencies: each is named, says who needs it, and is reached by a type of the table.
func TestLeniencies(t *testing.T) {
	used := map[string]bool{}
	for _, revision := range revisions {
		tab := tables[revision]()
		for _, typ := range tab.types {
			for _, m := range typ.members {
				for _, l := range m.lenient {
					used[l.name] = true
				}
			}
			if typ.later != nil {
				used[laterBlock(revision).name] = true
			}
		}
	}
	for _, l := range leniencies {
		if l.name == "" || l.needed == "" || !used[l.name] || l.instead != "" && !json.Valid([]byte(l.instead)) {
			t.Errorf("%+v: used %t", l, used[l.name])
		}
	}
}

// FuzzCheck: no value makes a check fail to end, and what it mends is JSON that needs no
// second mending.
func FuzzCheck(f *testing.F) {
	f.Add(uint8(3), uint8(6), `{"structuredContent":{},"_meta":null}`)
	f.Add(uint8(0), uint8(6), `{"content":[{"type":"resource_link","uri":"a","name":"b"},{"type":"audio","data":"","mimeType":""}]}`)
	f.Add(uint8(4), uint8(2), `{"tools":[{"name":"a","inputSchema":{"type":"object"},"icons":[{"src":1}]},7,{}],"nextCursor":null}`)
	methods := []string{mcpmsg.Initialize, mcpmsg.Discover, mcpmsg.ListTools, mcpmsg.ListPrompts, mcpmsg.ListResources,
		mcpmsg.ListTemplates, mcpmsg.CallTool, mcpmsg.ReadResource, mcpmsg.GetPrompt, mcpmsg.Complete, mcpmsg.ListTasks, "tasks/get", mcpmsg.Elicit, mcpmsg.Sample}
	f.Fuzz(func(t *testing.T, rev, method uint8, src string) {
		var doc, again strictjson.Doc
		if doc.Reset([]byte(src), strictjson.Limits{}) != nil {
			return
		}
		revision, name := revisions[int(rev)%len(revisions)], methods[int(method)%len(methods)]
		part := mcpmsg.Result
		if name == mcpmsg.Elicit || name == mcpmsg.Sample {
			part = mcpmsg.Params
		}
		r := Check(revision, part, name, doc.Root())
		if r.Clean() || r.Fault != (Fault{}) {
			return
		}
		var e strictjson.Edits
		r.Mend(&e)
		mended := e.Apply(nil, doc.Root())
		if err := again.Reset(mended, strictjson.Limits{}); err != nil {
			t.Fatalf("%s: %v", mended, err)
		}
		if r := Check(revision, part, name, again.Root()); !r.Clean() {
			t.Fatalf("%s: %+v", mended, r)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	var doc strictjson.Doc
	if err := doc.Reset([]byte(`{"content":[{"type":"text","text":"t"},{"type":"text","text":"u"}],"structuredContent":{"a":1},"isError":false}`), strictjson.Limits{}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if r := Check(newestLegacy, mcpmsg.Result, mcpmsg.CallTool, doc.Root()); !r.Clean() {
			b.Fatal(r)
		}
	}
}

// TestTasksOfExtension: tasks of 2026-07-28 are those of an extension, which names its members otherwise than 2025-11-25 does
// and acknowledges a cancellation with nothing.
func TestTasksOfExtension(t *testing.T) {
	const task = `{"resultType":"complete","taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttlMs":1,"pollIntervalMs":1}`
	for method, src := range map[string]string{mcpmsg.GetTask: task, "tasks/cancel": `{"resultType":"complete"}`, "tasks/update": `{"resultType":"complete"}`} {
		var doc strictjson.Doc
		if err := doc.Reset([]byte(src), strictjson.Limits{}); err != nil {
			t.Fatal(err)
		}
		if r := Check(mcpmsg.Modern, mcpmsg.Result, method, doc.Root()); !r.Clean() {
			t.Errorf("%s: %+v", method, r)
		}
		if r := Check(newestLegacy, mcpmsg.Result, method, doc.Root()); r.Clean() != (method == "tasks/update") {
			t.Errorf("%s of %s: %+v", method, newestLegacy, r)
		}
	}
}
