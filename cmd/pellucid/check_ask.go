// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// ask lets a person decide about every command that a file names. Who types a
// command has decided.
func (c *checkCmd) ask(e *env, targets []*target) error {
	var open []*target
	for _, t := range targets {
		if t.file != "" && t.command != nil && t.problem == nil && (!t.disabled || c.Server != "") {
			open = append(open, t)
		}
	}
	if c.Yes || len(open) == 0 {
		return nil
	}
	if !canAsk(e) {
		for _, t := range open {
			fmt.Fprintf(e.Stderr, "%s would be started:\n%s", t.title(), t.shown())
		}
		return errNobody
	}
	return askEach(e.Stdin, e.Stderr, open)
}

var errNobody = exit.With(exit.Usage, errors.New("check: nothing was started, for there is nobody to ask: look at the commands above and say --yes"))

// askEach asks about each command. Whoever goes away in the middle has agreed to none.
func askEach(r io.Reader, w io.Writer, open []*target) error {
	in := bufio.NewReader(r)
	for _, t := range open {
		yes, err := terminal.Agrees(in, w, fmt.Sprintf("%s is started by:\n%sStart it?", t.title(), t.shown()))
		if err != nil {
			return errNobody
		}
		t.declined = !yes
	}
	return nil
}
