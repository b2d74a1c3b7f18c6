// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/captures"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/review"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// quarantineCmd is what a person does about results that were held.
type quarantineCmd struct {
	List    quarantineListCmd    `cmd:"" help:"List the held items; or exceptions, approvals or blocked sources."`
	Show    quarantineShowCmd    `cmd:"" help:"Show an item, with hidden text decoded."`
	Release quarantineReleaseCmd `cmd:"" help:"Release an item, or all that flags select: each is delivered once."`
	Deny    quarantineDenyCmd    `cmd:"" help:"Deny an item, or all that flags select: they are never delivered."`

	Except quarantineExceptCmd `cmd:"" help:"Let results pass for a time although a code is found in them; confirm what another person has proposed."`
	Revoke quarantineRevokeCmd `cmd:"" help:"End an exception, an approval or the block of a source before its time."`
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
	Of    string `enum:"items,exceptions,approvals,blocks" default:"items" help:"What to list: ${enum}. Approvals are calls that are approved for a time; blocks are sources whose text has taken control of a model."`
	Ended bool   `help:"With --of: also list what has ended."`
	State string `enum:"held,released,taken,denied,expired,all" default:"held" help:"List the items of this state: ${enum}."`
	queueFilter
	Group string `enum:"none,digest,server,tool,code,principal" default:"none" help:"Count items by what they have in common: ${enum}."`
	Sort  string `enum:"newest,oldest,count" default:"newest" help:"Order: ${enum}. Groups can be sorted by count."`
	After string `placeholder:"ID" help:"List the items that follow this one: the last item of the page before."`
	Skip  int    `placeholder:"N" help:"Leave out the first groups: those of the pages before."`
	Limit int    `default:"100" help:"Maximum number of items or groups to list, up to 1,000."`
	JSON  bool   `name:"json" help:"Print one JSON object for each item or group, as JSON lines."`

	Terms []string `arg:"" optional:"" name:"filter" help:"List the items that this filter selects, as in server:mail code:hidden-tag since:24h."`
}

// filter is what the terms or the flags select.
func (c *quarantineListCmd) filter() (hold.Filter, error) {
	switch {
	case len(c.Terms) == 0:
		return c.queueFilter.filter()
	case c.queueFilter != queueFilter{}:
		return hold.Filter{}, errors.New("give a filter, or flags that select items, and not both")
	}
	return review.Filter(strings.Join(c.Terms, " "), time.Now())
}

func (quarantineListCmd) Help() string {
	return `An item is a result or a call that was withheld. The client got a
constant text with the id of the item. The list shows codes and sizes; quarantine show shows the
content. A filter has terms NAME:VALUE, each once: server, tool, code, found, rule, principal, text,
without, digest, id, since and until; it is written as for ledger show and in the console. With --group, each line is a group of items, with how many there are and the id of the newest.

With --of, the newest comes first. Exceptions are those that reviewers have granted; those of the configuration
stand in the file. An approval is made by pellucid quarantine release --remember: until it ends, pellucid guard lets
the same call of the same principal pass: the same tool, the same arguments, and values that come
from the same kind of place and from the same sources. pellucid guard sets a block when a counterfactual run has
found that text of a server took control of a model: until it ends, gateways on the same database hold results with
that text, or all results of that tool or server, as the guard is configured.`
}

func (c *quarantineListCmd) Validate() error {
	switch {
	case c.Of != "items" && (len(c.Terms) > 0 || c.queueFilter != queueFilter{} || c.Group != "none" || c.After != ""):
		return errors.New("a filter, --group and --after are for --of items")
	case c.Of == "items" && c.Ended:
		return errors.New("--ended is for --of exceptions, approvals and blocks; --state is for items")
	case c.Group == "none" && (c.Sort == string(hold.MostFirst) || c.Skip != 0):
		return errors.New("--sort count and --skip go with --group")
	case c.Group != "none" && c.After != "":
		return errors.New("--after is for items; --skip is for groups")
	}
	_, err := c.filter()
	return err
}

func (c *quarantineListCmd) Run(e *env) error {
	switch c.Of {
	case "exceptions":
		return listEnding(c, e, func(r *install.Review) lister[hold.Exception] { return r.Exceptions.List }, review.NewException, review.WriteExceptions, "No exception is granted.")
	case "approvals":
		return listEnding(c, e, func(r *install.Review) lister[hold.Approval] { return r.Approvals.List }, review.NewApproval, review.WriteApprovals, "No call is approved.")
	case "blocks":
		return listEnding(c, e, func(r *install.Review) lister[hold.Block] { return r.Blocks.List }, review.NewBlock, review.WriteBlocks, "No source is blocked.")
	}
	f, err := c.filter()
	if err != nil {
		return err
	}
	f.State, f.After, f.Limit, f.Oldest = hold.State(c.State), c.After, c.Limit, c.Sort == string(hold.OldestFirst)
	if c.State == "all" {
		f.State = ""
	}
	var items []hold.Item
	if c.Group != "none" {
		if err := c.groups(e, f); !errors.Is(err, install.ErrNoStore) {
			return err
		}
	}
	more := ""
	err = c.DB.WithReview(func(ctx context.Context, r *install.Review) (err error) {
		full, err := r.Queue.FullShares(ctx)
		for _, t := range full {
			fmt.Fprintf(e.Stderr, "pellucid: %s.\n", t)
		}
		if err != nil {
			return err
		}
		items, more, err = r.Queue.Pages(ctx, f)
		if errors.Is(err, hold.ErrNotFound) {
			return errors.New("quarantine: the item of --after is no longer kept: begin with the first page")
		}
		return err
	})
	if err := c.listed(err); err != nil {
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
	if err := review.WriteItems(e.Stdout, items); err != nil || more == "" {
		return err
	}
	fmt.Fprintf(e.Stderr, "More items follow: --after %s has the next ones; --group digest counts them.\n", items[len(items)-1].ID)
	return nil
}

// itemID is the argument that names an item.
type itemID struct {
	ID string `arg:"" help:"Evidence id of the item: the 32 hexadecimal digits in the placeholder."`
}

func (c *itemID) Validate() error {
	if c.ID != "" && !hold.ValidID(c.ID) { // without an id kong says what is missing
		return errors.New("an item is named by 32 hexadecimal digits, in lower case")
	}
	return nil
}

// reviewerFlags are those of a verb by which a reviewer decides.
type reviewerFlags struct {
	stateDB
	By   string `placeholder:"NAME" help:"Name of the reviewer (default: the name of this user)."`
	JSON bool   `name:"json" help:"Print what was decided as JSON."`
}

// decideFlags are those of a verb that decides about one thing.
type decideFlags struct {
	reviewerFlags
	itemID
}

// decideSome are those of a verb that decides about one item or about a selection.
type decideSome struct {
	reviewerFlags
	selectFlags
	ID string `arg:"" optional:"" help:"Evidence id of the item: the 32 hexadecimal digits in the placeholder."`
}

func (c *decideSome) Validate() error {
	if err := c.reviewerFlags.Validate(); err != nil {
		return err
	}
	if c.ID != "" && !hold.ValidID(c.ID) {
		return errors.New("an item is named by 32 hexadecimal digits, in lower case")
	}
	return c.check(c.ID)
}

// who is the person's name for the record.
func (c *reviewerFlags) who(e *env) string {
	for _, name := range []string{c.By, e.Getenv("USER"), e.Getenv("USERNAME")} {
		if frame.IsLabel(name) {
			return name
		}
	}
	if name := cmp.Or(e.Getenv("USER"), e.Getenv("USERNAME")); name != "" { // so that two users are two persons
		sum := sha256.Sum256([]byte(strings.ToLower(name)))
		return "operator-" + hex.EncodeToString(sum[:4])
	}
	return "operator"
}

func (c *reviewerFlags) Validate() error {
	if c.By != "" && !frame.IsLabel(c.By) {
		return errors.New("--by: want 1 to 128 of A-Z a-z 0-9 . _ / : @ + -")
	}
	return nil
}

func (c *decideFlags) Validate() error {
	return errors.Join(c.reviewerFlags.Validate(), c.itemID.Validate())
}

func (c *reviewerFlags) decide(e *env, id string, do func(*hold.Queue, context.Context, string, string) error, say func(w io.Writer, it *hold.Item)) error {
	return unknown(c.DB.WithReview(func(ctx context.Context, r *install.Review) error {
		if err := do(r.Queue, ctx, id, c.who(e)); err != nil {
			return err
		}
		return c.tell(ctx, e, r.Queue, id, say)
	}))
}

// tell says what has become of an item.
func (c *reviewerFlags) tell(ctx context.Context, e *env, q *hold.Queue, id string, say func(w io.Writer, it *hold.Item)) error {
	it, err := q.Get(ctx, id)
	if err != nil {
		return err
	}
	it.Body = nil // that is for show
	if c.JSON {
		return terminal.WriteJSON(e.Stdout, review.NewItem(&it))
	}
	say(e.Stdout, &it)
	return nil
}

type quarantineReleaseCmd struct {
	decideSome
	reviewerKey
	Remember string `placeholder:"TIME" help:"Also let the same call of the guard pass for this time, such as 30d: see pellucid quarantine list --of approvals."`
}

func (c *quarantineReleaseCmd) Validate() error {
	if c.Remember != "" {
		if _, err := approvalTime(c.Remember); err != nil {
			return err
		}
		if c.All {
			return errors.New("--remember goes with the id of an item")
		}
	}
	return c.decideSome.Validate()
}

func (quarantineReleaseCmd) Help() string {
	return `A released result is delivered once: to the next call of the same tool with the same
arguments, byte for byte, by the same principal, before the item expires. The server does not get
that call. The result is scrubbed, framed and recorded like any other; only the finding that held
it is ignored. A released result of a task goes to the next request for the result of the same task. A released call goes to the server once: the next one that is the same. An item that is encrypted for its reviewers needs --identity, and stays encrypted
until it is delivered. With --all, every held item that the other flags select is released, with a record each.
Where quarantine: {two_persons: true} was set when an item was held, the first release proposes it, and
another person confirms it. With --remember, a call that pellucid guard has held passes for that time: for
the same principal, with the same tool and arguments, and with values from the same sources. Where two
persons are needed, only the second of them can say --remember.`
}

func (c *quarantineReleaseCmd) Run(e *env) error {
	if c.All {
		return c.decideAll(e, &c.reviewerFlags, hold.Released)
	}
	if c.Remember != "" {
		return c.remembered(e)
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
	return c.decide(e, c.ID, release, saidReleased)
}

// saidReleased says what a release has come to.
func saidReleased(w io.Writer, it *hold.Item) {
	if it.State == hold.Held {
		fmt.Fprintf(w, "Proposed. The item needs two persons: another one has to release it too, until %s.\n", terminal.Minute(it.Until))
		return
	}
	if it.Found.Task != "" {
		fmt.Fprintf(w, "Released. The next %s for the same task of %s gets this result, scrubbed and\nframed, once, until %s; the server is not asked again.\n",
			it.Found.Task, review.Source(it), terminal.Minute(it.Until))
		return
	}
	then := "gets this result, scrubbed and\nframed, once, until %s; the server is not asked again.\n"
	if it.IsCall() {
		then = "is not held, once, until\n%s; its result is checked like any other.\n"
	}
	fmt.Fprintf(w, "Released. The next call of %s with the same arguments "+then, review.Source(it), terminal.Minute(it.Until))
}

// approvalTime reads how long an approval lasts: "30d", "12h", "90m".
func approvalTime(s string) (time.Duration, error) {
	d, err := terminal.Age(s)
	if err != nil || d < time.Minute || d > hold.MaxApproval {
		return 0, errors.New("--remember: want a time from 1m to 365d, such as 30d or 12h")
	}
	return d, nil
}

// remembered releases the item, and approves its calls then: who may not release it approves nothing.
func (c *quarantineReleaseCmd) remembered(e *env) error {
	keep, err := approvalTime(c.Remember)
	if err != nil {
		return err
	}
	return unknown(c.DB.WithReview(func(ctx context.Context, r *install.Review) error {
		it, err := r.Queue.Get(ctx, c.ID)
		if err != nil {
			return err
		}
		opened, err := c.unseal(e, &it)
		if err != nil {
			return err
		}
		list, err := r.Approvals.ReleaseAndRemember(ctx, r.Queue, &it, opened, c.who(e), keep)
		for _, a := range list {
			fmt.Fprintf(e.Stderr, "Approved until %s: %s. pellucid quarantine revoke %s ends it.\n", terminal.Minute(a.Until), review.NewApproval(&a).Tool, a.ID)
		}
		if err != nil {
			return err
		}
		return c.tell(ctx, e, r.Queue, c.ID, saidReleased)
	}))
}

type quarantineDenyCmd struct{ decideSome }

func (quarantineDenyCmd) Help() string {
	return `The item stays withheld, and its content is removed. The client was told when the item was
held. If the client makes the same call again, it goes to the server again. With --all, every held
item that the other flags select is denied, with a record each.`
}

func (c *quarantineDenyCmd) Run(e *env) error {
	if c.All {
		return c.decideAll(e, &c.reviewerFlags, hold.Denied)
	}
	return c.decide(e, c.ID, (*hold.Queue).Deny, func(w io.Writer, it *hold.Item) {
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
	return body, k.opened(err)
}

// opened is an error of opening what is encrypted, with its exit code.
func (k *reviewerKey) opened(err error) error {
	if errors.Is(err, capture.ErrIdentity) {
		return exit.With(exit.Config, fmt.Errorf("quarantine: --identity: %w", err))
	}
	return err
}

// identities are those of the reviewer, or "".
func (k *reviewerKey) identities(e *env) (string, error) {
	if k.Identity == "" {
		return "", nil
	}
	return k.text(e)
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
read it, and do not paste it into a model. Above it stand all findings, what classifiers said, and the
question, where capture: [arguments] keeps it. The content is gone once the item was delivered or
denied, or has expired. Of a call that was not held, the texts are shown that capture and capture_of keep.`
}

func (c *quarantineShowCmd) Run(e *env) error {
	return unknown(c.DB.WithReview(func(ctx context.Context, r *install.Review) error {
		by, err := install.Opener()
		if err != nil {
			return err
		}
		identities, err := c.identities(e)
		if err != nil {
			return err
		}
		it, err := r.Queue.Get(ctx, c.ID)
		if errors.Is(err, hold.ErrNotFound) {
			return c.captured(ctx, e, r.Captures, by, identities)
		}
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
		asked := review.Ask(&it, by, identities)
		if c.JSON {
			return terminal.WriteJSON(e.Stdout, review.NewShown(&it, asked))
		}
		return review.Show(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv), &it, asked)
	}))
}

// captured shows what was kept of a call that was not held.
func (c *quarantineShowCmd) captured(ctx context.Context, e *env, kept captures.Store, by *capture.Sealer, identities string) error {
	got, err := captures.Read(ctx, kept, by, c.ID, identities, time.Now())
	switch {
	case errors.Is(err, captures.ErrNotKept):
		return hold.ErrNotFound
	case err != nil:
		return c.opened(err)
	case c.JSON:
		return terminal.WriteJSON(e.Stdout, got)
	}
	return review.ShowCapture(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv), got)
}
