// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// pinsCmd is what a person does about servers that say something else than before.
type pinsCmd struct {
	List    pinsListCmd    `cmd:"" help:"List the servers that are pinned, and what waits."`
	Show    pinsShowCmd    `cmd:"" help:"Show what is known of a server, or the text of one item."`
	Diff    pinsDiffCmd    `cmd:"" help:"Show what waits against what is approved, field by field."`
	Approve pinsApproveCmd `cmd:"" help:"Let the version of an item through that waits."`
	Block   pinsBlockCmd   `cmd:"" help:"Hold the version of an item until it is another one."`
	Forget  pinsForgetCmd  `cmd:"" help:"Forget a server, as if it had never been seen."`
}

func (pinsCmd) Help() string {
	return `A server is pinned when it is first seen; what it says otherwise later waits. Exit codes
of each verb: 0 done, or nothing waits; 1 there is no such server or item, or nothing of
it waits; 2 wrong usage, or there is nobody to ask; 3 the state directory or a pin in it
is damaged; 4 the database cannot be reached.`
}

type pinsListCmd struct {
	pinFlags
	Server string `arg:"" optional:"" help:"Only this server."`
	JSON   bool   `name:"json" help:"Print one JSON object for each server, as JSON lines."`
}

// A pinRow is what is told of one server.
type pinRow struct {
	Server  string           `json:"server"` // its identity, or the name that the operator gave the pin
	Names   []string         `json:"names,omitzero"`
	Since   time.Time        `json:"since,omitzero"` // zero: it was never pinned
	Items   int              `json:"items"`
	Live    int              `json:"live"`
	Pending int              `json:"pending"`
	Blocked int              `json:"blocked"`
	In      install.PinPlace `json:"in"`

	Rejected   string    `json:"rejected,omitzero"` // why the server is, as a whole; escaped
	RejectedAt time.Time `json:"rejected_at,omitzero"`
}

func (c *pinsListCmd) Run(e *env) error {
	var rows []pinRow
	err := c.places().Each(func(ctx context.Context, in install.PinPlace, pins *surface.Pins) error {
		servers, err := pins.List(ctx)
		for _, server := range servers {
			pin, err := pins.Get(ctx, server)
			if err != nil {
				return err
			}
			if c.Server != "" && c.Server != server && !slices.Contains(pin.Names, c.Server) {
				continue
			}
			rows = append(rows, newPinRow(in, &pin))
		}
		return err
	})
	if err != nil && !errors.Is(err, install.ErrNoPins) {
		return err
	}
	if c.Server != "" && len(rows) == 0 {
		return install.NoPin(c.Server)
	}
	if c.JSON {
		for _, r := range rows {
			if err := terminal.WriteJSON(e.Stdout, r); err != nil {
				return err
			}
		}
		return nil
	}
	if len(rows) == 0 {
		fmt.Fprintln(e.Stderr, "Nothing to list.")
		return nil
	}
	w := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSINCE\tITEMS\tLIVE\tPENDING\tBLOCKED\tIN\tIDENTITY")
	for _, r := range rows {
		since := "never"
		if !r.Since.IsZero() {
			since = terminal.Minute(r.Since)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\n", r.names(), since, r.Items, r.Live, r.Pending, r.Blocked, r.In, terminal.ShellWord(r.Server))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Rejected != "" {
			sayRejected(e.Stdout, r.names(), r.RejectedAt, r.Rejected)
		}
	}
	return nil
}

func sayRejected(w io.Writer, server string, at time.Time, why string) {
	fmt.Fprintf(w, "%s is rejected since %s: %s\n", server, terminal.Minute(at), terminal.Inline(why))
}

// names are those that the server is known by, for a person.
func (r *pinRow) names() string {
	if len(r.Names) == 0 {
		return terminal.ShellWord(r.Server)
	}
	words := make([]string, len(r.Names))
	for i, n := range r.Names {
		words[i] = terminal.ShellWord(n)
	}
	return strings.Join(words, ", ")
}

func newPinRow(in install.PinPlace, pin *surface.Pin) pinRow {
	r := pinRow{Server: pin.Server, Names: pin.Names, In: in, Since: pin.Since, Items: len(pin.Items), Rejected: pin.Rejected, RejectedAt: pin.RejectedAt}
	for i := range pin.Items {
		switch pin.Items[i].State() {
		case surface.Pending:
			r.Pending++
		case surface.Blocked:
			r.Blocked++
		default:
			r.Live++
		}
	}
	return r
}

// pinArgs are what show and diff share.
type pinArgs struct {
	pinFlags
	Server string `arg:"" optional:"" help:"Server: a name that list shows, or its identity; all of them if absent."`
	Item   string `arg:"" optional:"" help:"Item: its name, its kind and name as in tool/search, or the digest of a version."`
	JSON   bool   `name:"json" help:"Print it as JSON, one object for each item."`
}

// every calls f for the server that a person has named, or for all of them, and says
// which one it is about where there are several.
func (c *pinArgs) every(f func(ctx context.Context, pin *surface.Pin) error) error {
	if c.Server != "" {
		return c.places().Of(c.Server, func(ctx context.Context, _ *surface.Pins, pin surface.Pin) error { return f(ctx, &pin) })
	}
	return c.places().Each(func(ctx context.Context, _ install.PinPlace, pins *surface.Pins) error {
		servers, err := pins.List(ctx)
		if err != nil {
			return err
		}
		for _, server := range servers {
			pin, err := pins.Get(ctx, server)
			if err == nil {
				err = f(ctx, &pin)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// errNoItem: what a person named is not there, or is several.
var errNoItem = errors.New("pins: no such item")

// named reports whether an item is what a person has named.
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

// items are those that a person has named.
func (c *pinArgs) items(pin *surface.Pin) (out []*surface.PinnedItem, err error) {
	for i := range pin.Items {
		if it := &pin.Items[i]; named(it, c.Item) {
			out = append(out, it)
		}
	}
	if len(out) == 0 && c.Item != "" {
		return nil, errNoItem
	}
	return out, nil
}

// pinnedItem is an item for programs. Approved and Pending are a stranger's text.
type pinnedItem struct {
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

func newPinnedItem(server string, it *surface.PinnedItem) pinnedItem {
	return pinnedItem{server, it.Kind, it.Name, it.Was, it.State(), versionOf(it), it.Approved, it.Pending, it.Blocked, it.By, it.At}
}

// versionOf is the digest of what the server shows.
func versionOf(it *surface.PinnedItem) surface.Digest {
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

type pinsShowCmd struct {
	pinArgs
	Pending bool `help:"Only what waits for a decision."`
}

func (pinsShowCmd) Help() string {
	return `Without an item: every item with its state and digest. With one: its versions as they
were received, as canonical JSON; what a terminal would not show is spelled out. It is a
stranger's text: read it, and do not paste it into a model.`
}

func (c *pinsShowCmd) Run(e *env) error {
	return c.every(func(_ context.Context, pin *surface.Pin) error {
		items, err := c.items(pin)
		if err != nil {
			return err
		}
		if c.Pending {
			items = slices.DeleteFunc(items, func(it *surface.PinnedItem) bool { return it.State() != surface.Pending })
		}
		if c.JSON {
			for _, it := range items {
				if err := terminal.WriteJSON(e.Stdout, newPinnedItem(pin.Server, it)); err != nil {
					return err
				}
			}
			return nil
		}
		w := bufio.NewWriter(e.Stdout)
		p := terminal.PaletteFor(e.Stdout, e.Getenv)
		if c.Server == "" && len(items) > 0 {
			terminal.Section(w, p, terminal.ShellWord(pin.Name()))
		}
		if c.Server != "" && pin.Rejected != "" {
			sayRejected(w, terminal.ShellWord(pin.Name()), pin.RejectedAt, pin.Rejected)
		}
		for _, it := range items {
			fmt.Fprintf(w, "%-8s  %s  %s", it.State(), terminal.Inline(it.Key.String()), p.Dim(versionOf(it).String()))
			if it.By != "" {
				fmt.Fprintf(w, "  %s by %s", terminal.Minute(it.At), terminal.Inline(it.By))
			}
			fmt.Fprintln(w)
			if c.Item != "" {
				showVersion(w, p, "approved", it.Approved)
				showVersion(w, p, "waits", it.Pending)
			}
		}
		return w.Flush()
	})
}

func showVersion(w io.Writer, p terminal.Palette, title, text string) {
	if text == "" {
		return
	}
	terminal.Section(w, p, title)
	terminal.Indent(w, terminal.Printable(text))
	terminal.ExplainHidden(w, p, text)
}

type pinsDiffCmd struct{ pinArgs }

func (pinsDiffCmd) Help() string {
	return `Both sides of every field are shown whole, hidden characters spelled out. The digest
names the version: approve and block take it for the item, and decide about that
version and no other.`
}

func (c *pinsDiffCmd) Run(e *env) error {
	shown := 0
	err := c.every(func(_ context.Context, pin *surface.Pin) error {
		if _, err := c.items(pin); err != nil {
			return err
		}
		w := bufio.NewWriter(e.Stdout)
		p := terminal.PaletteFor(e.Stdout, e.Getenv)
		headed := c.Server != ""
		for _, ch := range pin.Changes() {
			it := pin.Item(ch.Key)
			if it == nil || !named(it, c.Item) {
				continue
			}
			shown++
			out := newChange(ch, it.State(), surface.Field.ShowAll)
			if c.JSON {
				row := pinnedChange{pin.Server, out}
				if err := terminal.WriteJSON(w, row); err != nil {
					return err
				}
				continue
			}
			if !headed {
				terminal.Section(w, p, terminal.ShellWord(pin.Name()))
				headed = true
			}
			out.write(w, p)
		}
		return w.Flush()
	})
	if err == nil && shown == 0 && !c.JSON {
		fmt.Fprintln(e.Stderr, "Nothing waits.")
	}
	return err
}

// A pinnedChange is a change and whose it is.
type pinnedChange struct {
	Server string `json:"server"`
	checkedChange
}
