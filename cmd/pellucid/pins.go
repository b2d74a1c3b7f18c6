package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/pellucid-mcp/pellucid/frame"
	"github.com/pellucid-mcp/pellucid/ground"
	"github.com/pellucid-mcp/pellucid/surface"
)

// pinsCmd is what a person does about servers that say something else than before.
type pinsCmd struct {
	List    pinsListCmd    `cmd:"" help:"List the servers that are pinned, and what waits."`
	Show    pinsShowCmd    `cmd:"" help:"Show what is known of a server, or the text of one item."`
	Diff    pinsDiffCmd    `cmd:"" help:"Show what waits against what is approved, field by field."`
	Approve pinsApproveCmd `cmd:"" help:"Let the version of an item through that waits."`
	Block   pinsBlockCmd   `cmd:"" help:"Hold the version of an item until it is another one."`
}

// errNoPins: nothing was ever pinned.
var errNoPins = errors.New("pins: there is no database yet: nothing was ever pinned")

// do calls f with the pins.
func (c *pinDB) do(f func(context.Context, *surface.Pins) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := c.open(ctx, false)
	switch {
	case err != nil:
		return err
	case s == nil:
		return errNoPins
	}
	defer s.Close()
	err = f(ctx, surface.NewPins(s, nil))
	if errors.Is(err, ground.ErrUnavailable) || errors.Is(err, ground.ErrBusy) || errors.Is(err, ground.ErrFull) {
		return withCode(exitUnreachable, err)
	}
	return err
}

type pinsListCmd struct {
	pinDB
	Server string `arg:"" optional:"" help:"Only this server."`
	JSON   bool   `name:"json" help:"Print one JSON object for each server, as JSON lines."`
}

// A pinRow is what is told of one server.
type pinRow struct {
	Server  string    `json:"server"`
	Since   time.Time `json:"since"`
	Items   int       `json:"items"`
	Live    int       `json:"live"`
	Pending int       `json:"pending"`
	Blocked int       `json:"blocked"`
}

func (c *pinsListCmd) Run(e *env) error {
	var rows []pinRow
	err := c.do(func(ctx context.Context, pins *surface.Pins) error {
		servers, err := pins.List(ctx)
		for _, server := range servers {
			if c.Server != "" && c.Server != server {
				continue
			}
			pin, err := pins.Get(ctx, server)
			if err != nil {
				return err
			}
			rows = append(rows, newPinRow(&pin))
		}
		return err
	})
	if err != nil && !errors.Is(err, errNoPins) {
		return err
	}
	if c.JSON {
		for _, r := range rows {
			if err := writeJSON(e.Stdout, r); err != nil {
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
	fmt.Fprintln(w, "SERVER\tSINCE\tITEMS\tLIVE\tPENDING\tBLOCKED")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\n", shellWord(r.Server), minute(r.Since), r.Items, r.Live, r.Pending, r.Blocked)
	}
	return w.Flush()
}

func newPinRow(pin *surface.Pin) pinRow {
	r := pinRow{Server: pin.Server, Since: pin.Since, Items: len(pin.Items)}
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
	pinDB
	Server string `arg:"" help:"Server, as list names it."`
	Item   string `arg:"" optional:"" help:"Item: its name, its kind and name as in tool/search, or the digest of a version."`
	JSON   bool   `name:"json" help:"Print it as JSON, one object for each item."`
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

func newPinnedItem(it *surface.PinnedItem) pinnedItem {
	return pinnedItem{it.Kind, it.Name, it.Was, it.State(), versionOf(it), it.Approved, it.Pending, it.Blocked, it.By, it.At}
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

type pinsShowCmd struct{ pinArgs }

func (pinsShowCmd) Help() string {
	return `Without an item: every item with its state and digest. With one: its versions as they
were received, as canonical JSON; what a terminal would not show is spelled out. It is a
stranger's text: read it, and do not paste it into a model.`
}

func (c *pinsShowCmd) Run(e *env) error {
	return c.do(func(ctx context.Context, pins *surface.Pins) error {
		pin, err := pins.Get(ctx, c.Server)
		if err != nil {
			return err
		}
		items, err := c.items(&pin)
		if err != nil {
			return err
		}
		if c.JSON {
			for _, it := range items {
				if err := writeJSON(e.Stdout, newPinnedItem(it)); err != nil {
					return err
				}
			}
			return nil
		}
		w := bufio.NewWriter(e.Stdout)
		p := paletteFor(e.Stdout, e.Getenv)
		for _, it := range items {
			fmt.Fprintf(w, "%-8s  %s  %s", it.State(), printable(it.Key.String()), p.dim(versionOf(it).String()))
			if it.By != "" {
				fmt.Fprintf(w, "  %s by %s", minute(it.At), printable(it.By))
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

func showVersion(w io.Writer, p palette, title, text string) {
	if text == "" {
		return
	}
	section(w, p, title)
	indent(w, printable(text))
	explainMessages(w, p, text)
}

type pinsDiffCmd struct{ pinArgs }

func (pinsDiffCmd) Help() string {
	return `Both sides of every field are shown whole, hidden characters spelled out. The digest
names the version: approve and block take it for the item, and decide about that
version and no other.`
}

func (c *pinsDiffCmd) Run(e *env) error {
	return c.do(func(ctx context.Context, pins *surface.Pins) error {
		pin, err := pins.Get(ctx, c.Server)
		if err != nil {
			return err
		}
		if _, err := c.items(&pin); err != nil {
			return err
		}
		w := bufio.NewWriter(e.Stdout)
		shown := 0
		for _, ch := range pin.Changes() {
			it := pin.Item(ch.Key)
			if it == nil || !named(it, c.Item) {
				continue
			}
			shown++
			out := newChange(ch, it.State(), surface.Field.ShowAll)
			if c.JSON {
				if err := writeJSON(w, out); err != nil {
					return err
				}
				continue
			}
			out.write(w, paletteFor(e.Stdout, e.Getenv))
		}
		if shown == 0 && !c.JSON {
			fmt.Fprintln(e.Stderr, "Nothing waits.")
		}
		return w.Flush()
	})
}

// pinDecision is what approve and block share.
type pinDecision struct {
	pinDB
	By     string `placeholder:"NAME" help:"Who decides; the name of this user if absent."`
	JSON   bool   `name:"json" help:"Print the item as JSON."`
	Server string `arg:"" help:"Server, as list names it."`
	Item   string `arg:"" help:"Item: the digest that diff shows; or, where somebody can be asked, its name, or kind and name as in tool/search."`
}

// Validate is called by kong; its error is one of usage.
func (c *pinDecision) Validate() error {
	if c.By != "" && !frame.IsLabel(c.By) {
		return errors.New("--by: want 1 to 128 of A-Z a-z 0-9 . _ / : @ + -")
	}
	return nil
}

type decide func(p *surface.Pins, ctx context.Context, server string, k surface.Key, d surface.Digest, by string) error

// decide asks about an item that was not named by its digest: whoever decides has seen
// that version.
func (c *pinDecision) decide(e *env, verb string, do decide, past string) error {
	return c.do(func(ctx context.Context, pins *surface.Pins) error {
		pin, err := pins.Get(ctx, c.Server)
		if err != nil {
			return err
		}
		it, digest, err := c.version(&pin)
		switch {
		case err != nil:
			return err
		case verb == "approve" && it.Pending == "":
			return errors.New("pins: nothing of this item waits")
		}
		if c.Item != digest.String() {
			if err := c.confirm(e, &pin, it, digest, verb); err != nil {
				return err
			}
		}
		who := (&decision{By: c.By}).who(e)
		if err := do(pins, ctx, c.Server, it.Key, digest, who); err != nil {
			return err
		}
		if !c.JSON {
			_, err := fmt.Fprintf(e.Stdout, "%s: %s of %s, %s\n", past, printable(it.Key.String()), printable(c.Server), digest)
			return err
		}
		if pin, err = pins.Get(ctx, c.Server); err != nil {
			return err
		}
		if now := pin.Item(it.Key); now != nil {
			return writeJSON(e.Stdout, newPinnedItem(now))
		}
		return nil
	})
}

// version finds the item, and which version of it is meant: the one that the server
// shows, unless the digest of the approved one is given.
func (c *pinDecision) version(pin *surface.Pin) (*surface.PinnedItem, surface.Digest, error) {
	items, err := (&pinArgs{Item: c.Item}).items(pin)
	switch {
	case err != nil:
		return nil, surface.Digest{}, err
	case len(items) > 1:
		return nil, surface.Digest{}, withCode(exitUsage, errors.New("pins: several items are called so: say its kind too, as in tool/search, or the digest"))
	}
	it := items[0]
	if it.Approved != "" && c.Item == it.ApprovedDigest().String() {
		return it, it.ApprovedDigest(), nil
	}
	return it, versionOf(it), nil
}

// confirm shows the version to the person who decides about it.
func (c *pinDecision) confirm(e *env, pin *surface.Pin, it *surface.PinnedItem, d surface.Digest, verb string) error {
	ask := withCode(exitUsage, fmt.Errorf("pins: there is nobody to ask: name the version that you have seen by its digest, as pellucid pins diff %s shows it", shellWord(pin.Server)))
	if !isTerminal(e.Stderr) || !readsTerminal(e.Stdin) {
		return ask
	}
	for _, ch := range pin.Changes() {
		if ch.Key == it.Key {
			out := newChange(ch, it.State(), surface.Field.ShowAll)
			out.write(e.Stderr, paletteFor(e.Stderr, e.Getenv))
		}
	}
	fmt.Fprintf(e.Stderr, "%s %s, %s? [y/N] ", verb, printable(it.Key.String()), d)
	line, err := bufio.NewReader(e.Stdin).ReadString('\n')
	if err != nil {
		fmt.Fprintln(e.Stderr)
		return ask
	}
	if !isYes(line) {
		return errors.New("pins: nothing was decided")
	}
	return nil
}

type pinsApproveCmd struct{ pinDecision }

func (pinsApproveCmd) Help() string {
	return `From now on the item may be seen as it is. A version that the server has replaced
meanwhile is not approved: the digest says which one was seen.`
}

func (c *pinsApproveCmd) Run(e *env) error {
	return c.decide(e, "approve", (*surface.Pins).Approve, "Approved")
}

type pinsBlockCmd struct{ pinDecision }

func (pinsBlockCmd) Help() string {
	return `The version stays held, also where it was approved before. Another version of the item
waits for a decision of its own.`
}

func (c *pinsBlockCmd) Run(e *env) error {
	return c.decide(e, "block", (*surface.Pins).Block, "Blocked")
}

// shellWord is a name that a person may copy: as it is where it is plain, else quoted.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, plainWord) == "" {
		return s
	}
	return strconv.QuoteToASCII(s)
}
