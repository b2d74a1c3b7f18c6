// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"io"
)

// A Progress is one line on standard error that says how far a verb has come. On a
// terminal it is written again in place; elsewhere it is written once.
type Progress struct {
	w      io.Writer // nil: not a terminal
	prefix string
}

// NewProgress writes plain, once, where stderr is no terminal that obeys.
func NewProgress(stderr io.Writer, plain string) *Progress {
	if !isObeying(stderr) {
		fmt.Fprintln(stderr, plain)
		return &Progress{}
	}
	return &Progress{w: stderr}
}

// Say writes what over the line.
func (p *Progress) Say(what string) {
	if p.w != nil {
		fmt.Fprintf(p.w, "\r\x1b[K%s%s", p.prefix, Printable(what))
	}
}

// Done takes the line away.
func (p *Progress) Done() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
