// SPDX-License-Identifier: Apache-2.0

// Package pinview shows what is pinned of a server and what waits, and takes the decisions of a person about it.
package pinview

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Change says what became of an item since it was approved, to a person and as JSON.
// Names and fields are third-party text.
type Change struct {
	Kind       surface.Kind       `json:"kind"`
	Item       string             `json:"item,omitzero"`
	Was        string             `json:"was,omitzero"`
	Verdict    surface.Difference `json:"verdict"`
	State      surface.State      `json:"state,omitzero"` // of what the server shows now
	Digest     *surface.Digest    `json:"digest,omitzero"`
	Fields     []Field            `json:"fields,omitzero"`
	MoreFields int                `json:"more_fields,omitzero"`
	Hidden     []string           `json:"hidden,omitzero"`
	Tolerate   []string           `json:"tolerate,omitzero"` // what of admission.tolerate would let the item change so
	Opinion    string             `json:"opinion,omitzero"`  // of the model of the review, escaped
}

// Key is that of the item.
func (c *Change) Key() surface.Key { return surface.Key{Kind: c.Kind, Name: c.Item} }

// A Field is a part of an item that differs.
type Field struct {
	Path    string             `json:"path"`
	Verdict surface.Difference `json:"verdict"`
	Old     string             `json:"old"`
	New     string             `json:"new"`
}

// NewChange is c of an item that is in the state st. show cuts long texts, or does not.
func NewChange(c surface.Change, st surface.State, show func(surface.Field) (string, string)) Change {
	out := Change{Kind: c.Kind, Item: c.Name, Was: c.Was, Verdict: c.Difference, State: st, MoreFields: c.MoreFields, Hidden: c.Hidden}
	if c.New != (surface.Digest{}) {
		d := c.New
		out.Digest = &d
	}
	for _, f := range c.Fields {
		old, new := show(f)
		out.Fields = append(out.Fields, Field{f.Path, f.Difference, old, new})
	}
	return out
}

// Write shows a person what became of the item, field by field.
func (c *Change) Write(w io.Writer, p terminal.Palette) {
	fmt.Fprintf(w, "  %-13s %s", c.Verdict, terminal.Inline(c.Key().String()))
	if c.Was != "" {
		fmt.Fprintf(w, ", before %s", finding.Quote(c.Was))
	}
	if c.State != "" {
		fmt.Fprintf(w, ": %s", c.State)
	}
	if c.Digest != nil {
		fmt.Fprintf(w, "  %s", p.Dim(c.Digest.String()))
	}
	fmt.Fprintln(w)
	for _, f := range c.Fields {
		fmt.Fprintf(w, "    %s\n", terminal.Inline(f.Path))
		if f.Verdict != surface.Added {
			fmt.Fprintf(w, "    %s\n", p.Red("- "+Hanging(f.Old)))
		}
		if f.Verdict != surface.Removed {
			fmt.Fprintf(w, "    %s\n", p.Green("+ "+Hanging(f.New)))
		}
	}
	if c.MoreFields > 0 {
		fmt.Fprintf(w, "    and %s more\n", terminal.Plural(c.MoreFields, "field"))
	}
	if c.Opinion != "" {
		fmt.Fprintf(w, "    the model of the review says: %s\n", terminal.Inline(c.Opinion))
	}
	if len(c.Tolerate) > 0 {
		fmt.Fprintf(w, "    such a change is not held with admission: {tolerate: [%s]}\n", terminal.Inline(strings.Join(c.Tolerate, ", ")))
	}
	for _, at := range c.Hidden {
		fmt.Fprintf(w, "    %s: %s\n", p.Red("hidden text"), terminal.Inline(at))
	}
}

// Changes are those of the items that name means, with their texts whole. It fails as Items
// does.
func Changes(pin *surface.Pin, name string) (out []Change, err error) {
	if _, err := Items(pin, name); err != nil {
		return nil, err
	}
	for _, c := range pin.Changes() {
		if it := pin.Item(c.Key); it != nil && named(it, name) {
			change := NewChange(c, it.State(), surface.Field.ShowAll)
			change.Tolerate = it.Tolerable()
			out = append(out, change)
		}
	}
	return out, nil
}

// A ServerChange is a change of an item of this server, as JSON.
type ServerChange struct {
	Server string `json:"server"`
	Change
}

// WriteWaiting shows a person the versions of these items to decide about.
func WriteWaiting(dst io.Writer, p terminal.Palette, pin *surface.Pin, items []*surface.PinnedItem) error {
	w := bufio.NewWriter(dst)
	for _, c := range pin.Changes() {
		if i := slices.IndexFunc(items, func(it *surface.PinnedItem) bool { return it.Key == c.Key }); i >= 0 {
			out := NewChange(c, items[i].State(), surface.Field.ShowAll)
			out.Write(w, p)
		}
	}
	return w.Flush()
}

// Hanging is s for a person, with its lines indented under the first one.
func Hanging(s string) string { return strings.ReplaceAll(terminal.Printable(s), "\n", "\n      ") }
