// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// Write prints the explanation for a person.
func (e *Explanation) Write(dst io.Writer, p terminal.Palette) error {
	w := bufio.NewWriter(dst)
	where := strings.Join(e.Found, ", ")
	if e.Index != nil {
		where = strings.Replace(where, "ledger", fmt.Sprintf("record %d of the ledger", *e.Index), 1)
	}
	fmt.Fprintf(w, "%s  %s  %s\n", p.Bold(e.ID), terminal.Inline(e.Time), p.Dim("in: "+where))
	part := func(title string, lines ...string) {
		if len(lines) == 0 {
			return
		}
		terminal.Section(w, p, title)
		for _, line := range lines {
			fmt.Fprintf(w, "  %s\n", terminal.Inline(line))
		}
	}
	part("What happened", e.Happened...)
	var codes, why, since []string
	for _, c := range e.Codes {
		n := ""
		if c.N > 0 {
			n = fmt.Sprintf(" %d", c.N)
		}
		codes = append(codes, fmt.Sprintf("%s%s (%s, %s): %s", c.Code, n, c.Role, c.Severity, c.Meaning))
	}
	part("Codes", codes...)
	for _, c := range e.Why {
		why = append(why, c.Text)
	}
	part("Why", why...)
	part("What the client got", e.Delivered...)
	for _, s := range e.Since {
		since = append(since, s.line())
	}
	part("Since then", since...)
	if len(e.Do) > 0 {
		terminal.Section(w, p, "What you can do")
		for _, c := range e.Do {
			fmt.Fprintf(w, "  %s:\n    %s\n", terminal.Inline(c.Text), terminal.Printable(c.Command))
		}
	}
	part("Note", e.Notes...)
	return w.Flush()
}

func (s *Step) line() string {
	line := s.Time + "  " + s.Text
	if s.By != "" {
		line += " By " + s.By + "."
	}
	if s.Index != nil {
		line += fmt.Sprintf(" (record %d, %s)", *s.Index, s.ID)
	}
	if s.Asked {
		line += " <- asked for"
	}
	return line
}
