// SPDX-License-Identifier: Apache-2.0

package pinview

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

var (
	// errNoItem: no item of the pin has that name or digest.
	errNoItem = errors.New("pins: no such item")
	// ErrSeveralItems: the name is that of several items.
	ErrSeveralItems = errors.New("pins: several items are called so: say its kind too, as in tool/search, or the digest")
)

// named reports whether name means the item: its name, its kind and name as in tool/search,
// or the digest of one of its versions. The empty name means every item.
func named(it *surface.PinnedItem, name string) bool {
	kind := it.Kind.String()
	switch {
	case name == "", it.Name != "" && name == it.Name, name == kind+"/"+it.Name, it.Name == "" && name == kind:
		return true
	case it.Pending != "" && name == it.PendingDigest().String():
		return true
	}
	return it.Approved != "" && name == it.ApprovedDigest().String()
}

// noItem is errNoItem with what was asked for, and where to look.
func noItem(pin *surface.Pin, name string) error {
	return fmt.Errorf("%w: nothing of %s has the name or digest %s: pellucid pins diff %s shows what waits",
		errNoItem, finding.Quote(pin.Name()), finding.Quote(name), terminal.ShellWord(pin.Name()))
}

// Items returns the items that name means. Without any it fails with errNoItem, unless the
// name is empty.
func Items(pin *surface.Pin, name string) (out []*surface.PinnedItem, err error) {
	for i := range pin.Items {
		if it := &pin.Items[i]; named(it, name) {
			out = append(out, it)
		}
	}
	if len(out) == 0 && name != "" {
		return nil, noItem(pin, name)
	}
	return out, nil
}

// version returns the one item that name means, and the digest of the version that is
// meant: the one that the server shows, unless name is the digest of the approved one.
func version(pin *surface.Pin, name string) (*surface.PinnedItem, surface.Digest, error) {
	items, err := Items(pin, name)
	switch {
	case err != nil:
		return nil, surface.Digest{}, err
	case len(items) == 0:
		return nil, surface.Digest{}, errNoItem
	case len(items) > 1:
		return nil, surface.Digest{}, ErrSeveralItems
	}
	it := items[0]
	if it.Approved != "" && name == it.ApprovedDigest().String() {
		return it, it.ApprovedDigest(), nil
	}
	return it, current(it), nil
}

// waiting returns the items of that kind that wait for a decision; of every kind if it is
// empty.
func waiting(pin *surface.Pin, kind string) (out []*surface.PinnedItem) {
	for i := range pin.Items {
		if it := &pin.Items[i]; it.State() == surface.Pending && (kind == "" || kind == it.Kind.String()) {
			out = append(out, it)
		}
	}
	return out
}

// current is the digest of what the server shows.
func current(it *surface.PinnedItem) surface.Digest {
	switch {
	case it.Pending != "":
		return it.PendingDigest()
	case it.Approved != "":
		return it.ApprovedDigest()
	case len(it.Blocked) > 0:
		return it.Blocked[len(it.Blocked)-1]
	}
	return surface.Digest{}
}

// An Item is a pinned item as JSON. Name, Approved and Pending are third-party text.
type Item struct {
	Server   string           `json:"server"`
	Kind     surface.Kind     `json:"kind"`
	Name     string           `json:"name,omitzero"`
	Was      string           `json:"was,omitzero"`
	State    surface.State    `json:"state"`
	Digest   surface.Digest   `json:"digest"` // of the version that waits, else of the approved one
	Approved string           `json:"approved,omitzero"`
	Pending  string           `json:"pending,omitzero"`
	Blocked  []surface.Digest `json:"blocked,omitzero"`
	By       string           `json:"by,omitzero"`
	At       time.Time        `json:"at"`
}

// NewItem is an item of the pin of that server.
func NewItem(server string, it *surface.PinnedItem) Item {
	return Item{server, it.Kind, it.Name, it.Was, it.State(), current(it), it.Approved, it.Pending, it.Blocked, it.By, it.At}
}

// Show says how much of a pin WriteItems shows.
type Show struct {
	OneOfMany bool // the pin is one of several: its name is the heading, and why it was rejected is left out
	Texts     bool // the versions of the items, hidden characters spelled out
}

// WriteItems shows a person items of a pin.
func (s Show) WriteItems(dst io.Writer, p terminal.Palette, pin *surface.Pin, items []*surface.PinnedItem) error {
	w := bufio.NewWriter(dst)
	if s.OneOfMany && len(items) > 0 {
		Heading(w, p, pin)
	}
	if !s.OneOfMany && pin.Rejected != "" {
		writeRejected(w, terminal.ShellWord(pin.Name()), pin.RejectedAt, pin.Rejected)
	}
	if len(pin.Tolerates) > 0 && len(items) > 0 {
		fmt.Fprintf(w, "%-8s  %s: a change of nothing else but these parts holds no item\n", "tolerates", terminal.Inline(strings.Join(pin.Tolerates, ", ")))
	}
	for _, it := range items {
		fmt.Fprintf(w, "%-8s  %s  %s", it.State(), terminal.Inline(it.Key.String()), p.Dim(current(it).String()))
		if it.By != "" {
			fmt.Fprintf(w, "  %s by %s", terminal.Minute(it.At), terminal.Inline(it.By))
		}
		fmt.Fprintln(w)
		if s.Texts {
			writeVersion(w, p, "approved", it.Approved)
			writeVersion(w, p, "waits", it.Pending)
		}
	}
	return w.Flush()
}

// Heading writes the name of a pin above what follows.
func Heading(w io.Writer, p terminal.Palette, pin *surface.Pin) {
	terminal.Section(w, p, terminal.ShellWord(pin.Name()))
}

func writeVersion(w io.Writer, p terminal.Palette, title, text string) {
	if text == "" {
		return
	}
	terminal.Section(w, p, title)
	terminal.Indent(w, terminal.Printable(text))
	terminal.ExplainHidden(w, p, text)
}
