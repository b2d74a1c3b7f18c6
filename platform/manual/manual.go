// SPDX-License-Identifier: Apache-2.0

// Package manual writes manual pages in the language that the program man reads.
package manual

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A Page is one manual page of section 1.
type Page struct {
	Name     string // "pellucid-wrap"
	Short    string // what it does, in one line without a full stop
	Sections []Section
}

// A Section is a part of a page. Its parts are written in the order of the fields.
type Section struct {
	Heading string
	Below   bool     // it belongs to the section before it
	Usage   []string // command lines
	Text    string   // paragraphs, with empty lines between them; the lines of an indented one are kept
	Items   []Item
}

// An Item is a term and what it means.
type Item struct{ Term, Text string }

// Write writes the page of a release that was made at date.
func Write(w io.Writer, p Page, date time.Time) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 %s Pellucid \"Pellucid Manual\"\n", escape(strings.ToUpper(p.Name)), date.UTC().Format(time.DateOnly))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escape(p.Name), escape(p.Short))
	for _, s := range p.Sections {
		macro := ".SH"
		if s.Below {
			macro = ".SS"
		}
		fmt.Fprintf(&b, "%s \"%s\"\n", macro, escape(s.Heading))
		for i, u := range s.Usage {
			if i > 0 {
				b.WriteString(".br\n")
			}
			fmt.Fprintf(&b, "%s\n", escape(u))
		}
		text(&b, s.Text, len(s.Usage) == 0)
		for _, it := range s.Items {
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", escape(it.Term), escape(oneLine(it.Text)))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// text writes paragraphs. The first one needs no macro directly behind a heading.
func text(b *strings.Builder, s string, first bool) {
	for part := range strings.SplitSeq(strings.Trim(s, "\n"), "\n\n") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		if !first {
			b.WriteString(".PP\n")
		}
		if first = false; !strings.HasPrefix(part, " ") {
			fmt.Fprintf(b, "%s\n", escape(oneLine(part)))
			continue
		}
		b.WriteString(".RS 4\n.nf\n")
		for line := range strings.SplitSeq(strings.Trim(part, "\n"), "\n") {
			fmt.Fprintf(b, "%s\n", escape(strings.TrimPrefix(line, "    ")))
		}
		b.WriteString(".fi\n.RE\n")
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// escaped holds the characters that roff reads as something else. Its hyphen and its quotation
// marks are typographic, so that a command copied from a page would not run.
var escaped = map[rune]string{'\\': `\e`, '-': `\-`, '\'': `\(aq`, '`': `\(ga`, '^': `\(ha`, '~': `\(ti`, '"': `\(dq`}

// escape returns s, of one line, so that roff shows it as it stands.
func escape(s string) string {
	var b strings.Builder
	if strings.HasPrefix(s, ".") || s == "" {
		b.WriteString(`\&`)
	}
	for _, r := range s {
		switch by, special := escaped[r]; {
		case special:
			b.WriteString(by)
		case r < ' ' || r == 0x7F:
			b.WriteByte(' ')
		case r > 0x7F:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
