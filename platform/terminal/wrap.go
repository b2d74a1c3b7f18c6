// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// Width is the number of columns that a report for a person uses.
const Width = 100

// Field writes text, broken into lines that begin at a column, with a label before the
// first line. So no line of text can be taken for a line of the program's own.
func Field(w io.Writer, column int, label, text string, paint func(string) string) {
	for _, line := range Wrap(text, Width-column) {
		if paint != nil {
			line = paint(line)
		}
		fmt.Fprintf(w, "    %-*s%s\n", column-4, label, line)
		label = ""
	}
}

// Wrap breaks text into lines of at most width columns, behind a space, comma
// or brace where it can.
func Wrap(text string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		from, cut, col := 0, 0, 0
		for i, r := range line {
			w := columns(r)
			if col+w > width && r != ' ' {
				if cut == from {
					cut = i
				}
				lines = append(lines, strings.TrimRight(line[from:cut], " "))
				from = cut
				col = textColumns(line[from:i])
			}
			if r == ' ' || r == ',' || r == '{' {
				cut = i + 1
			}
			col += w
		}
		lines = append(lines, strings.TrimRight(line[from:], " "))
	}
	return lines
}

func textColumns(s string) int {
	n := 0
	for _, r := range s {
		n += columns(r)
	}
	return n
}

// columns is how wide a terminal draws r: near enough to break the lines
// of a report.
func columns(r rune) int {
	switch {
	case ucd.Of(r)&(ucd.Hidden|ucd.Mark) != 0:
		return 0
	case 0x1100 <= r && r < 0x1160, 0x2E80 <= r && r < 0xA4D0, 0xAC00 <= r && r < 0xD7A4,
		0xFF01 <= r && r <= 0xFF60, 0x1F000 <= r:
		return 2
	}
	return 1
}
