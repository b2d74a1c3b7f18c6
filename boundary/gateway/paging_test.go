// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strconv"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
)

// TestPaging: a circle of cursors ends, however long, and no honest list does.
func TestPaging(t *testing.T) {
	page := func(p *paging, cursor, next string) bool {
		return p.isLastPage(&call{method: mcpmsg.ListTools, cursor: cursor}, next)
	}
	for name, cursors := range map[string][]string{
		"empty": {"", ""}, "itself": {"", "a", "a"}, "back": {"", "a", "b", "a"}, "far back": {"", "a", "b", "c", "d", "b"},
	} {
		var p paging
		for i := range len(cursors) - 1 {
			if last := i == len(cursors)-2; page(&p, cursors[i], cursors[i+1]) != last {
				t.Errorf("%s: page %d", name, i)
			}
		}
	}
	var p paging
	for range 3 { // read again
		for i := range 1000 {
			cursor, next := strconv.Itoa(i), strconv.Itoa(i+1)
			if i == 0 {
				cursor = ""
			}
			for range 2 { // by two clients at a time
				if page(&p, cursor, next) {
					t.Fatalf("page %d is the last", i)
				}
			}
		}
	}
	endless := 0
	for i := 0; !page(&p, strconv.Itoa(i+1000), strconv.Itoa(i+1001)); i++ {
		endless++
	}
	if endless > maxCursors {
		t.Errorf("%d pages", endless)
	}
}

// TestPagingEnds: the client is given no cursor that leads back, of any list, and a finding.
func TestPagingEnds(t *testing.T) {
	for _, method := range []string{mcpmsg.ListTools, mcpmsg.ListPrompts, mcpmsg.ListResources, mcpmsg.ListTemplates} {
		t.Run(strings.ReplaceAll(method, "/", "-"), func(t *testing.T) {
			r := newRig(t)
			member := map[string]string{mcpmsg.ListTools: "tools", mcpmsg.ListPrompts: "prompts", mcpmsg.ListResources: "resources", mcpmsg.ListTemplates: "resourceTemplates"}[method]
			ask := func(cursor, next string) message {
				return r.result(r.request("1", method, `{"cursor":"`+cursor+`"}`), `{"`+member+`":[],"nextCursor":"`+next+`"}`)
			}
			r.result(r.request("1", method, `{}`), `{"`+member+`":[],"nextCursor":"a"}`)
			if m := ask("a", "b"); m.text("result", "nextCursor") != "b" {
				t.Errorf("%v", m)
			}
			if m := ask("b", "a"); strings.Contains(string(m["result"]), "nextCursor\":") || !strings.Contains(string(m["result"]), `"field":"nextCursor","code":"shape-repaired"`) {
				t.Errorf("%s", m["result"])
			}
			for _, cursor := range []string{"5", "null", `["a"]`} {
				m := r.result(r.request("1", method, `{}`), `{"`+member+`":[],"nextCursor":`+cursor+`}`)
				if strings.Contains(string(m["result"]), "nextCursor\":") {
					t.Errorf("%s", m["result"])
				}
			}
			if m := ask("b", ""); strings.Contains(string(m["result"]), "nextCursor\":") {
				t.Errorf("%s", m["result"])
			}
		})
	}
}

// TestOwnListingEnds: the gateway asks for no page of a circle twice.
func TestOwnListingEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.client.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}`)
	for range 2 { // the first page, and the one that leads to itself
		m := parse(t, r.server.next())
		if m.str("method") != mcpmsg.ListTools {
			t.Fatalf("%v", m)
		}
		r.server.send(`{"jsonrpc":"2.0","id":` + string(m["id"]) + `,"result":{"tools":[{"name":"read","inputSchema":{"type":"object"}}],"nextCursor":"a"}}`)
	}
	if m := parse(t, r.server.next()); m.str("method") != mcpmsg.CallTool {
		t.Errorf("%v", m)
	}
}
