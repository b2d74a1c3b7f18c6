// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// answer prints what a verb has found on standard output: as JSON, or as write shows it to a
// person.
func (e *env) answer(verb string, asJSON bool, found any, write func(io.Writer, terminal.Palette) error) (err error) {
	if asJSON {
		err = terminal.WriteJSON(e.Stdout, found)
	} else {
		err = write(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv))
	}
	if err != nil {
		return fmt.Errorf("%s: write: %w", verb, err)
	}
	return nil
}

// canAsk reports whether a person is there who can be asked.
func canAsk(e *env) bool { return terminal.IsTerminal(e.Stderr) && terminal.ReadsTerminal(e.Stdin) }

// agrees asks a person. It returns unasked where no person answers, and declined where the
// answer is not yes.
func (e *env) agrees(question string, unasked, declined error) error {
	if !canAsk(e) {
		return unasked
	}
	switch yes, err := terminal.Agrees(bufio.NewReader(e.Stdin), e.Stderr, question); {
	case err != nil:
		return unasked
	case !yes:
		return declined
	}
	return nil
}
