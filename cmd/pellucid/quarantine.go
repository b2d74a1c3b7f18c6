// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// quarantineCmd is what a person does about results that were held.
type quarantineCmd struct {
	List    quarantineListCmd    `cmd:"" help:"List what is held."`
	Show    quarantineShowCmd    `cmd:"" help:"Show an item, with what hides in it spelled out."`
	Release quarantineReleaseCmd `cmd:"" help:"Let an item be delivered, once."`
	Deny    quarantineDenyCmd    `cmd:"" help:"Withhold an item for good."`
	Blocks  quarantineBlocksCmd  `cmd:"" help:"List the sources that are withheld, because their text has taken control of a model."`
	Lift    quarantineLiftCmd    `cmd:"" help:"Withhold a source no longer."`
}

func (quarantineCmd) Help() string {
	return `Exit codes of each verb: 0 done; 1 there is no such item, or it is decided already; 2
wrong usage; 3 the state directory or an identity cannot be used; 4 the database cannot be
reached.`
}

// withQueue calls do with the queue.
func withQueue(d install.Database, do func(context.Context, *hold.Queue) error) error {
	return d.With(func(ctx context.Context, s *storage.Store, kept *install.Records) error {
		var o hold.Options
		if kept != nil {
			o.Evidence = kept.Held
		}
		err := do(ctx, hold.New(s, o))
		if errors.Is(err, hold.ErrNotFound) {
			return errors.New("quarantine: no such item: pellucid quarantine list --state all has those that are kept")
		}
		return err
	})
}

type quarantineListCmd struct {
	stateDB
	State  string `enum:"held,released,taken,denied,expired,all" default:"held" help:"Which items: ${enum}."`
	Server string `placeholder:"NAME" help:"Only of this server."`
	Tool   string `placeholder:"NAME" help:"Only of this tool."`
	Limit  int    `default:"100" help:"Greatest number of items that are listed, up to 1,000."`
	JSON   bool   `name:"json" help:"Print one JSON object for each item, as JSON lines."`
}

func (quarantineListCmd) Help() string {
	return `The newest item comes first. An item is a result that was withheld: a rule or a
schema did not let it through, and its caller was told a constant text that names the
item. It says nothing of its content but codes and sizes; show does.`
}

func (c *quarantineListCmd) Run(e *env) error {
	var items []hold.Item
	err := withQueue(c.DB, func(ctx context.Context, q *hold.Queue) (err error) {
		f := hold.Filter{State: hold.State(c.State), Server: c.Server, Tool: c.Tool, Limit: c.Limit}
		if c.State == "all" {
			f.State = ""
		}
		items, err = q.List(ctx, f)
		return err
	})
	if err != nil && !errors.Is(err, install.ErrNoStore) {
		return err
	}
	if c.JSON {
		for i := range items {
			if err := terminal.WriteJSON(e.Stdout, newItemJSON(&items[i])); err != nil {
				return err
			}
		}
		return nil
	}
	if len(items) == 0 {
		if err != nil {
			fmt.Fprintf(e.Stderr, "Nothing to list: %v.\n", err)
			return nil
		}
		fmt.Fprintln(e.Stderr, "Nothing to list.")
		return nil
	}
	w := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSTATE\tHELD\tUNTIL\tTOOL\tCODE\tOCTETS")
	for i := range items {
		it := believed(&items[i])
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\n", it.ID, it.State, terminal.Minute(it.Held), terminal.Minute(it.Until), toolOf(it), codeOf(it), it.Octets)
	}
	return w.Flush()
}

// believed is an item as it is shown. Whoever writes to a shared database is not to write
// to this terminal, or to fill it: what is not what it should be is quoted, and cut.
func believed(it *hold.Item) *hold.Item {
	out := *it
	if !hold.ValidID(it.ID) {
		out.ID = finding.Quote(it.ID)
	}
	if !it.State.Known() {
		out.State = frame.Other
	}
	names := frame.Origin{Server: it.Server, Tool: it.Tool}.Labels()
	out.Server, out.Tool = names.Server, names.Tool
	for _, s := range []*string{&out.Principal, &out.Rule, &out.By} {
		if len(*s) > terminal.MaxInline || !utf8.ValidString(*s) {
			*s = finding.Quote(*s)
		}
	}
	return &out
}

// toolOf and codeOf are what the store holds of names, if they are such.
func toolOf(it *hold.Item) string {
	name := frame.Origin{Server: it.Server, Tool: it.Tool}.Labels()
	if it.Tool == "" {
		return name.Server
	}
	return name.Server + "/" + name.Tool
}

func codeOf(it *hold.Item) string {
	if it.Code.Known() {
		return string(it.Code)
	}
	return frame.Other
}

// itemID is the argument that names an item.
type itemID struct {
	ID string `arg:"" help:"Item: the evidence id that the placeholder names, 32 hexadecimal digits."`
}

// Validate is called by kong; its error is one of usage.
func (c *itemID) Validate() error {
	if !hold.ValidID(c.ID) {
		return errors.New("an item is named by 32 hexadecimal digits, in lower case")
	}
	return nil
}

// decision is what release and deny share.
type decision struct {
	stateDB
	By   string `placeholder:"NAME" help:"Who decides; the name of this user if absent."`
	JSON bool   `name:"json" help:"Print the item as JSON."`
	itemID
}

// who is the person's name for the record.
func (c *decision) who(e *env) string {
	for _, name := range []string{c.By, e.Getenv("USER"), e.Getenv("USERNAME")} {
		if frame.IsLabel(name) {
			return name
		}
	}
	return "operator"
}

// Validate is called by kong; its error is one of usage.
func (c *decision) Validate() error {
	if c.By != "" && !frame.IsLabel(c.By) {
		return errors.New("--by: want 1 to 128 of A-Z a-z 0-9 . _ / : @ + -")
	}
	return c.itemID.Validate()
}

func (c *decision) decide(e *env, do func(*hold.Queue, context.Context, string, string) error, say func(w io.Writer, it *hold.Item)) error {
	return withQueue(c.DB, func(ctx context.Context, q *hold.Queue) error {
		if err := do(q, ctx, c.ID, c.who(e)); err != nil {
			return err
		}
		it, err := q.Get(ctx, c.ID)
		if err != nil {
			return err
		}
		it.Body = nil // that is for show
		if c.JSON {
			return terminal.WriteJSON(e.Stdout, newItemJSON(&it))
		}
		say(e.Stdout, &it)
		return nil
	})
}

type quarantineReleaseCmd struct {
	decision
	reviewerKey
}

func (quarantineReleaseCmd) Help() string {
	return `A released result is delivered once: to the next call of the same tool with the same
arguments, octet for octet, by the same principal, before the item expires. The
server is not asked again for it. The result is scrubbed, framed and recorded as any
other; it is let through although of a finding, not as it was received. An item that is
encrypted to its reviewers needs --identity; it is kept as it was until it is delivered.`
}

func (c *quarantineReleaseCmd) Run(e *env) error {
	release := func(q *hold.Queue, ctx context.Context, id, by string) error {
		it, err := q.Get(ctx, id)
		if err != nil {
			return err
		}
		body, err := c.unseal(e, &it)
		if err != nil {
			return err
		}
		return q.ReleaseOpened(ctx, id, by, body)
	}
	return c.decide(e, release, func(w io.Writer, it *hold.Item) {
		fmt.Fprintf(w, "Released. The next call of %s with the same arguments gets this result, scrubbed and\n"+
			"framed, once, until %s; the server is not asked again.\n", toolOf(it), terminal.Minute(it.Until))
	})
}

type quarantineDenyCmd struct{ decision }

func (quarantineDenyCmd) Help() string {
	return `The item stays withheld and its content is removed. The caller was told so already,
when it was held; the same question asked again goes to the server again.`
}

func (c *quarantineDenyCmd) Run(e *env) error {
	return c.decide(e, (*hold.Queue).Deny, func(w io.Writer, it *hold.Item) {
		fmt.Fprintf(w, "Denied. What %s had answered is removed.\n", toolOf(it))
	})
}
