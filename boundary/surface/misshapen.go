// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"fmt"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/mcpshape"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A LeftOut is an entry of a list that no client sees, because it is not what the
// protocol's schema allows. The others of its list stay. spec: surface/1.6
type LeftOut struct {
	Method  string // of the list
	Entry   int    // its ordinal in the list, from 0
	Name    string // third-party text; "" if it has none
	Keyword string // of JSON Schema, that the entry breaks
	Place   string // in the entry, spelled as mcpshape.Fault is; "" for the entry itself
}

// String names the entry for a person: one line, with the name escaped and cut.
func (l LeftOut) String() string {
	s := fmt.Sprintf("%s, entry %d", l.Method, l.Entry)
	if l.Name != "" {
		s += " " + finding.Quote(l.Name)
	}
	if s += ": " + l.Keyword; l.Place != "" {
		s += " at " + l.Place
	}
	return s
}

// maxLeftOut bounds the entries of a surface that are named.
const maxLeftOut = 256

// maxLeftOutName bounds the names of those, in bytes.
const maxLeftOutName = 1024

// LeftOut are the entries that no client sees for their form, at most 256.
func (s *Surface) LeftOut() []LeftOut { return s.leftOut }

// judge notes the entries of a page that are not what the schema allows, or have no name.
// One that has a name stays an item: an operator can have forms only recorded.
func (b *builder) judge(l *list, p *progress, root strictjson.Value) {
	report := mcpshape.Check(mcpshape.Revision(b.revision, root), mcpmsg.Result, l.method, root)
	faults := map[strictjson.Value]mcpshape.Fault{}
	for _, e := range report.Entries {
		faults[e.Value] = e.Fault
	}
	for e := range root.Get(l.member).Elements() {
		out := LeftOut{Method: l.method, Entry: p.entries}
		p.entries++
		fault, wrong := faults[e]
		_, named := EntryItem(l.method, e)
		switch {
		case wrong:
			out.Keyword, out.Place = fault.Keyword, within(fault.Place)
		case named:
			continue
		default: // an empty name, which no schema forbids
			out.Keyword, out.Place = "required", l.key
		}
		if name := e.Get(l.key); name.Kind() == '"' {
			text := name.Text()
			out.Name = strings.Clone(text[:min(len(text), maxLeftOutName)])
		}
		if len(b.leftOut) < maxLeftOut {
			b.leftOut = append(b.leftOut, out)
		}
	}
}

// within is a place in an entry: without the list and the ordinal.
func within(place string) string {
	parts := strings.SplitN(place, "/", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[2]
}
