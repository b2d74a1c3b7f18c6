// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// The limits of a file of tokens.
const (
	MaxTokenFile = 1 << 20 // bytes
	maxTokens    = 4096
	maxSequences = 16 // of one token
	maxElements  = 4  // of a sequence
	maxFaults    = 20 // that an error lists
	maxText      = 256
)

// A TokenFileError lists what is wrong with a file of tokens.
type TokenFileError struct {
	Faults []string // each begins with its line
	More   int      // faults that are not listed
}

func (e *TokenFileError) Error() string {
	s := "scrub: tokens: " + strings.Join(e.Faults, "; ")
	if e.More > 0 {
		s += "; and " + strconv.Itoa(e.More) + " more"
	}
	return s
}

// A tokenParser reads a file of tokens: docs/spec/tokens.md, section 2.
type tokenParser struct {
	table  *TokenTable
	line   int
	at     Token // what applies to the tokens that follow
	last   *Token
	lines  map[*Token]int
	own    map[string]bool // spellings of this file
	faults TokenFileError
}

// parseTokens reads source on top of base, which may be nil.
func parseTokens(base *TokenTable, source string) (*TokenTable, error) {
	p := &tokenParser{table: &TokenTable{}, at: Token{Family: "operator"}, lines: map[*Token]int{}, own: map[string]bool{}}
	if base != nil {
		p.table.version = base.version
		p.table.varied = slices.Clone(base.varied)
		for _, t := range base.tokens {
			c := *t
			p.table.tokens = append(p.table.tokens, &c)
		}
	}
	switch {
	case len(source) > MaxTokenFile:
		p.fault("the file has more than %d bytes", MaxTokenFile)
		return nil, &p.faults
	case !utf8.ValidString(source):
		p.fault("the file is not UTF-8")
		return nil, &p.faults
	}
	for text := range strings.SplitSeq(source, "\n") {
		p.line++
		text = strings.TrimSuffix(text, "\r")
		if strings.TrimSpace(text) != "" && text[0] != '#' {
			p.entry(text)
		}
	}
	p.table.compile(p)
	if len(p.faults.Faults) > 0 {
		return nil, &p.faults
	}
	return p.table, nil
}

func (p *tokenParser) fault(format string, a ...any) {
	if len(p.faults.Faults) == maxFaults {
		p.faults.More++
		return
	}
	p.faults.Faults = append(p.faults.Faults, fmt.Sprintf("line %d: ", max(1, p.line))+fmt.Sprintf(format, a...))
}

// quoted is text of the file in an error.
func quoted(s string) string {
	if len(s) > 64 {
		s = s[:64]
	}
	return strconv.QuoteToASCII(s)
}

// entry reads one line: a word, one blank, and the rest.
func (p *tokenParser) entry(text string) {
	word, rest, _ := strings.Cut(text, " ")
	if rest == "" || rest != strings.TrimSpace(rest) {
		p.fault("want a word, one blank and a text without blanks around it: %s", quoted(text))
		return
	}
	if len(rest) > maxText {
		p.fault("the text has more than %d bytes", maxText)
		return
	}
	for _, r := range rest {
		if ucd.Of(r)&ucd.Hidden != 0 || r < ' ' {
			p.fault("the text holds the hidden character U+%04X, which matching leaves out", r)
			return
		}
	}
	if holdsForm(rest) {
		p.fault("the text holds a look-alike that defusing uses: %s", quoted(rest))
		return
	}
	switch word {
	case "version":
		p.table.version = rest
	case "family":
		p.at = Token{Family: rest}
		p.last = nil
	case "source":
		p.at.Source, p.at.Package = rest, ""
	case "package":
		p.at.Package = rest
	case "read":
		p.at.Read = rest
	case "remove":
		p.token(rest, Remove)
	case "remove-mcp":
		p.token(rest, RemoveMCP)
	case "flag":
		p.token(rest, Ambiguous)
	case "why", "when", "unless":
		p.about(word, rest)
	case "varied":
		p.varied(rest)
	default:
		p.fault("unknown word %s", quoted(word))
	}
}

// about reads what says more of the token before it.
func (p *tokenParser) about(word, rest string) {
	switch t := p.last; {
	case t == nil:
		p.fault("%s stands behind no token", word)
	case word == "why":
		t.Why = rest
	case word == "unless" && t.Treatment == Remove:
		p.fault("only a token that stays elsewhere (flag, remove-mcp) has unless")
	case len(t.Sequences) == maxSequences:
		p.fault("a token has at most %d sequences", maxSequences)
	case len(t.Sequences) > 0 && t.Unless != (word == "unless"):
		p.fault("a token has sequences of one kind: when or unless")
	default:
		t.Sequences, t.Unless = append(t.Sequences, rest), word == "unless"
	}
}

// varied adds a name that counts with a namespace, a suffix or attributes.
func (p *tokenParser) varied(name string) {
	if len(name) > maxName/2 || !isName([]byte(name), "-") || len(name) < minVaried {
		p.fault("a varied name has %d to %d letters, digits, _ and -: %s", minVaried, maxName/2, quoted(name))
		return
	}
	p.table.varied = append(p.table.varied, name)
}

// minVaried is the length of the shortest name that counts in a namespace of any name.
const minVaried = 5

// token adds a spelling.
func (p *tokenParser) token(text string, a Treatment) {
	p.last = nil
	n := 0
	for range text {
		n++
	}
	switch {
	case n < 2 || n > maxName:
		p.fault("a token has 2 to %d characters: %s", maxName, quoted(text))
		return
	case unread(text):
		p.fault("the text, or the name in it, is nothing but marks: %s", quoted(text))
		return
	case p.own[text]:
		p.fault("the file has the token %s already", quoted(text))
		return
	case len(p.table.tokens) == maxTokens:
		p.fault("there are more than %d tokens", maxTokens)
		return
	}
	p.own[text] = true
	t := p.at
	t.Text, t.Treatment, t.kind = text, a, kindOf(text)
	if i := slices.IndexFunc(p.table.tokens, func(o *Token) bool { return o.Text == text }); i >= 0 {
		p.table.tokens[i] = &t
	} else {
		p.table.tokens = append(p.table.tokens, &t)
	}
	p.last = &t
	p.lines[&t] = p.line
}

// unread reports whether the view of a spelling, or of the name in it, is too short to be
// found: marks stand for nothing in the view.
func unread(text string) bool {
	if len(viewOf(text)) < 2 {
		return true
	}
	switch kindOf(text) {
	case inAngles, inBrackets:
		return len(viewOf(text[1:len(text)-1])) == 0
	case asPrefix:
		return len(viewOf(text[1:])) == 0
	}
	return false
}

// kindOf says how a spelling is found.
func kindOf(text string) tokenKind {
	text = strings.ReplaceAll(text, "\uff5c", "|") // as DeepSeek writes it
	inner := func(s string, also string) bool {
		for _, r := range s {
			if r < 0x80 && !nameChar(byte(r)) && strings.IndexByte(also, byte(r)) < 0 {
				return false
			}
		}
		return s != ""
	}
	n := len(text)
	switch {
	case text[0] == '<' && text[n-1] == '>' && (inner(text[1:n-1], "|:") || text == `<|"|>` || text == "<<SYS>>" || text == "<</SYS>>"):
		return inAngles
	case text[0] == '<' && (text[n-1] == '=' && inner(text[1:n-1], " ") || text[n-1] == '|' && inner(text[1:n-1], "|")):
		return asPrefix
	case text[0] == '[' && text[n-1] == ']' && isASCII(text) && inner(text[1:n-1], "|"):
		return inBrackets
	case strings.HasPrefix(text, "### ") && text[n-1] == ':' && letters(text[4:n-1]):
		return asHeading
	case text[n-1] == ':' && letters(text[:n-1]):
		return asLine
	}
	return asLiteral
}

func letters(s string) bool {
	for i := range len(s) {
		if !letter(s[i]) {
			return false
		}
	}
	return s != ""
}

func isASCII(s string) bool {
	for {
		n := ucd.PlainASCII(s)
		if n == len(s) || s[n] >= utf8.RuneSelf {
			return n == len(s)
		}
		s = s[n+1:] // behind a control character
	}
}
