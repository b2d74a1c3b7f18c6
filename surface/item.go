package surface

import (
	"bytes"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/internal/strictjson"
)

// What follows is for whoever has single answers of a server and not its whole
// surface: the boundary, which compares every listing with what was approved.

// EntryItem is the item of an entry of the list that method asks for. ok is false for
// what no such list can hold.
func EntryItem(method string, entry strictjson.Value) (it Item, ok bool) {
	l := listOf(method)
	if l == nil || entry.Kind() != '{' {
		return Item{}, false
	}
	name := entry.Get(l.key)
	if name.Kind() != '"' || name.Text() == "" {
		return Item{}, false
	}
	return newItem(Key{l.kind, strings.Clone(name.Text())}, Canonical(entry)), true
}

// HelloItem is the item of an answer to initialize or server/discover.
func HelloItem(result strictjson.Value) Item {
	return newItem(Key{Kind: Server}, appendCanonical(nil, result, isBookkeeping))
}

// BesideItem is the item of what one page of a list says beside its entries; ok is
// false if that is nothing.
func BesideItem(method string, page strictjson.Value) (it Item, ok bool) {
	l := listOf(method)
	if l == nil {
		return Item{}, false
	}
	rest := beside(l, page)
	if rest == "" {
		return Item{}, false
	}
	return newItem(Key{List, l.method}, []byte("["+rest+"]")), true
}

// beside is the canonical form of what a page says beside its entries; "" if nothing.
func beside(l *list, page strictjson.Value) string {
	rest := appendCanonical(nil, page, func(name string, v strictjson.Value) bool {
		return name == l.member && v.Kind() == '[' || isBookkeeping(name, v)
	})
	if string(rest) == "{}" {
		return ""
	}
	return string(rest)
}

// Entries is the member of a result that holds the entries of the list that method
// asks for; "" if it asks for none.
func Entries(method string) string {
	if l := listOf(method); l != nil {
		return l.member
	}
	return ""
}

// Canonical is the canonical form of v. spec: surface/2.3
func Canonical(v strictjson.Value) []byte { return appendCanonical(nil, v, nil) }

// IsBookkeeping reports whether a member of a result is no part of a surface.
// spec: surface/2.2
func IsBookkeeping(name string, v strictjson.Value) bool { return isBookkeeping(name, v) }

// Inspect is pass 1 over one item.
func (it Item) Inspect(r Rules) *Inspection {
	in := &inspector{wide: r.Wide, key: it.Key, out: &Inspection{Octets: len(it.JSON)}}
	if slices.Contains(r.DangerouslyAllow, it.Digest) {
		in.allowed = []Key{it.Key}
	}
	var doc strictjson.Doc
	if doc.Reset(bytes.Clone(it.JSON), itemLimits) == nil {
		in.value(doc.Root(), nil)
	}
	return in.out
}
