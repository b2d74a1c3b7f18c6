// SPDX-License-Identifier: Apache-2.0

package console

import (
	"regexp"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/href"
)

// A link is an address in the text and what follows it.
type link struct {
	form    Own
	says    string // the words of the link
	to      string
	host    string
	query   bool
	refused finding.Code
}

// linkForms find addresses as renderers of Markdown, HTML and terminals do. They are looked for in this order, and a
// place belongs to the first form.
var linkForms = []struct {
	form Own
	find func(text string, most int) []place
}{
	{"image, loaded when it is shown", matches(`!\[([^\]\n]*)\]\(\s*<?([^\s)>]+)`)},
	{"image, loaded when it is shown", matches(`(?i)<img\b([^>]*?)\bsrc\s*=\s*["']?([^\s"'>]+)`)},
	{"link of a terminal (OSC 8)", matches("\x1b\\]8;([^;\x07\x1b]*);([^\x07\x1b]+)")},
	{"link", matches(`\[([^\]\n]*)\]\(\s*<?([^\s)>]+)`)},
	{"link of HTML", matches(`(?i)<a\b([^>]*?)\bhref\s*=\s*["']?([^\s"'>]+)`)},
	{"reference", references},
	{"address in the text", addresses},
}

// linksIn returns at most maxLinks addresses, in the order of their forms.
func linksIn(text string) (out []link) {
	taken := make(map[int]bool)
	for _, f := range linkForms {
		for _, m := range f.find(text, 2*maxLinks) {
			if taken[m.to] || len(out) == maxLinks {
				continue
			}
			taken[m.to] = true
			l := link{form: f.form, says: short(text[m.says:m.saysEnd]), to: text[m.to:m.toEnd]}
			u, err := href.Parse(l.to)
			if r, is := err.(*href.Refusal); is {
				l.refused = r.Code
			}
			l.host = u.Host()
			l.query = strings.ContainsAny(l.to, "?#")
			l.to = short(l.to)
			out = append(out, l)
		}
	}
	return out
}

// A place is where the words of a link stand, and where its address.
type place struct{ says, saysEnd, to, toEnd int }

// matches finds the places of a regular expression, whose groups are the words and the address. It must begin with a
// byte: over a text of a megabyte Go takes 100 ms for one that does not.
func matches(pattern string) func(string, int) []place {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
	return func(text string, most int) (out []place) {
		for _, m := range compiled().FindAllStringSubmatchIndex(text, most) {
			out = append(out, place{m[2], m[3], m[4], m[5]})
		}
		return out
	}
}

const (
	spaces   = "\t\n\f\r "
	noMoreOf = spaces + `<>"')]` // what ends an address in the text
)

// references finds [words]: address at the beginning of lines.
func references(text string, most int) (out []place) {
	for line := 0; line < len(text) && len(out) < most; {
		end := len(text)
		if n := strings.IndexByte(text[line:], '\n'); n >= 0 {
			end = line + n
		}
		p, ok := reference(text, line, end)
		next := end + 1
		if ok {
			out = append(out, p)
			if n := strings.IndexByte(text[min(p.toEnd, len(text)):], '\n'); n >= 0 {
				next = p.toEnd + n + 1
			} else {
				next = len(text)
			}
		}
		line = next
	}
	return out
}

// reference reads the one of a line. Its address may stand on a later line.
func reference(text string, line, end int) (p place, ok bool) {
	at := line
	for at < end && text[at] == ' ' && at < line+3 {
		at++
	}
	words := strings.IndexByte(text[at:end], ']')
	if words < 2 || text[at] != '[' || at+words+1 == end || text[at+words+1] != ':' {
		return p, false
	}
	p.says, p.saysEnd = at+1, at+words
	rest := strings.TrimLeft(text[p.saysEnd+2:], spaces)
	p.to = len(text) - len(rest)
	if p.toEnd = len(text); strings.ContainsAny(rest, spaces) {
		p.toEnd = p.to + strings.IndexAny(rest, spaces)
	}
	if p.toEnd-p.to > 1 && text[p.to] == '<' {
		p.to++
	}
	if p.toEnd-p.to > 1 && text[p.toEnd-1] == '>' {
		p.toEnd--
	}
	return p, p.to < p.toEnd
}

// schemes begin an address that stands in the text by itself.
var schemes = []string{"http", "https", "ftp", "file", "data", "javascript", "vbscript"}

// addresses finds them by their colons.
func addresses(text string, most int) (out []place) {
	for from, at := 0, 0; len(out) < most; at++ {
		n := strings.IndexByte(text[at:], ':')
		if n < 0 {
			break
		}
		at += n
		begin := -1
		for _, s := range schemes {
			if b := at - len(s); b >= from && text[b:at] == s && (b == 0 || !isWord(text[b-1])) {
				begin = b
			}
		}
		if begin < 0 {
			continue
		}
		to := len(text)
		if n := strings.IndexAny(text[at+1:], noMoreOf); n >= 0 {
			to = at + 1 + n
		}
		if to > at+1 {
			out = append(out, place{begin, begin, begin, to})
			from, at = to, to-1
		}
	}
	return out
}

func isWord(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '_'
}
