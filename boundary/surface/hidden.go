// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"bytes"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// withoutHidden is the introduction of a server without the members in which pass 1 finds
// hidden text: its instructions, a member of serverInfo, a capability. A serverInfo whose
// name or version goes is left out, since it would not be one.
func (it Item) withoutHidden(r Rules) Item {
	var doc strictjson.Doc
	if doc.Reset(bytes.Clone(it.JSON), itemLimits) != nil {
		return newItem(it.Key, []byte("{}"))
	}
	in := newInspector(r, len(it.JSON))
	in.key = it.Key
	hides := func(name, v strictjson.Value) bool {
		before := len(in.out.Hits) + in.out.More
		in.visit(name, &trail{name: name}, true)
		in.value(v, nil)
		return len(in.out.Hits)+in.out.More > before
	}
	var e strictjson.Edits
	for name, v := range doc.Root().Members() {
		text := name.Text()
		if v.Kind() != '{' || text != "serverInfo" && text != "capabilities" && text != "_meta" {
			if hides(name, v) {
				e.Remove(v)
			}
			continue
		}
		var hidden []strictjson.Value
		needed := false
		for member, value := range v.Members() {
			if hides(member, value) {
				hidden = append(hidden, value)
				needed = needed || text == "serverInfo" && (member.Text() == "name" || member.Text() == "version")
			}
		}
		if needed {
			hidden = []strictjson.Value{v}
		}
		for _, value := range hidden {
			e.Remove(value)
		}
	}
	if e.Len() == 0 { // found only in the order in which the server has written it
		return newItem(it.Key, []byte("{}"))
	}
	return newItem(it.Key, e.Apply(nil, doc.Root()))
}
