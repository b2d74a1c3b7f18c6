// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/boundary/pinview"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// Write shows the report to a person.
func (r *Report) Write(dst io.Writer, p terminal.Palette) error {
	w := bufio.NewWriter(dst)
	count := map[string]int{}
	for i, s := range r.Servers {
		if i > 0 {
			fmt.Fprintln(w)
		}
		s.write(w, p)
		count[s.word()]++
	}
	if len(r.Shadows) > 0 {
		terminal.Section(w, p, "names that two servers use")
		for _, s := range r.Shadows {
			what := map[string]string{string(surface.SameName): "has the same name as", string(surface.LookAlike): "looks like",
				string(surface.Mentions): "talks about"}[s.How]
			fmt.Fprintf(w, "  %s: %s %s %s of %s\n", terminal.Inline(s.Server), terminal.Inline(s.Place), what, finding.Quote(s.Tool), terminal.Inline(s.Other))
		}
	}
	if len(r.Servers) > 1 {
		var parts []string
		for _, is := range []string{string(surface.Clean), wordsNotJudged, string(surface.Differs), string(surface.Rejected), Unreachable, notChecked, skipped} {
			if count[is] > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", count[is], is))
			}
		}
		fmt.Fprintf(w, "\n%s: %s\n", terminal.Plural(len(r.Servers), "server"), strings.Join(parts, ", "))
	}
	return w.Flush()
}

func (r *Server) write(w io.Writer, p terminal.Palette) {
	name := r.Name
	if name == "" {
		name = "surface"
	}
	fmt.Fprint(w, p.Bold(terminal.Inline(name)))
	if r.File != "" {
		fmt.Fprintf(w, "  %s", terminal.Inline(r.File))
	}
	fmt.Fprintln(w)
	paint := map[string]func(string) string{string(surface.Clean): p.Green, string(surface.Differs): p.Yellow}[r.Conclusion]
	word := r.word()
	if paint == nil {
		paint = p.Red
	} else if word != r.Conclusion || len(r.Wording)+len(r.Told) > 0 {
		paint = p.Yellow
	}
	row := func(label, format string, args ...any) {
		fmt.Fprintf(w, "  %-13s %s\n", label, terminal.Printable(fmt.Sprintf(format, args...)))
	}
	if r.Why != "" {
		row(paint(fmt.Sprintf("%-13s", word)), "%s", r.Why)
	} else {
		row(paint(fmt.Sprintf("%-13s", word)), "%s, %s bytes", terminal.Plural(r.Items, "item"), terminal.Thousands(r.Bytes))
	}
	if r.Said != "" {
		fmt.Fprintf(w, "  %-13s %s\n", "reviewer", pinview.Hanging(cutText(r.Said, maxSaidShown)))
	}
	for _, line := range r.Stderr {
		row("it said", "%s", line)
	}
	if len(r.Lacks) > 0 {
		row("it asks for", "%s, which it did not get: pass on what it needs by --env NAME", strings.Join(r.Lacks, ", "))
	}
	if len(r.Withheld) > 0 {
		row("withheld", "%s: they carry a secret; pass on what it needs by --env NAME", terminal.Inline(strings.Join(r.Withheld, ", ")))
	}
	if r.Fingerprint != nil {
		row("fingerprint", "%s", r.Fingerprint)
	}
	if r.Reviewed {
		row("reviewed", "%s", map[bool]string{false: "OK, now", true: "OK, remembered"}[r.Cached])
	}
	if r.Pinned {
		row("pinned", "now: what differs from this later waits for you")
	}
	if r.Offered > 0 {
		row("pinned", "now: %s that it offers only to clients with more capabilities", terminal.Plural(r.Offered, "item"))
	}
	if r.Moved {
		row("note", "it is reached in another way than when it was pinned")
	}
	if r.Unsettled > 0 {
		row("unsettled", "%s changed while it was checked: a model does not see them before you approve them", terminal.Plural(r.Unsettled, "item"))
	}
	r.writeHidden(w, p, row)
	for _, c := range r.Changes {
		c.Write(w, p)
	}
	if r.Conclusion == string(surface.Differs) {
		row("decide", "pellucid pins diff %s, then approve or block", terminal.ShellWord(r.Pin))
	}
	for _, x := range r.Wording {
		row("wording", "%s: %s (%d): %s", x.Place, x.Family, x.Score, x.Shown)
	}
	for _, x := range r.Told {
		row("reported", "%s: reads like an order to a model (%.2f): %s", x.Place, x.Score, x.Shown)
	}
	if len(r.Wording)+len(r.Told) > 0 {
		row("note", "read what is reported: nothing is rejected for it, and honest texts are reported too")
	}
	for _, x := range r.Removed {
		row("changed", "%s: %s, %s, before a model sees it", x.Key(), terminal.Plural(x.N, "part"), x.Code)
	}
	for _, x := range r.LeftOut {
		row("left out", "%s: not what the protocol's schema allows", x.shown)
	}
	for _, x := range r.NotInspected {
		row("not inspected", "%s", x)
	}
}

// wordsNotJudged is what a person is told of a clean server whose words no model has reviewed.
const wordsNotJudged = "no hidden text; words not judged"

// word is the conclusion as a person is told it.
func (r *Server) word() string {
	if r.Conclusion == string(surface.Clean) && !r.Reviewed {
		return wordsNotJudged
	}
	return r.Conclusion
}

// maxSaidShown bounds what a person is shown of a reviewer's answer, in bytes; the JSON has all of it.
const maxSaidShown = 1000

// cutText is the beginning of s, at most that many bytes, and no part of a character.
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + " …"
}

func (r *Server) writeHidden(w io.Writer, p terminal.Palette, row func(label, format string, args ...any)) {
	for _, h := range r.Hidden {
		row("hidden text", "%s, bytes %d to %d: %s", h.place, h.Start, h.End, h.Code)
		fmt.Fprintf(w, "    %s\n", terminal.Printable(h.Shown))
		for _, m := range h.Messages {
			fmt.Fprintf(w, "    it says: %s\n", p.Yellow(strings.ReplaceAll(terminal.Printable(m), "\n", "\n      ")))
		}
	}
	if r.MoreHidden > 0 {
		row("hidden text", "and in %d more places", r.MoreHidden)
	}
}
