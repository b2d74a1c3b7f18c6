// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/preflight"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// ask lets a person decide about every command that a file names. A person who types
// a command has decided.
func (c *checkCmd) ask(e *env, targets []*preflight.Target) error {
	var open []*preflight.Target
	for _, t := range targets {
		if t.Asks(c.Server != "") {
			open = append(open, t)
		}
	}
	if c.Yes || len(open) == 0 {
		return nil
	}
	if !canAsk(e) {
		for _, t := range open {
			fmt.Fprintf(e.Stderr, "%s would be started:\n%s", t.Title(), t.CommandLine())
		}
		return errNobody
	}
	return askEach(e.Stdin, e.Stderr, open)
}

var errNobody = exit.With(exit.Usage, errors.New("check: nothing was started, because there is no terminal to ask at: look at the commands above, then run it again with --yes"))

// askEach asks about each command. A person who leaves in the middle has agreed to none.
func askEach(r io.Reader, w io.Writer, open []*preflight.Target) error {
	in := bufio.NewReader(r)
	for _, t := range open {
		yes, err := terminal.Agrees(in, w, fmt.Sprintf("%s is started by:\n%sStart it?", t.Title(), t.CommandLine()))
		if err != nil {
			return errNobody
		}
		t.Declined = !yes
	}
	return nil
}
