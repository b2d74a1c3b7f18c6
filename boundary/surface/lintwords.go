// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A word is one of a text as a pattern sees it.
type word struct {
	text   string
	at     int  // byte of the text
	opens  bool // a bracket, a colon or the beginning of a line stands before it
	colon  bool // a colon or closing bracket stands behind it
	tag    bool // it is the name of a tag
	upper  bool // it is written in capitals
	ends   bool // the sentence
	quoted bool // it stands in a short quotation or a piece of code
	kind   string
}

// What a word belongs to, beside its letters. A pattern names them like words.
const (
	ofAddress  = "%address"
	ofURL      = "%url"
	ofPath     = "%path"
	ofNumber   = "%number"   // of a telephone or an account
	ofField    = "%field"    // the name of a parameter
	ofVariable = "%variable" // of the environment
)

// maxQuoted is the longest quotation that is one, in bytes: what is longer is the
// text itself.
const maxQuoted = 200

// minAccountDigits is how many digits at the ends of a word make it the number of an account.
const minAccountDigits = 10

// split takes a text to words: lower case, look-alikes and full-width forms as what
// they are taken for, hidden characters left out.
func split(text string) []word {
	s := splitter{opens: true}
	for i, r := range text {
		c := plain(r)
		switch {
		case c == 0 || c == '\'' && len(s.cur) > 0:
		case isWordByte(c) && (len(s.cur) > 0 || c != '_'):
			if len(s.cur) == 0 {
				s.start, s.upper = i, true
			}
			s.upper = s.upper && (r < 'a' || r > 'z')
			s.cur = append(s.cur, c)
		default:
			s.flush()
			s.mark(text, i, c)
		}
	}
	s.flush()
	return s.words
}

func isWordByte(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' }

type splitter struct {
	words        []word
	cur          []byte
	start        int
	upper, opens bool
	kind         string // of the next word
	quote        byte   // that is open
	from, since  int    // its byte, and the first word in it
}

func (s *splitter) flush() {
	if len(s.cur) > 0 {
		w := word{text: string(s.cur), at: s.start, opens: s.opens, upper: s.upper, kind: s.kind}
		if digits := len(w.text) - len(strings.Trim(w.text, "0123456789")); digits >= minAccountDigits {
			w.kind = ofNumber
		} else if w.kind == "" && w.upper && strings.Contains(w.text, "_") {
			w.kind = ofVariable
		}
		s.words = append(s.words, w)
		s.cur, s.opens, s.kind = s.cur[:0], false, ""
	}
}

// mark notes what a character between words, at text[i], says of its neighbours.
func (s *splitter) mark(text string, i int, c byte) {
	var before word
	last := &before
	if len(s.words) > 0 {
		last = &s.words[len(s.words)-1]
	}
	next := byte(' ')
	if i+1 < len(text) {
		next = text[i+1]
	}
	starts := i == 0 || strings.IndexByte(" \t\n\"`'(=,:", text[i-1]) >= 0
	if c <= ' ' {
		s.kind = ""
	}
	switch c {
	case ':', ']', '>', ')':
		last.colon = true
		last.tag = last.tag || c == '>' && last.opens
		switch {
		case c == ':' && strings.HasPrefix(text[i:], "://"):
			last.kind = ofURL
		case c == ':' && last.opens && last.kind == "":
			last.kind = ofField
		}
		s.opens = s.opens || c == ':'
	case '@':
		if next > ' ' && last.kind == "" {
			last.kind = ofAddress
		}
	case '+':
		if '0' <= next && next <= '9' {
			s.kind = ofNumber
		}
	case '/', '~':
		if starts && next > ' ' && (c == '~' || next != '/') {
			s.kind = ofPath
		}
	case '.', '!', '?', ';':
		last.ends = last.ends || next <= ' ' && !starts
		if starts && isWordByte(next) {
			s.kind = ofPath
		}
	case '\n':
		last.ends = last.ends || i > 0 && text[i-1] == '\n' || !isWordByte(next) && next > ' '
		s.opens = true
	case '<', '[', '{':
		s.opens = true
	case '"', '`':
		switch {
		case s.quote == 0:
			s.quote, s.from, s.since = c, i, len(s.words)
		case s.quote == c:
			for k := s.since; k < len(s.words) && i-s.from <= maxQuoted; k++ {
				s.words[k].quoted = true
			}
			if last.quoted && s.since == len(s.words)-1 {
				last.kind = ofField
			}
			s.quote = 0
		}
	}
}

// plain is the ASCII character in lower case that r is read as; 0 for one that is
// not seen, '.' for any other.
func plain(r rune) byte {
	if r >= 0x80 {
		if ucd.Of(r)&ucd.Hidden != 0 {
			return 0
		}
		switch r {
		case 0x2018, 0x2019:
			return '\''
		case 0x201C, 0x201D:
			return '"'
		}
		form := ucd.NFKC.String(string(r))
		if len(form) == 1 {
			r = rune(form[0])
		} else if c, ok := ucd.ASCIIPrototype(r); ok {
			r = rune(c)
		} else {
			return ' '
		}
	}
	if 'A' <= r && r <= 'Z' {
		r += 'a' - 'A'
	}
	return byte(r)
}
