package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/scrub"
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

// A palette colours words for a person; the zero palette does not.
type palette struct{ on bool }

// paletteFor returns colours for w where it is a terminal, unless the person
// does not want any (https://no-color.org).
func paletteFor(w io.Writer, getenv func(string) string) palette {
	return palette{on: isTerminal(w) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

// isTerminal reports whether a person looks at what is written to w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// sayForClient tells a person who has started what a client starts why nothing happens.
func sayForClient(e *env, verb string) {
	if readsTerminal(e.Stdin) {
		fmt.Fprintf(e.Stderr, "pellucid %s waits for a client that speaks MCP on standard input: a client's configuration starts it. Ctrl-C ends it.\n", verb)
	}
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

// plural returns "1 thing" or "n things".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// A progress is one line on standard error that says how far a verb has come:
// rewritten in place on a terminal, and said once where nobody looks.
type progress struct {
	w      io.Writer
	prefix string
}

func newProgress(e *env, verb string) *progress {
	p := newProgressOf(e, verb+": measuring")
	p.prefix = verb + ": "
	return p
}

// newProgressOf says plain where there is no terminal.
func newProgressOf(e *env, plain string) *progress {
	if !isTerminal(e.Stderr) {
		fmt.Fprintln(e.Stderr, plain)
		return &progress{}
	}
	return &progress{w: e.Stderr}
}

func (p *progress) say(what string) {
	if p.w != nil {
		fmt.Fprintf(p.w, "\r\x1b[K%s%s", p.prefix, printable(what))
	}
}

func (p *progress) done() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
