// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Prose is a text with which a server can instruct a model: its instructions, the title
// or description of an item, of a parameter or of another part of a schema, and any other
// string of minWords words, such as a default, an example or the name of a parameter.
type Prose struct {
	// Own says that it is the description of the item itself, or the server's instructions.
	Own bool
	// Text is third-party text. The description of the item itself stands behind the item's
	// name, as a model reads it.
	Text string

	key  Key
	name bool   // it is the last name of at itself
	at   *trail // spelled out by Place alone: a hostile server has many texts at the end of a long way
}

// Place is where the text stands.
func (x *Prose) Place() Place { return x.at.place(x.key, x.name) }

// minWords is more words than honest values and names have that are no descriptions: one in 45 public servers has more.
const minWords = 5

// Prose returns the titles, descriptions and instructions of the item, and its other strings
// of minWords words. The page of an app is shown to a person, and left out.
func (it *Item) Prose() []Prose {
	var out []Prose
	it.eachText(func(v strictjson.Value, t *trail, isName bool) {
		text := v.Text()
		if len(text) < minWording || t == nil {
			return
		}
		name := ""
		if !isName && t.name.Exists() {
			name = t.name.Text()
		}
		described := name == "description" || name == "instructions" || name == "title"
		if !described && (it.Kind == App || !hasWords(text, minWords)) {
			return
		}
		own := described && t.up == nil && name != "title"
		if own && (it.Kind == Tool || it.Kind == Prompt) {
			text = it.Name + ": " + text
		} else {
			text = strings.Clone(text)
		}
		out = append(out, Prose{Own: own, Text: text, key: it.Key, name: isName, at: t})
	})
	return out
}

// hasWords reports whether a text has so many words.
func hasWords(text string, n int) bool {
	for range strings.FieldsSeq(text) {
		if n--; n == 0 {
			return true
		}
	}
	return false
}

// eachText calls visit for every string of every item, names of members among them.
func (s *Surface) eachText(visit func(it *Item, v strictjson.Value, t *trail, isName bool)) {
	for i := range s.items {
		it := &s.items[i]
		it.eachText(func(v strictjson.Value, t *trail, isName bool) { visit(it, v, t, isName) })
	}
}

// eachText calls visit for every string of the item, names of members among them.
func (it *Item) eachText(visit func(v strictjson.Value, t *trail, isName bool)) {
	var doc strictjson.Doc
	if doc.Reset(it.JSON, itemLimits) == nil {
		walk(doc.Root(), nil, visit)
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
		tokens().Scrub(v.Text(), &r)
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
