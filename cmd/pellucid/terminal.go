// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// printable returns s for a terminal: whatever a person would not see, or a
// terminal would obey, is spelled out.
func printable(s string) string { return scrub.Visible(s, false) }

// inline is printable for what has to stay on its line, such as a name that a stranger
// chose: no end of a line makes it look like two, and one that is very long is cut.
func inline(s string) string {
	rest := ""
	if len(s) > maxInline {
		cut := maxInline
		for cut > maxInline-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s, rest = s[:cut], fmt.Sprintf("\u2026 (+%d octets)", len(s)-cut)
	}
	return lineEnds.Replace(printable(s)) + rest
}

const maxInline = 512 // octets

var lineEnds = strings.NewReplacer("\n", "\u2039U+000A LINE FEED\u203a", "\t", "\u2039U+0009 CHARACTER TABULATION\u203a")

// shellWord is a name that a person may copy: as it is where it is plain, else quoted.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, plainWord) == "" {
		return s
	}
	return strconv.QuoteToASCII(s)
}

// plainWord has the characters that no shell takes for anything else.
const plainWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@=+,%"

// A palette colours words for a person; the zero palette does not.
type palette struct{ on bool }

// paletteFor returns colours for w where it is a terminal, unless the person
// does not want any (https://no-color.org).
func paletteFor(w io.Writer, getenv func(string) string) palette {
	return palette{on: isTerminal(w) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

func (p palette) paint(sgr, s string) string {
	if !p.on {
		return s
	}
	return "\x1b[" + sgr + "m" + s + "\x1b[0m"
}

func (p palette) bold(s string) string   { return p.paint("1", s) }
func (p palette) red(s string) string    { return p.paint("31", s) }
func (p palette) green(s string) string  { return p.paint("32", s) }
func (p palette) yellow(s string) string { return p.paint("33", s) }
func (p palette) dim(s string) string    { return p.paint("2", s) }

// isTerminal reports whether a person looks at what is written to w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// readsTerminal reports whether a person may answer on r.
func readsTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && isTerminal(f)
}

// canAsk reports whether somebody is there who can be asked.
func canAsk(e *env) bool { return isTerminal(e.Stderr) && readsTerminal(e.Stdin) }

// agrees asks a question, and reports whether a person agrees. The error is that of
// reading: whoever was asked has gone away.
func agrees(in *bufio.Reader, out io.Writer, question string) (bool, error) {
	fmt.Fprintf(out, "%s [y/N] ", question)
	line, err := in.ReadString('\n')
	if err != nil {
		fmt.Fprintln(out)
		return false, err
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}

// sayForClient tells a person who has started what a client starts why nothing happens.
func sayForClient(e *env, verb string) {
	if readsTerminal(e.Stdin) {
		fmt.Fprintf(e.Stderr, "pellucid %s waits for a client that speaks MCP on standard input: a client's configuration starts it. Ctrl-C ends it.\n", verb)
	}
}

// section heads a part of what is printed.
func section(w io.Writer, p palette, title string) { fmt.Fprintf(w, "\n%s\n", p.bold(title)) }

// indent prints a text of its own, line by line.
func indent(w io.Writer, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(w, "  %s\n", strings.TrimSuffix(line, "\n"))
	}
}

// plural returns "1 thing" or "n things".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// thousands writes n with a comma for every three digits.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return thousands(n/1000) + fmt.Sprintf(",%03d", n%1000)
}

// minute is a time for a person.
func minute(t time.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }
