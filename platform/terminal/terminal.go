// SPDX-License-Identifier: Apache-2.0

// Package terminal reads the files that a user names, and writes reports: text in colours, rows, JSON and progress.
package terminal

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// Printable returns s for a terminal: whatever a person would not see, or a
// terminal would obey, is spelled out.
func Printable(s string) string { return scrub.Visible(s, false) }

// Inline is printable for what has to stay on its line, such as a name that a stranger
// chose: no end of a line makes it look like two, and one that is very long is cut.
func Inline(s string) string {
	rest := ""
	if len(s) > MaxInline {
		cut := MaxInline
		for cut > MaxInline-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s, rest = s[:cut], fmt.Sprintf("\u2026 (+%d bytes)", len(s)-cut)
	}
	return lineEnds.Replace(Printable(s)) + rest
}

const MaxInline = 512 // bytes

var lineEnds = strings.NewReplacer("\n", "\u2039U+000A LINE FEED\u203a", "\t", "\u2039U+0009 CHARACTER TABULATION\u203a")

// A palette colours words for a person; the zero palette does not.
type Palette struct{ On bool }

// PaletteFor returns colours for w where it is a terminal, unless the person
// does not want any (https://no-color.org).
func PaletteFor(w io.Writer, getenv func(string) string) Palette {
	return Palette{On: isObeying(w) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

func (p Palette) paint(sgr, s string) string {
	if !p.On {
		return s
	}
	return "\x1b[" + sgr + "m" + s + "\x1b[0m"
}

// Bold, Red, Green, Yellow and Dim return s in that colour or weight; s itself where colours are off.
func (p Palette) Bold(s string) string   { return p.paint("1", s) }
func (p Palette) Red(s string) string    { return p.paint("31", s) }
func (p Palette) Green(s string) string  { return p.paint("32", s) }
func (p Palette) Yellow(s string) string { return p.paint("33", s) }
func (p Palette) Dim(s string) string    { return p.paint("2", s) }

// IsTerminal reports whether a person looks at what is written to w.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// isObeying reports whether w is a terminal that obeys escape sequences.
func isObeying(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && IsTerminal(f) && obeysEscapes(f)
}

// ReadsTerminal reports whether a person may answer on r.
func ReadsTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && IsTerminal(f)
}

// Agrees asks a question, and reports whether a person agrees. The error is that of
// reading: whoever was asked has gone away.
func Agrees(in *bufio.Reader, out io.Writer, question string) (bool, error) {
	fmt.Fprintf(out, "%s [y/N] ", question)
	line, err := in.ReadString('\n')
	if err != nil {
		fmt.Fprintln(out)
		return false, err
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}

// Section heads a part of what is printed.
func Section(w io.Writer, p Palette, title string) { fmt.Fprintf(w, "\n%s\n", p.Bold(title)) }

// Indent prints a text of its own, line by line.
func Indent(w io.Writer, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(w, "  %s\n", strings.TrimSuffix(line, "\n"))
	}
}

// Plural returns "1 thing" or "n things".
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Thousands writes n with a comma for every three digits.
func Thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return Thousands(n/1000) + fmt.Sprintf(",%03d", n%1000)
}

// Minute is a time for a person.
func Minute(t time.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }

// Plain is an error's text without the name of the layer that has read a file.
func Plain(says string) string { return strings.ReplaceAll(says, "strictjson: ", "no strict JSON: ") }
