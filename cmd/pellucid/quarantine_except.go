// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/review"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

type quarantineExceptCmd struct {
	reviewerFlags
	For     string `placeholder:"TIME" help:"How long the exception lasts, such as 30d or 12h; at most 365d."`
	Server  string `placeholder:"NAME" help:"Server of the exception."`
	Tool    string `placeholder:"NAME" help:"Tool of the exception (default: every tool of the server)."`
	Code    string `placeholder:"CODE" help:"Code that results are not held for."`
	This    bool   `help:"Only for results with the same bytes as the item."`
	Why     string `placeholder:"TEXT" help:"Reason, for those who read the list; up to 200 bytes."`
	DryRun  bool   `help:"Say what it would have let through, and grant nothing."`
	Yes     bool   `short:"y" help:"Do not ask for confirmation."`
	Confirm string `placeholder:"ID" help:"Confirm this exception, which another person has proposed, and grant no other."`
	ItemArg string `arg:"" optional:"" name:"id" help:"Item of which server, tool and code are taken."`
}

func (quarantineExceptCmd) Help() string {
	return `Until the exception ends, results of the tool are not held for the code: they are delivered without
what was found, as where no rule holds them. Other codes and rules hold them as before. Before it is
granted, the verb says what it would have let through in the last seven days. It takes effect at every
process of the store within a second, is in the record, and is listed by pellucid quarantine list --of exceptions;
pellucid quarantine revoke ends it. Items that wait already stay.

Where quarantine: {two_persons: true} was set when such items were held, the exception is only proposed, and
another person puts it in force with pellucid quarantine except --confirm ID; its time begins then. A gateway that has this setting counts no
exception that only one person has granted.`
}

func (c *quarantineExceptCmd) Validate() error {
	if c.Confirm != "" {
		if !hold.ValidID(c.Confirm) || c.ItemArg != "" || c.For != "" || c.Server != "" || c.Code != "" {
			return errors.New("--confirm takes the 32 hexadecimal digits of an exception, and no other flag beside --by, --db and --json")
		}
		return c.reviewerFlags.Validate()
	}
	switch {
	case c.ItemArg != "" && !hold.ValidID(c.ItemArg):
		return errors.New("an item is named by 32 hexadecimal digits, in lower case")
	case c.ItemArg == "" && (c.Server == "" || c.Code == "" || c.This):
		return errors.New("give the id of an item, or --server and --code")
	case c.ItemArg != "" && (c.Server != "" || c.Tool != "" || c.Code != ""):
		return errors.New("give the id of an item, or --server and --code, and not both")
	case c.Code != "" && !hold.Exceptable(finding.Code(c.Code)):
		return fmt.Errorf("--code: no exception can be granted for %s", finding.Quote(c.Code))
	}
	_, err := c.lasts()
	return errors.Join(err, c.reviewerFlags.Validate())
}

func (c *quarantineExceptCmd) lasts() (time.Duration, error) {
	d, err := terminal.Age(c.For)
	if err != nil || d < time.Minute || d > hold.MaxException {
		return 0, errors.New("--for: want a time from 1m to 365d, such as 30d or 12h")
	}
	return d, nil
}

func (c *quarantineExceptCmd) Run(e *env) error {
	if c.Confirm != "" {
		return c.confirm(e)
	}
	keep, err := c.lasts()
	if err != nil {
		return err
	}
	return unknown(c.DB.WithReview(func(ctx context.Context, r *install.Review) error {
		x := hold.Exception{Server: c.Server, Tool: c.Tool, Code: finding.Code(c.Code), Why: c.Why, By: c.who(e)}
		two := false
		if c.ItemArg != "" {
			it, err := r.Queue.Get(ctx, c.ItemArg)
			if err != nil {
				return err
			}
			if x.Server, x.Tool, x.Code = it.Server, it.Tool, it.Code; it.IsCall() || !hold.Exceptable(it.Code) {
				return errors.New("quarantine: no exception can be granted for what has held this item: change its rule")
			}
			if two = it.People > 1; c.This {
				x.Digest = it.Digest
			}
		}
		seen, err := r.Queue.Foresee(ctx, x)
		if err != nil {
			return err
		}
		fmt.Fprintln(e.Stderr, foreseen(&x, &seen))
		if c.DryRun {
			return nil
		}
		if !c.Yes {
			unasked := exit.With(exit.Usage, errors.New("quarantine: there is no terminal to ask: say --yes"))
			question := "Grant the exception until " + terminal.Minute(time.Now().Add(keep)) + "?"
			if two || seen.Two {
				question = "Propose the exception? Another person has to confirm it."
			}
			if err := e.agrees(question, unasked, exit.With(exit.Usage, errors.New("quarantine: nothing was granted"))); err != nil {
				return err
			}
		}
		if x, err = r.Exceptions.Grant(ctx, x, keep, two || seen.Two); err != nil {
			return err
		}
		if c.JSON {
			return terminal.WriteJSON(e.Stdout, review.NewException(&x))
		}
		if x.Proposed() {
			fmt.Fprintf(e.Stdout, "Proposed. It needs two persons: it is in force once another one says pellucid quarantine except --confirm %s.\n", x.ID)
			return nil
		}
		fmt.Fprintf(e.Stdout, "Granted until %s. pellucid quarantine revoke %s ends it.\n", terminal.Minute(x.Until), x.ID)
		return nil
	}))
}

// foreseen says what an exception would have let through.
func foreseen(x *hold.Exception, f *hold.Foreseen) string {
	of := review.Source(&hold.Item{Server: x.Server, Tool: x.Tool})
	if f.N == 0 {
		return fmt.Sprintf("In the last 7 days nothing of %s was held for %s.", of, x.Code)
	}
	s := fmt.Sprintf("In the last 7 days it would have let through %s of %s that were held for %s: %s, %s.", terminal.Plural(f.N, "item"), of, x.Code,
		terminal.Plural(f.Digests, "different result"), terminal.Plural(f.Principals, "principal"))
	if f.Mixed > 0 {
		s += fmt.Sprintf(" %d of the newest %d have findings of other codes too, which may hold them still.", f.Mixed, f.Looked)
	}
	if f.Waiting > 0 {
		s += fmt.Sprintf(" %s for a reviewer now; the exception does not release them.", map[bool]string{true: "1 waits", false: fmt.Sprint(f.Waiting, " wait")}[f.Waiting == 1])
	}
	return s
}

// confirm puts in force what another person has proposed.
func (c *quarantineExceptCmd) confirm(e *env) error {
	return c.DB.WithReview(func(ctx context.Context, r *install.Review) error {
		x, err := r.Exceptions.Confirm(ctx, c.Confirm, c.who(e))
		switch {
		case errors.Is(err, hold.ErrNotFound):
			return errors.New("quarantine: no such exception: pellucid quarantine list --of exceptions has them")
		case errors.Is(err, hold.ErrSecond):
			return errors.New("quarantine: this person has proposed the exception: another one has to confirm it")
		case err != nil:
			return err
		case c.JSON:
			return terminal.WriteJSON(e.Stdout, review.NewException(&x))
		}
		fmt.Fprintf(e.Stdout, "Confirmed. It is in force until %s. pellucid quarantine revoke %s ends it.\n", terminal.Minute(x.Until), x.ID)
		return nil
	})
}
