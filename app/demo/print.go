// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// Show plays the demonstration and writes it to w for a person. self is this program. The
// error says if a case was not as it should be.
func Show(ctx context.Context, self string, w io.Writer, p terminal.Palette) error {
	out := bufio.NewWriter(w)
	defer out.Flush()
	s := &show{w: out, p: p}
	s.opening()
	err := Play(ctx, self, func(o Played) {
		s.outcome(o)
		out.Flush()
	})
	switch {
	case ctx.Err() != nil:
		return errors.New("demo: interrupted")
	case err != nil:
		return err
	}
	s.closing(self)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("demo: write: %w", err)
	}
	if s.failed > 0 {
		return errors.New("demo: " + terminal.Plural(s.failed, "case") + " not as it should be")
	}
	return nil
}

// show writes the demonstration for a person. Its lines have at most terminal.Width
// columns; a case is a headline and, under it, labelled fields.
type show struct {
	w               io.Writer
	p               terminal.Palette
	played, failed  int
	hidden, changed int
}

// fieldAt is the column of what stands behind a label.
const fieldAt = 12

func (s *show) opening() {
	s.prose(s.p.Bold("Pellucid, before and after"), "")
	s.prose("", "A real MCP server with poisoned and honest tools runs twice: alone (before), and behind "+
		"`pellucid wrap` (after). The same client calls both. Invisible characters are spelled out, as in "+
		"\u2039U+200B\u203a. Behind Pellucid, the text of every tool stands in a fence; its genuineness is checked here "+
		"with the key of this run, and only the text inside is shown.")
}

func (s *show) prose(title, text string) {
	if title != "" {
		fmt.Fprintln(s.w, title)
	}
	for _, line := range terminal.Wrap(text, terminal.Width) {
		fmt.Fprintln(s.w, line)
	}
}

func (s *show) field(label, text string, paint func(string) string) {
	terminal.Field(s.w, fieldAt, label, text, paint)
}

func (s *show) outcome(o Played) {
	s.played++
	fmt.Fprintf(s.w, "\n%2d  %s  %s\n", s.played, s.p.Bold(o.Case.Tool), s.p.Dim(o.Case.What))
	before, after := replyLines(o.Before), replyLines(o.After)
	same := o.Err == nil && before == after
	if same {
		s.field("both", before, nil)
	} else {
		s.changed++
		s.field("before", before, nil)
		for _, m := range replyHidden(o.Before) {
			s.hidden++
			s.field("hidden", finding.Quote(m.Message)+" in "+string(m.Kind), s.p.Yellow)
		}
		s.field("after", after, nil)
	}
	if o.Err != nil {
		s.failed++
		s.field(s.p.Red("FAILED")+"  ", terminal.Printable(o.Err.Error()), s.p.Red)
		return
	}
	s.verdict(o.Case.Verdict)
	if s.played == 1 {
		s.field("fence", "what the model reads, whole, this once:", s.p.Dim)
		s.field("", terminal.Printable(o.Fence), s.p.Dim)
	}
}

func (s *show) verdict(v string) {
	fmt.Fprintf(s.w, "    %s%*s%s\n", s.p.Green("ok"), fieldAt-6, "", s.p.Green(v))
}

func (s *show) closing(self string) {
	fmt.Fprintf(s.w, "\n%s\n", s.p.Bold("In all"))
	s.prose("", fmt.Sprintf("%s: %d as they should be, %d not. %s decoded; %d answers changed, %d were left byte for "+
		"byte as they were.", terminal.Plural(s.played, "case"), s.played-s.failed, s.failed,
		terminal.Plural(s.hidden, "hidden message"), s.changed, s.played-s.changed))
	if s.failed == 0 {
		s.prose("", "Every fence was genuine.")
	}
	fmt.Fprintf(s.w, "\n%s\n", s.p.Bold("In front of your own server"))
	s.prose("", "In your client's configuration, put `pellucid wrap --` before the server's command:")
	fmt.Fprint(s.w, `
  {
    "mcpServers": {
      "files": {
        "command": "pellucid",
        "args": ["wrap", "--name", "files", "--",
                 "npx", "-y", "@modelcontextprotocol/server-filesystem", "/path"]
      }
    }
  }

`)
	s.prose("", "For a server that speaks HTTP: \"args\": [\"wrap\", \"--name\", \"search\", \"--url\", \"https://server.example/mcp\"].")
	s.prose("", "Where pellucid is not in the PATH, \"command\" is "+finding.Quote(self)+".")
}

// replyLines is what a client got, for a person.
func replyLines(r Reply) string {
	var parts []string
	for _, t := range r.Texts {
		parts = append(parts, seen(strings.TrimSuffix(t, "\n")))
	}
	if r.Description != "" {
		parts = append(parts, seen(r.Description))
	}
	if r.Structured != nil {
		parts = append(parts, "structuredContent "+seen(compact(r.Structured)))
	}
	if r.ShowMeta {
		parts = append(parts, "_meta "+seen(compact(r.Meta)))
	}
	text := strings.Join(parts, "\n")
	if r.IsError {
		text = "isError: " + text
	}
	return text
}

func replyHidden(r Reply) []scrub.Hidden {
	all := strings.Join(r.Texts, "\n") + "\n" + r.Description
	if r.Structured != nil {
		all += "\n" + compact(r.Structured)
	}
	return scrub.Reveal(all)
}

func compact(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "null"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// longNames are what printable says of a character behind its number.
var longNames = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(\x{2039}U\+[0-9A-F]+) [^\x{203a}]*(\x{203a})`) })

// seen is printable with a long run of hidden characters in one word, and the
// others by number only.
func seen(text string) string {
	const longRun = 16 // bytes
	var b strings.Builder
	done := 0
	for _, h := range scrub.Reveal(text) {
		if h.End-h.Start < longRun {
			continue
		}
		fmt.Fprintf(&b, "%s\u2039%d hidden characters\u203a", terminal.Printable(text[done:h.Start]), utf8.RuneCountInString(text[h.Start:h.End]))
		done = h.End
	}
	b.WriteString(terminal.Printable(text[done:]))
	return longNames().ReplaceAllString(b.String(), "$1$2")
}
