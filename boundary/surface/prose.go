// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Prose is a text by which a server tells a model what to do: its instructions, the
// description of an item, of a parameter or of another part of a schema.
type Prose struct {
	Place
	Text string // third-party text
}

// Prose returns the descriptions and instructions of the surface.
func (s *Surface) Prose() []Prose {
	var out []Prose
	s.eachText(func(it *Item, v strictjson.Value, t *trail, isName bool) {
		if isName || t == nil || !t.name.Exists() || t.name.Text() != "description" && t.name.Text() != "instructions" {
			return
		}
		if text := v.Text(); len(text) >= minWording {
			out = append(out, Prose{t.place(it.Key, false), strings.Clone(text)})
		}
	})
	return out
}

// eachText calls visit for every string of every item, names of members among them.
func (s *Surface) eachText(visit func(it *Item, v strictjson.Value, t *trail, isName bool)) {
	for i := range s.items {
		it := &s.items[i]
		var doc strictjson.Doc
		if doc.Reset(it.JSON, itemLimits) != nil {
			continue
		}
		walk(doc.Root(), nil, func(v strictjson.Value, t *trail, isName bool) { visit(it, v, t, isName) })
	}
}

// A Removal is what the boundary takes out of an item before a model sees it.
type Removal struct {
	Kind Kind         `json:"kind"`
	Item string       `json:"item,omitzero"` // the name in its Key: third-party text
	Code finding.Code `json:"code"`
	N    int          `json:"count"` // parts of its texts
}

// Key is the item's.
func (x Removal) Key() Key { return Key{Kind: x.Kind, Name: x.Item} }

// maxRemovals bounds what Removals returns.
const maxRemovals = 64

// Removals returns what the boundary takes out of definitions, by item and code.
func (s *Surface) Removals() []Removal {
	var out []Removal
	var r scrub.Result
	s.eachText(func(it *Item, v strictjson.Value, _ *trail, isName bool) {
		if isName {
			return
		}
		tokens.Scrub(v.Text(), &r)
		for _, e := range r.Edits {
			code := e.Class.Code()
			i := slices.IndexFunc(out, func(x Removal) bool { return x.Key() == it.Key && x.Code == code })
			switch {
			case i >= 0:
				out[i].N++
			case len(out) < maxRemovals:
				out = append(out, Removal{it.Kind, it.Name, code, 1})
			}
		}
	})
	return out
}
