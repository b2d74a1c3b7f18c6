// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"bytes"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Difference says what has become of an item.
type Difference string

// The verdicts.
const (
	Unchanged Difference = "unchanged"
	Changed   Difference = "changed"
	Added     Difference = "added"
	Removed   Difference = "removed"
)

// A Change is the verdict on one item.
type Change struct {
	Key                   // as it is now; of a removed item, as it was
	Was        string     // the name before, if that has changed; else ""
	Difference Difference //
	Old, New   Digest     // zero where absent
	Fields     []Field    // what differs, in the order of the text
	MoreFields int        // beyond those
	Hidden     []string   // paths of new text that pass 1's wide set would reject
}

// A Field is one value that differs between two versions of an item. Old and New
// are third-party text: show them by Show.
type Field struct {
	Path       string // for a person
	old, new   string // a string's own text, another value's canonical JSON
	Difference Difference
}

// maxFields bounds the fields of one Change.
const maxFields = 256

// diff compares two versions of a surface, given as items in order, and returns a
// Change for every item of either, in order of their keys. An item that has gone
// and one that has come are one renamed item if they say the same under another
// name, or have the same description, or the same schema. spec: surface/6
func diff(old, new []Item, t Tolerated) []Change {
	var changes []Change
	var gone, come []Item
	for len(old) > 0 || len(new) > 0 {
		order := 0
		switch {
		case len(old) == 0:
			order = 1
		case len(new) == 0:
			order = -1
		default:
			order = old[0].Key.compare(new[0].Key)
		}
		switch {
		case order < 0:
			gone, old = append(gone, old[0]), old[1:]
		case order > 0:
			come, new = append(come, new[0]), new[1:]
		default:
			changes = append(changes, compareBut(old[0], new[0], t))
			old, new = old[1:], new[1:]
		}
	}
	changes = append(changes, pair(gone, come)...)
	slices.SortStableFunc(changes, func(a, b Change) int { return a.Key.compare(b.Key) })
	return changes
}

// compare judges two versions of one item, which may bear two names.
func compare(old, new Item) Change { return compareBut(old, new, nil) }

// compareBut is compare with tolerated parts.
func compareBut(old, new Item, t Tolerated) Change {
	c := Change{Key: new.Key, Difference: Unchanged, Old: old.Digest, New: new.Digest}
	if old.sameBut(new, t) {
		return c
	}
	c.Difference = Changed
	if old.Name != new.Name {
		c.Was = old.Name
	}
	var a, b strictjson.Doc
	d := differ{c: &c}
	if a.Reset(formOf(old.Key, old.JSON, nil), itemLimits) == nil && b.Reset(formOf(new.Key, new.JSON, nil), itemLimits) == nil {
		d.values(a.Root(), b.Root(), nil)
	} else {
		d.add(nil, Changed, string(old.JSON), string(new.JSON))
	}
	c.Hidden = hiddenIn(new)
	return c
}

// itemLimits are for bytes that this package has written or a store has kept.
var itemLimits = strictjson.Limits{}

// whole is the Change of an item that has no other version.
func whole(it Item, v Difference) Change {
	c := Change{Key: it.Key, Difference: v}
	if v == Removed {
		c.Old = it.Digest
		return c
	}
	c.New = it.Digest
	var doc strictjson.Doc
	if doc.Reset(it.JSON, itemLimits) != nil {
		return c
	}
	d := differ{c: &c}
	i := 0
	for name, val := range doc.Root().Members() {
		d.add(&trail{nil, name, i}, Added, "", spelled(val))
		i++
	}
	c.Hidden = hiddenIn(it)
	return c
}

type differ struct{ c *Change }

func (d differ) add(t *trail, v Difference, old, new string) {
	if len(d.c.Fields) == maxFields {
		d.c.MoreFields++
		return
	}
	d.c.Fields = append(d.c.Fields, Field{Path: t.place(Key{}, false).Path, Difference: v, old: old, new: new})
}

// spelled is a value as a Field holds it. It is a copy.
func spelled(v strictjson.Value) string {
	if v.Kind() == '"' {
		return strings.Clone(v.Text())
	}
	return string(v.Raw())
}

func (d differ) values(a, b strictjson.Value, t *trail) {
	switch {
	case bytes.Equal(a.Raw(), b.Raw()): // both are canonical
	case a.Kind() == '{' && b.Kind() == '{':
		d.objects(a, b, t)
	case a.Kind() == '[' && b.Kind() == '[':
		d.arrays(a, b, t)
	default:
		d.add(t, Changed, spelled(a), spelled(b))
	}
}

// objects compares members by name; those that went are told first.
func (d differ) objects(a, b strictjson.Value, t *trail) {
	now := make(map[string]strictjson.Value, b.Len())
	for name, val := range b.Members() {
		now[name.Text()] = val
	}
	was := make(map[string]bool, a.Len())
	i := 0
	for name, val := range a.Members() {
		at := trail{t, name, i}
		was[name.Text()] = true
		if other, ok := now[name.Text()]; ok {
			d.values(val, other, &at)
		} else {
			d.add(&at, Removed, spelled(val), "")
		}
		i++
	}
	i = 0
	for name, val := range b.Members() {
		if !was[name.Text()] {
			d.add(&trail{t, name, i}, Added, "", spelled(val))
		}
		i++
	}
}

// arrays leaves out what is the same at either end and compares the rest in order.
func (d differ) arrays(a, b strictjson.Value, t *trail) {
	x, y := slices.Collect(a.Elements()), slices.Collect(b.Elements())
	same := func(v, w strictjson.Value) bool { return bytes.Equal(v.Raw(), w.Raw()) }
	from := 0
	for from < min(len(x), len(y)) && same(x[from], y[from]) {
		from++
	}
	for len(x) > from && len(y) > from && same(x[len(x)-1], y[len(y)-1]) {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	for i := from; i < max(len(x), len(y)); i++ {
		at := trail{up: t, index: i}
		switch {
		case i >= len(y):
			d.add(&at, Removed, spelled(x[i]), "")
		case i >= len(x):
			d.add(&at, Added, "", spelled(y[i]))
		default:
			d.values(x[i], y[i], &at)
		}
	}
}

// hiddenIn returns where the item holds what pass 1's wide set rejects.
func hiddenIn(it Item) (paths []string) {
	var doc strictjson.Doc
	if doc.Reset(it.JSON, itemLimits) != nil {
		return nil
	}
	in := newInspector(Rules{}, len(it.JSON))
	in.key = it.Key
	walk(doc.Root(), nil, in.visit)
	for _, h := range in.out.Hits {
		paths = append(paths, h.Path)
	}
	return paths
}

// pair finds which of the items that came are those that went, under a new name.
func pair(gone, come []Item) (changes []Change) {
	taken := make(map[Key]bool, len(gone))
	for _, trait := range []func(Item) string{sansName, description, schemas} {
		if len(taken) == len(gone) || len(come) == 0 {
			break
		}
		left := map[string][]Item{}
		for _, it := range gone {
			if t := trait(it); t != "" && !taken[it.Key] {
				left[t] = append(left[t], it)
			}
		}
		var still []Item
		for _, it := range come {
			t := trait(it)
			if len(left[t]) == 0 {
				still = append(still, it)
				continue
			}
			old := left[t][0]
			left[t], taken[old.Key] = left[t][1:], true
			changes = append(changes, compare(old, it))
		}
		come = still
	}
	for _, it := range gone {
		if !taken[it.Key] {
			changes = append(changes, whole(it, Removed))
		}
	}
	for _, it := range come {
		changes = append(changes, whole(it, Added))
	}
	return changes
}

// The traits by which a renamed item is known again, the surest first. Each begins
// with the kind; "" is none.

func sansName(it Item) string {
	return traitOf(it, func(root strictjson.Value) []byte {
		return appendCanonical(nil, root, func(name string, _ strictjson.Value) bool {
			return name == "name" || name == "uri" || name == "uriTemplate"
		})
	})
}

// minTrait is the least that two different things do not share by chance, in bytes.
const minTrait = 24

func description(it Item) string {
	return traitOf(it, func(root strictjson.Value) []byte { return root.Get("description").Raw() })
}

func schemas(it Item) string {
	return traitOf(it, func(root strictjson.Value) []byte {
		if root.Get("inputSchema").Get("properties").Len() < 2 {
			return nil
		}
		return root.Get("inputSchema").Raw()
	})
}

func traitOf(it Item, of func(strictjson.Value) []byte) string {
	var doc strictjson.Doc
	if it.Kind < Tool || doc.Reset(it.JSON, itemLimits) != nil {
		return ""
	}
	t := of(doc.Root())
	if len(t) < minTrait {
		return ""
	}
	return it.Kind.String() + string(t)
}
