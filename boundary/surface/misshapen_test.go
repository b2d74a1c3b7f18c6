// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"strings"
	"testing"
)

// TestLeftOut: one entry of a list that is not what the schema allows is left out and
// named, escaped; the others of its list stay, and so does the server.
func TestLeftOut(t *testing.T) {
	good := tool("good", "Honest.")
	for _, c := range []struct{ name, entry, says string }{
		{"no name", `{"description":"x"}`, "tools/list, entry 1: required at name"},
		{"empty name", `{"name":"","inputSchema":{"type":"object"}}`, "tools/list, entry 1: required at name"},
		{"a string", `"x"`, "tools/list, entry 1: type"},
		{"null", `null`, "tools/list, entry 1: type"},
		{"name is a number", `{"name":1,"inputSchema":{"type":"object"}}`, "tools/list, entry 1: type at name"},
		{"no schema", `{"name":"a\u202eb"}`, `tools/list, entry 1 "a\u202eb": required at inputSchema`},
		{"schema is a list", `{"name":"bad","inputSchema":[]}`, `tools/list, entry 1 "bad": type at inputSchema`},
		{"description is an object", `{"name":"bad","inputSchema":{"type":"object"},"description":{}}`, `tools/list, entry 1 "bad": type at description`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Collect(t.Context(), serve(t, legacy(tools(good, c.entry, tool("last", "Honest.")))), CollectOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"good", "last"} {
				if _, ok := s.Item(Key{Tool, name}); !ok {
					t.Errorf("no tool %s", name)
				}
			}
			list := s.LeftOut()
			if len(list) != 1 || list[0].String() != c.says {
				t.Fatalf("left out: %v, want %s", list, c.says)
			}
			again, err := ParseDump(s.AppendDump(nil), Limits{})
			if err != nil || again.Fingerprint() != s.Fingerprint() || len(again.LeftOut()) != 1 {
				t.Errorf("dump: %v", err)
			}
		})
	}
	if s := surfaceOf(t, good, `{"name":"null","inputSchema":{"type":"object"},"title":null}`); len(s.LeftOut()) != 0 {
		t.Errorf("what is repaired is left out: %v", s.LeftOut())
	}
	many := strings.Repeat(`"x",`, 2*maxLeftOut) + good
	if s := surfaceOf(t, many); len(s.LeftOut()) != maxLeftOut {
		t.Errorf("%d are named", len(s.LeftOut()))
	}
	if _, err := ParseDump([]byte(`{"initialize":`+hello+`,"tools/list":[`+tools(many)+`]}`), Limits{items: 10}); err == nil {
		t.Error("entries without names count for nothing")
	}
}
