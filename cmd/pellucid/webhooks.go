// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/record/review"
	"github.com/pellucid-mcp/pellucid/record/webhook"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// webhooksCmd is what an operator asks of webhooks.
type webhooksCmd struct {
	stateDB
	Limit  int    `default:"100" help:"Maximum number of messages to list, up to 10,000."`
	Test   string `placeholder:"NAME" help:"Send a test message to this receiver of the configuration instead, once."`
	Config string `short:"c" placeholder:"FILE" help:"With --test: configuration (default: pellucid.yaml in your configuration folder)."`
	JSON   bool   `name:"json" help:"Print one JSON object for each message, as JSON lines."`
}

func (webhooksCmd) Help() string {
	return `pellucid up and pellucid guard tell the receivers in the configuration what waits for a
reviewer: docs/spec/config.md, "Webhooks". A message that has arrived is not kept. One that does not arrive within
three days is given up, and listed for 30 days. The message of --test has the type test, and is sent once, at once, by
this process. Exit codes: 0 done, or the receiver has taken it; 2 wrong usage; 3 the state directory or the
configuration cannot be used; 4 the database cannot be reached, or the receiver has not taken it.`
}

func (c *webhooksCmd) Validate() error {
	if c.Limit < 1 || c.Limit > webhook.MaxWaiting {
		return errors.New("--limit: want 1 to 10,000")
	}
	return nil
}

func (c *webhooksCmd) Run(e *env) error {
	if c.Test != "" {
		return c.test(e)
	}
	var list []webhook.Message
	err := c.DB.With(func(ctx context.Context, s *storage.Store, _ *install.Records) (err error) {
		list, err = s.ListMessages(ctx, c.Limit)
		return err
	})
	if err := c.listed(err); err != nil {
		return err
	}
	return printRows(e, c.JSON, list, review.NewMessage, review.WriteMessages, "No message waits, and none was given up.")
}

// test sends a message to a receiver.
func (c *webhooksCmd) test(e *env) error {
	r, err := e.readConfiguration(c.Config)
	switch {
	case err != nil:
		return exit.With(exit.Config, fmt.Errorf("webhooks: %w", err))
	case r == nil:
		return exit.With(exit.Usage, errors.New("webhooks: --test needs a configuration: -c FILE"))
	}
	hook := r.Webhooks[c.Test]
	if hook == nil {
		return exit.With(exit.Usage, fmt.Errorf("webhooks: the configuration has no receiver %s", finding.Quote(c.Test)))
	}
	to, err := hook.Receiver(c.Test)
	if err != nil {
		return exit.With(exit.Config, fmt.Errorf("webhooks: %w", err))
	}
	defer to.Close()
	ctx, stop := exit.UntilSignal()
	defer stop()
	m := to.Message(webhook.Notice{Type: webhook.Test, At: time.Now()}, webhook.Approved{})
	if failure, _ := to.Send(ctx, &m, time.Now()); failure != "" {
		return exit.With(exit.Unreachable, fmt.Errorf("webhooks: receiver %s has not taken the message: %s", finding.Quote(c.Test), failure))
	}
	fmt.Fprintf(e.Stdout, "Receiver %s has taken the message %s.\n", c.Test, m.ID)
	return nil
}
