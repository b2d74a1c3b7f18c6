// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// Explain tells a person what was hidden in a text and what became of it.
// Whatever comes from the text goes through Printable or finding.Quote.
func Explain(dst io.Writer, p Palette, s *scrub.Scrubber, in string, r *scrub.Result) error {
	w := bufio.NewWriter(dst)
	out := r.Clean.String()
	fmt.Fprintf(w, "%s %s, sanitation %s, Unicode %s\n", p.Dim("profile"), s.Policy().Profile, s.Policy().Profile.Version(), scrub.UnicodeVersion)
	Section(w, p, fmt.Sprintf("received, %s", Plural(len(in), "byte")))
	Indent(w, Printable(in))
	ExplainHidden(w, p, in)
	explainEvents(w, p, in, out, r)
	explainNotes(w, p, r)
	if r.Refused != 0 {
		Section(w, p, p.Red("refused"))
		fmt.Fprintf(w, "  %s, the first at byte %d\n", r.Refused.Code(), r.RefusedAt.Start)
		return w.Flush()
	}
	if !r.Changed() {
		Section(w, p, p.Green("delivered unchanged"))
		return w.Flush()
	}
	Section(w, p, fmt.Sprintf("delivered, %s", Plural(len(out), "byte")))
	Indent(w, Printable(out))
	return w.Flush()
}

// ExplainHidden shows the messages that hidden characters of a text spell, if it has any.
func ExplainHidden(w io.Writer, p Palette, in string) {
	messages := scrub.Reveal(in)
	if len(messages) == 0 {
		return
	}
	Section(w, p, p.Red("hidden text said"))
	for _, m := range messages {
		fmt.Fprintf(w, "  bytes %d to %d, %s:\n", m.Start, m.End, m.Kind)
		Indent(w, "  "+p.Yellow(strings.ReplaceAll(Printable(m.Message), "\n", "\n  ")))
	}
}

// explainEvents lists what was removed or changed, neighbours together.
func explainEvents(w io.Writer, p Palette, in, out string, r *scrub.Result) {
	if len(r.Edits) == 0 {
		return
	}
	Section(w, p, fmt.Sprintf("removed or changed, %s", Plural(len(r.Edits), "place")))
	width := len(fmt.Sprint(len(in)))
	for _, e := range scrub.Merge(nil, r.Edits) {
		fmt.Fprintf(w, "  %*d  %-26s %s", width, e.Start, e.Class.Code(), short(in[e.Start:e.End]))
		if e.OutEnd > e.Out {
			fmt.Fprintf(w, " became %s", finding.Quote(out[e.Out:e.OutEnd]))
		}
		if e.Count > 1 {
			fmt.Fprintf(w, " %s", p.Dim(fmt.Sprintf("(%d places)", e.Count)))
		}
		fmt.Fprintln(w)
	}
}

func explainNotes(w io.Writer, p Palette, r *scrub.Result) {
	if len(r.Notes) == 0 {
		return
	}
	Section(w, p, "noted and left")
	for _, n := range r.Notes {
		fmt.Fprintf(w, "  %d  %s\n", n.Start, n.Class.Code())
	}
}

// short names up to four characters by their code points, and quotes the rest.
func short(s string) string {
	const few = 4
	var names []string
	for _, r := range s {
		if len(names) == few || 0x20 <= r && r < 0x7F || r == 0xFFFD {
			return finding.Quote(s)
		}
		names = append(names, fmt.Sprintf("%U", r))
	}
	return strings.Join(names, " ")
}
