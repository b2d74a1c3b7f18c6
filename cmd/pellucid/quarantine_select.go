// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/review"
)

// queueFilter selects items of the queue. Flags that are given must all hold.
type queueFilter struct {
	Server    string `placeholder:"NAME" help:"Only items of this server."`
	Tool      string `placeholder:"NAME" help:"Only items of this tool."`
	Code      string `placeholder:"CODE" help:"Only items that were held for this code."`
	Found     string `placeholder:"CODE" help:"Only items with this code among their findings."`
	Rule      string `placeholder:"RULE" help:"Only items that this rule has held, such as finding or policy:NAME."`
	Principal string `placeholder:"NAME" help:"Only items of calls of this principal."`
	Digest    string `placeholder:"SHA256" help:"Only items with this text: sha256: and 64 hexadecimal digits, as show prints it."`
	Without   string `placeholder:"NAME" help:"Only items without a tool, without a principal, or without both: tool, principal or tool,principal."`
	Since     string `placeholder:"TIME" help:"Only items that were held since: a time as RFC 3339 writes it, or how long ago, such as 90m or 7d."`
	AsOf      string `name:"as-of" placeholder:"TIME" help:"Only items that were held then or before; written as for --since."`
	Text      string `placeholder:"TEXT" help:"Only items whose hidden characters spell this text. Items that are encrypted for reviewers are not found by it."`
}

// filter is what the flags select.
func (q *queueFilter) filter() (f hold.Filter, err error) {
	now := time.Now()
	for _, t := range []index.Term{{Name: "server", Value: q.Server}, {Name: "tool", Value: q.Tool}, {Name: "code", Value: q.Code}, {Name: "found", Value: q.Found}, {Name: "rule", Value: q.Rule},
		{Name: "principal", Value: q.Principal}, {Name: "without", Value: q.Without}, {Name: "digest", Value: q.Digest}, {Name: "since", Value: q.Since}, {Name: "text", Value: q.Text}} {
		if t.Value == "" {
			continue
		}
		if err := review.Set(&f, t.Name, t.Value, now); err != nil {
			return f, fmt.Errorf("--%s: %w", t.Name, err)
		}
	}
	f.AsOf, err = terminal.Moment("--as-of", q.AsOf, now)
	return f, err
}

// set reports whether any flag is given that narrows the selection.
func (q *queueFilter) set() bool {
	with := *q
	with.AsOf = ""
	return with != queueFilter{}
}

// selectFlags are those of a verb that decides about one item, or about all that flags select.
type selectFlags struct {
	queueFilter
	All bool `help:"Decide about all held items that the other flags select."`
	Yes bool `short:"y" help:"Do not ask for confirmation of --all."`
}

// check says whether the verb is about one item or about a selection.
func (s *selectFlags) check(id string) error {
	switch {
	case s.All && id != "":
		return errors.New("give the id of an item, or --all, and not both")
	case !s.All && s.set():
		return errors.New("flags that select items go with --all")
	case !s.All && id == "":
		return errors.New("give the id of an item, or --all with flags that select items")
	}
	if _, err := s.filter(); err != nil {
		return err
	}
	return nil
}

// A decidedAll is what became of a selection, for programs.
type decidedAll struct {
	AsOf     time.Time `json:"as_of"`
	Selected int       `json:"selected"`
	Decided  int       `json:"decided"`
	Proposed int       `json:"proposed"`
	Second   int       `json:"wait_for_a_second_person"`
	Sealed   int       `json:"encrypted"`
	Others   int       `json:"decided_by_others"`
}

// decideAll decides about a selection. It says first what it is going to do, and asks.
func (s *selectFlags) decideAll(e *env, c *reviewerFlags, to hold.State) error {
	f, err := s.filter()
	if err != nil {
		return err
	}
	return c.DB.WithReview(func(ctx context.Context, r *install.Review) error {
		if f.AsOf.IsZero() || f.AsOf.After(time.Now()) {
			f.AsOf = time.Now().UTC()
		}
		sel, shown, err := r.Queue.Show(ctx, f)
		if err != nil {
			return err
		}
		if sel.N == 0 {
			fmt.Fprintln(e.Stderr, "No held item is selected.")
			return nil
		}
		fmt.Fprintln(e.Stderr, "As of "+f.AsOf.Format(time.RFC3339)+", "+selected(&sel)+". What comes later is not selected.")
		if err := s.confirm(e, to, sel.N); err != nil {
			return err
		}
		done, err := r.Queue.DecideAll(ctx, shown, to, c.who(e), f)
		out := decidedAll{f.AsOf, sel.N, done.Done, done.Proposed, done.Second, done.Sealed, done.Others}
		if c.JSON {
			return errors.Join(terminal.WriteJSON(e.Stdout, out), err)
		}
		out.write(e.Stdout, to)
		if errors.Is(err, hold.ErrChanged) {
			return fmt.Errorf("quarantine: nothing is decided; the same command counts again and asks: %w", err)
		}
		if err != nil {
			err = fmt.Errorf("quarantine: the rest is not decided yet, and the same command goes on with it: %w", err)
		}
		return err
	})
}

// selected says how many items a selection has.
func selected(s *hold.Selection) string {
	return terminal.Plural(s.N, "held item") + " of " + terminal.Plural(s.Principals, "principal") + " and " + terminal.Plural(s.Sources, "tool") + ", since " + terminal.Minute(s.Oldest)
}

func (s *selectFlags) confirm(e *env, to hold.State, n int) error {
	if s.Yes {
		return nil
	}
	what := map[hold.State]string{hold.Released: "Release", hold.Denied: "Deny and destroy"}[to]
	unasked := exit.With(exit.Usage, errors.New("quarantine: this cannot be taken back, and there is no terminal to ask: say --yes"))
	return e.agrees(what+" "+terminal.Plural(n, "item")+"? This cannot be taken back.", unasked, exit.With(exit.Usage, errors.New("quarantine: nothing was decided")))
}

// write says what became of a selection.
func (d *decidedAll) write(w io.Writer, to hold.State) {
	word := map[hold.State]string{hold.Released: "Released", hold.Denied: "Denied"}[to]
	fmt.Fprintf(w, "%s: %s of %d.\n", word, terminal.Plural(d.Decided, "item"), d.Selected)
	for _, also := range []struct {
		n    int
		what string
	}{
		{d.Proposed, "proposed for release; another person has to confirm them, with the same command"},
		{d.Second, "that you have proposed already; another person has to confirm them"},
		{d.Sealed, "encrypted for reviewers; they are released one by one, with --identity"},
		{d.Others, "that another reviewer has decided first, or that have expired"},
	} {
		if also.n > 0 {
			fmt.Fprintf(w, "  and %d %s.\n", also.n, also.what)
		}
	}
}

// groups prints the groups of a list.
func (c *quarantineListCmd) groups(e *env, f hold.Filter) error {
	var counted hold.Counted
	by := hold.GroupBy(c.Group)
	err := c.DB.WithReview(func(ctx context.Context, r *install.Review) (err error) {
		counted, err = r.Queue.Groups(ctx, f, by, hold.GroupSort(c.Sort), c.Skip)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.WriteJSONLines(e.Stdout, counted.Groups, review.NewGroup)
	}
	if len(counted.Groups) > 0 {
		if err := review.WriteGroups(e.Stdout, by, counted.Groups); err != nil {
			return err
		}
	}
	rest := ""
	if end := c.Skip + len(counted.Groups); end < counted.Total {
		rest = fmt.Sprintf(" --skip %d has the next groups.", end)
	}
	if !counted.Until.IsZero() {
		rest += fmt.Sprintf(" Only the newest %d items of this state are counted, back to %s.", hold.MaxGrouped, terminal.Minute(counted.Until))
	}
	fmt.Fprintf(e.Stderr, "%s in %s.%s\n", terminal.Plural(counted.N, "item"), terminal.Plural(counted.Total, "group"), rest)
	return nil
}
