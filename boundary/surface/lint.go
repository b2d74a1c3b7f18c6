// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A Warning is a text that is worded as manipulation often is. It is advice for a
// person and rejects nothing: honest text can be worded so, and an attack need not.
type Warning struct {
	Place
	Family Family // the one that weighs most
	Score  int    // at least threshold
	text   string // third-party text, for Shown
}

// Shown is the beginning of what stands there, for a person.
func (w Warning) Shown() string { return finding.Quote(w.text) }

// Lint looks at the wording of every text of the surface, without a model.
func (s *Surface) Lint() []Warning {
	var out []Warning
	for i := range s.items {
		out = append(out, s.items[i].Lint()...)
	}
	return out
}

// MaxWarnings bounds the warnings about one item: it needs a look after the first one.
const MaxWarnings = 64

// Lint looks at the wording of every text of the item, without a model. It returns at most
// MaxWarnings.
func (it *Item) Lint() []Warning {
	var out []Warning
	it.eachText(func(v strictjson.Value, t *trail, isName bool) {
		if len(out) == MaxWarnings {
			return
		}
		text := v.Text()
		if inner, form := insideDataURI(text); form == textInside {
			text = strings.Join(inner, "\n")
		}
		if len(text) < minWording {
			return
		}
		if score, family, at := wording(text); score >= threshold {
			out = append(out, Warning{t.place(it.Key, isName), family, score, text[at:]})
		}
	})
	return out
}

// minWording is shorter than any text that could tell an agent anything.
const minWording = 8

// wording returns how a text scores: the sum of what each family's strongest phrase
// weighs; the family that weighs most, and where in the text its phrase begins.
func wording(text string) (score int, family Family, at int) {
	words := split(text)
	best := map[Family]int{}
	top := 0
	for i := range words {
		for _, n := range compiled().begin[words[i].text] {
			r := &compiled().rules[n]
			last, ok := r.match(words[i:])
			if !ok {
				continue
			}
			weight := r.score * 10
			if words[i].quoted && words[i+last].quoted || illustrated(words[:i]) {
				weight /= 5
			}
			best[r.family] = max(best[r.family], weight)
			if weight > top {
				top, family, at = weight, r.family, words[i].at
			}
		}
	}
	if tokens := scrubbed(text); tokens > 0 {
		best[pretence] = max(best[pretence], threshold*10)
		if top < threshold*10 {
			family, at = pretence, 0
		}
	}
	for _, w := range best {
		score += w
	}
	return score / 10, family, at
}

// scrubbed counts the chat templates' own tokens.
func scrubbed(text string) int {
	if !strings.ContainsAny(text, ucd.OpenerSet) && isASCII(text) {
		return 0
	}
	var r scrub.Result
	tokens().Scrub(text, &r)
	n := 0
	for _, e := range r.Edits {
		if e.Class == scrub.ControlToken {
			n++
		}
	}
	// Source code and regular expressions hold this one honestly; what a server says
	// of itself does not.
	return n + strings.Count(r.Clean.String(), "[INST]")
}

var tokens = compileOnce(scrub.Policy{Profile: scrub.Faithful})

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
}

// maxQuoted is the longest quotation that is one, in bytes: what is longer is the
// text itself.
const maxQuoted = 200

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
	quote        byte // that is open
	from, since  int  // its byte, and the first word in it
}

func (s *splitter) flush() {
	if len(s.cur) > 0 {
		s.words = append(s.words, word{text: string(s.cur), at: s.start, opens: s.opens, upper: s.upper})
		s.cur, s.opens = s.cur[:0], false
	}
}

// mark notes what a character between words, at text[i], says of its neighbours.
func (s *splitter) mark(text string, i int, c byte) {
	var before word
	last := &before
	if len(s.words) > 0 {
		last = &s.words[len(s.words)-1]
	}
	switch c {
	case ':', ']', '>', ')':
		last.colon = true
		last.tag = last.tag || c == '>' && last.opens
		s.opens = s.opens || c == ':'
	case '.', '!', '?', ';':
		last.ends = last.ends || i+1 == len(text) || text[i+1] <= ' '
	case '\n':
		last.ends = last.ends || i > 0 && text[i-1] == '\n'
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

// illustrated reports whether what comes is an example, or the thing that is fought.
func illustrated(before []word) bool {
	for i := len(before) - 1; i >= max(0, len(before)-4) && !before[i].ends; i-- {
		if compiled().discounts[before[i].text] {
			return true
		}
	}
	return false
}

// An element is one word of a pattern.
type element struct {
	words                    map[string]bool
	gap                      int
	opens, colon, tag, upper bool
}

func (e *element) is(w *word) bool {
	return e.words[w.text] && (!e.opens || w.opens) && (!e.colon || w.colon) && (!e.tag || w.tag) && (!e.upper || w.upper)
}

type compiledRule struct {
	family   Family
	score    int
	elements []element
}

// match reports whether the pattern begins at the first word, and with which it ends.
func (r *compiledRule) match(words []word) (last int, ok bool) {
	at := 0
	if !r.elements[0].is(&words[0]) {
		return 0, false
	}
	for k := range r.elements[1:] {
		e := &r.elements[k+1]
		next := -1
		for i := at + 1; i <= at+1+e.gap && i < len(words) && !words[i-1].ends; i++ {
			if e.is(&words[i]) {
				next = i
				break
			}
		}
		if next < 0 {
			return 0, false
		}
		at = next
	}
	return at, true
}

var compiled = sync.OnceValue(compileRules)

type ruleBook struct {
	rules     []compiledRule
	begin     map[string][]int // rules by first word
	discounts map[string]bool
}

func compileRules() ruleBook {
	book := ruleBook{begin: map[string][]int{}, discounts: map[string]bool{}}
	for w := range strings.FieldsSeq(discounts) {
		book.discounts[w] = true
	}
	for n, r := range rules {
		c := compiledRule{family: r.family, score: r.score}
		gap := 0
		for f := range strings.FieldsSeq(r.pattern) {
			if g, err := strconv.Atoi(f); err == nil {
				gap = g
				continue
			}
			e := element{gap: gap, words: map[string]bool{}}
			f, e.upper = strings.CutPrefix(f, "^")
			f, e.opens = strings.CutPrefix(f, "<")
			f, e.colon = strings.CutSuffix(f, ":")
			f, e.tag = strings.CutSuffix(f, ">")
			spelled := []string{f}
			if set, ok := strings.CutPrefix(f, "@"); ok {
				spelled = strings.Fields(sets[set])
			}
			for _, w := range spelled {
				e.words[w] = true
				if len(c.elements) == 0 && !slices.Contains(book.begin[w], n) {
					book.begin[w] = append(book.begin[w], n)
				}
			}
			gap = 0
			c.elements = append(c.elements, e)
		}
		book.rules = append(book.rules, c)
	}
	return book
}
