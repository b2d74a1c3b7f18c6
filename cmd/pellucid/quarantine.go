// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/review"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// quarantineCmd is what a person does about results that were held.
type quarantineCmd struct {
	List    quarantineListCmd    `cmd:"" help:"List the held items."`
	Show    quarantineShowCmd    `cmd:"" help:"Show an item, with hidden text decoded."`
	Release quarantineReleaseCmd `cmd:"" help:"Release an item: it is delivered once."`
	Deny    quarantineDenyCmd    `cmd:"" help:"Deny an item: it is never delivered."`
	Blocks  quarantineBlocksCmd  `cmd:"" help:"List the blocked sources: their text has taken control of a model."`
	Lift    quarantineLiftCmd    `cmd:"" help:"End the block of a source."`

	Approvals quarantineApprovalsCmd `cmd:"" help:"List the calls that are approved for a time."`
	Revoke    quarantineRevokeCmd    `cmd:"" help:"End an approval before its time."`
}

func (quarantineCmd) Help() string {
	return `Exit codes of each verb: 0 done; 1 the item does not exist, or is decided already; 2
wrong usage; 3 the state directory or an identity cannot be used; 4 the database cannot be
reached.`
}

// unknown says where the items are, in place of the error that there is no such item.
func unknown(err error) error {
	if errors.Is(err, hold.ErrNotFound) {
		return errors.New("quarantine: no such item: pellucid quarantine list --state all has those that are kept")
	}
	return err
}

type quarantineListCmd struct {
	stateDB
	State  string `enum:"held,released,taken,denied,expired,all" default:"held" help:"List the items of this state: ${enum}."`
	Server string `placeholder:"NAME" help:"List only items of this server."`
	Tool   string `placeholder:"NAME" help:"List only items of this tool."`
	After  string `placeholder:"ID" help:"List the items that follow this one: the last item of the page before."`
	Limit  int    `default:"100" help:"Maximum number of items to list, up to 1,000."`
	JSON   bool   `name:"json" help:"Print one JSON object for each item, as JSON lines."`
}

func (quarantineListCmd) Help() string {
	return `The newest item comes first. An item is a result or a call that was withheld. The client got a
constant text with the id of the item. The list shows codes and sizes; quarantine show shows the
content.`
}

func (c *quarantineListCmd) Run(e *env) error {
	var items []hold.Item
	err := c.DB.WithQueue(func(ctx context.Context, q *hold.Queue) (err error) {
		f := hold.Filter{State: hold.State(c.State), Server: c.Server, Tool: c.Tool, After: c.After, Limit: c.Limit}
		if c.State == "all" {
			f.State = ""
		}
		items, err = q.List(ctx, f)
		if errors.Is(err, hold.ErrNotFound) {
			return errors.New("quarantine: the item of --after is no longer kept: begin with the first page")
		}
		return err
	})
	if err != nil && !errors.Is(err, install.ErrNoStore) {
		return err
	}
	if c.JSON {
		return terminal.WriteJSONLines(e.Stdout, items, review.NewItem)
	}
	if len(items) == 0 {
		if err != nil {
			fmt.Fprintf(e.Stderr, "Nothing to list: %v.\n", err)
			return nil
		}
		fmt.Fprintln(e.Stderr, "Nothing to list.")
		return nil
	}
	return review.WriteItems(e.Stdout, items)
}

// itemID is the argument that names an item.
type itemID struct {
	ID string `arg:"" help:"Evidence id of the item: the 32 hexadecimal digits in the placeholder."`
}

// Validate is called by kong; its error is one of usage.
func (c *itemID) validate() error {
	if !hold.ValidID(c.ID) {
		return errors.New("an item is named by 32 hexadecimal digits, in lower case")
	}
	return nil
}

// decision is what release and deny share.
type decideFlags struct {
	stateDB
	By   string `placeholder:"NAME" help:"Name of the reviewer (default: the name of this user)."`
	JSON bool   `name:"json" help:"Print the item as JSON."`
	itemID
}

// who is the person's name for the record.
func (c *decideFlags) who(e *env) string {
	for _, name := range []string{c.By, e.Getenv("USER"), e.Getenv("USERNAME")} {
		if frame.IsLabel(name) {
			return name
		}
	}
	return "operator"
}

// Validate is called by kong; its error is one of usage.
func (c *decideFlags) validate() error {
	if c.By != "" && !frame.IsLabel(c.By) {
		return errors.New("--by: want 1 to 128 of A-Z a-z 0-9 . _ / : @ + -")
	}
	return c.itemID.validate()
}

func (c *decideFlags) decide(e *env, do func(*hold.Queue, context.Context, string, string) error, say func(w io.Writer, it *hold.Item)) error {
	return unknown(c.DB.WithQueue(func(ctx context.Context, q *hold.Queue) error {
		if err := do(q, ctx, c.ID, c.who(e)); err != nil {
			return err
		}
		it, err := q.Get(ctx, c.ID)
		if err != nil {
			return err
		}
		it.Body = nil // that is for show
		if c.JSON {
			return terminal.WriteJSON(e.Stdout, review.NewItem(&it))
		}
		say(e.Stdout, &it)
		return nil
	}))
}

type quarantineReleaseCmd struct {
	decideFlags
	reviewerKey
	Remember string `placeholder:"TIME" help:"Also let the same call of the guard pass for this time, such as 30d: see pellucid quarantine approvals."`
}

// Validate is called by kong; its error is one of usage.
func (c *quarantineReleaseCmd) validate() error {
	if c.Remember != "" {
		if _, err := approvalTime(c.Remember); err != nil {
			return err
		}
	}
	return c.decideFlags.validate()
}

func (quarantineReleaseCmd) Help() string {
	return `A released result is delivered once: to the next call of the same tool with the same
arguments, byte for byte, by the same principal, before the item expires. The server does not get
that call. The result is scrubbed, framed and recorded like any other; only the finding that held
it is ignored. A released call goes to the server once: the next one that is the same. An item that is encrypted for its reviewers needs --identity, and stays encrypted
until it is delivered. With --remember, a call that pellucid guard has held passes for that time: for
the same principal, with the same tool and arguments, and with values from the same sources.`
}

func (c *quarantineReleaseCmd) Run(e *env) error {
	if c.Remember != "" {
		if err := c.remembered(e); err != nil {
			return unknown(err)
		}
	}
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
		then := "gets this result, scrubbed and\nframed, once, until %s; the server is not asked again.\n"
		if it.IsCall() {
			then = "is not held, once, until\n%s; its result is checked like any other.\n"
		}
		fmt.Fprintf(w, "Released. The next call of %s with the same arguments "+then, review.Source(it), terminal.Minute(it.Until))
	})
}

// remembered approves the calls of the item, before it is released.
func (c *quarantineReleaseCmd) remembered(e *env) error {
	keep, err := approvalTime(c.Remember)
	if err != nil {
		return err
	}
	return c.DB.WithApprovals(func(ctx context.Context, as *hold.Approvals, q *hold.Queue) error {
		it, err := q.Get(ctx, c.ID)
		if err != nil {
			return err
		}
		if it.State != hold.Held {
			return nil // release says what has become of it
		}
		body, err := c.unseal(e, &it)
		switch {
		case err != nil:
			return err
		case body == nil && it.Sealed():
			return hold.ErrSealed
		case body == nil:
			body = it.Body
		}
		list, err := as.Remember(ctx, &it, body, c.who(e), keep)
		if err != nil {
			return err
		}
		for _, a := range list {
			fmt.Fprintf(e.Stderr, "Approved until %s: %s. pellucid quarantine revoke %s ends it.\n", terminal.Minute(a.Until), review.NewApproval(&a).Tool, a.ID)
		}
		return nil
	})
}

type quarantineDenyCmd struct{ decideFlags }

func (quarantineDenyCmd) Help() string {
	return `The item stays withheld, and its content is removed. The client was told when the item was
held. If the client makes the same call again, it goes to the server again.`
}

func (c *quarantineDenyCmd) Run(e *env) error {
	return c.decide(e, (*hold.Queue).Deny, func(w io.Writer, it *hold.Item) {
		what := "The answer of %s is removed.\n"
		if it.IsCall() {
			what = "The call of %s was not carried out, and its arguments are removed.\n"
		}
		fmt.Fprintf(w, "Denied. "+what, review.Source(it))
	})
}

type quarantineShowCmd struct {
	stateDB
	JSON bool `name:"json" help:"Print the item as JSON, with its body and the hidden text in it."`
	reviewerKey
	itemID
}

// reviewerKey is the key of a reviewer.
type reviewerKey struct {
	Identity string `placeholder:"env:NAME|file:PATH" help:"File of your age identity, as age-keygen writes it. It is needed where the items are encrypted for reviewers."`
}

// unseal decrypts the body of an item; nil where there is nothing to open.
func (k *reviewerKey) unseal(e *env, it *hold.Item) ([]byte, error) {
	if !it.Sealed() || k.Identity == "" {
		return nil, nil
	}
	text, err := k.text(e)
	if err != nil {
		return nil, err
	}
	body, err := review.Open(it, text)
	if errors.Is(err, capture.ErrIdentity) {
		err = exit.With(exit.Config, fmt.Errorf("quarantine: --identity: %w", err))
	}
	return body, err
}

// text is what the reference stands for. A file may have comments, unlike other secrets.
func (k *reviewerKey) text(e *env) (string, error) {
	path, ok := strings.CutPrefix(k.Identity, "file:")
	if !ok {
		return e.secrets().optional("quarantine: --identity", k.Identity)
	}
	text, err := capture.ReadIdentities(path)
	if err != nil {
		return "", exit.With(exit.Config, errors.New("quarantine: --identity: the file cannot be read"))
	}
	return text, nil
}

func (quarantineShowCmd) Help() string {
	return `Prints every value of the result, or of the call's parameters, as it was received. Characters that a terminal would hide or
obey are spelled out; messages in hidden characters are decoded. All of it is third-party text:
read it, and do not paste it into a model. The content is gone once the item was delivered or
denied, or has expired.`
}

func (c *quarantineShowCmd) Run(e *env) error {
	return unknown(c.DB.WithQueue(func(ctx context.Context, q *hold.Queue) error {
		it, err := q.Get(ctx, c.ID)
		if err != nil {
			return err
		}
		body, err := c.unseal(e, &it)
		switch {
		case err != nil:
			return err
		case body != nil:
			it.Body = body
		}
		if c.JSON {
			return terminal.WriteJSON(e.Stdout, review.NewShown(&it))
		}
		return review.Show(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv), &it)
	}))
}
