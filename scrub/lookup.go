package scrub

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/internal/ucd"
)

// The table, compiled: folded names to tokens, by kind.
var (
	names    [Line + 1]map[string]*Token
	numbered [Line + 1]map[string]*Token // names that end with any number
	roles    []role
)

type role struct {
	word string // folded
	tok  *Token
}

func init() {
	for k := range names {
		names[k], numbered[k] = map[string]*Token{}, map[string]*Token{}
	}
	for i := range tokens {
		t := &tokens[i]
		switch t.Kind {
		case Angle, Bracket:
			name := t.Text[1 : len(t.Text)-1]
			names[t.Kind][foldString(name)] = t
			if stem := strings.TrimRight(name, "0123456789"); stem != name {
				numbered[t.Kind][foldString(stem)] = t
			}
		case Heading:
			names[Heading][foldString(strings.Trim(t.Text, "# :"))] = t
		case Line:
			roles = append(roles, role{foldString(strings.TrimSuffix(t.Text, ":")), t})
		}
	}
}

// foldedName returns the folded name, "" where it is too long for one.
func foldedName(content []symbol) string {
	var b [maxName + 2]byte
	if len(content) > len(b) {
		return ""
	}
	for i := range content {
		b[i] = content[i].fold
	}
	return intern(b[:len(content)])
}

// intern spares the allocation for the few names that are compared by text.
func intern(b []byte) string {
	switch string(b) {
	case "sys":
		return "sys"
	case "/sys":
		return "/sys"
	case "sys>":
		return "sys>"
	case "/sys>":
		return "/sys>"
	}
	return ""
}

// lookupAngle returns the token <content>, nil if it is none.
func lookupAngle(content []symbol) *Token {
	if n := len(content); n > 2 && content[0].char == '|' && content[n-1].char == '|' {
		for i := 1; i < n-1; i++ {
			if !nameChar(content[i].char) {
				return nil
			}
		}
		return &tokens[0]
	}
	return lookup(Angle, content)
}

// lookup returns the token of that kind and name, nil if there is none.
func lookup(k TokenKind, content []symbol) *Token {
	var b [maxName + 2]byte
	n := len(content)
	if n == 0 || n > maxName {
		return nil
	}
	for i := range content {
		b[i] = content[i].fold
	}
	if tok := names[k][string(b[:n])]; tok != nil {
		if tok.Exact && plainOtherwise(tok.Text[1:len(tok.Text)-1], content) {
			return nil
		}
		return tok
	}
	stem := n
	for stem > 0 && ('2' <= b[stem-1] && b[stem-1] <= '9' || b[stem-1] == 'i' || b[stem-1] == 'o') {
		stem--
	}
	if stem == n {
		return nil
	}
	return numbered[k][string(b[:stem])]
}

// plainOtherwise reports whether content is plain ASCII, but not text.
func plainOtherwise(text string, content []symbol) bool {
	same := true
	for i := range content {
		if !content[i].exact {
			return false
		}
		same = same && content[i].char == text[i]
	}
	return !same
}

// lookupLine returns the role with which word ends, and where it begins in word.
// What stands before it must itself be beginnings of roles.
func lookupLine(word []symbol) (tok *Token, from int) {
	for _, r := range roles {
		n := len(word) - len(r.word)
		if n >= 0 && foldsTo(word[n:], r.word) && beginsRoles(word[:n]) {
			return r.tok, n
		}
	}
	return nil, 0
}

func foldsTo(syms []symbol, word string) bool {
	if len(syms) != len(word) {
		return false
	}
	for i := range syms {
		if syms[i].fold != word[i] {
			return false
		}
	}
	return true
}

// beginsRoles reports whether syms is a row of beginnings of roles.
func beginsRoles(syms []symbol) bool {
	for len(syms) > 0 {
		n := 0
		for _, r := range roles {
			for l := min(len(syms), len(r.word)-1); l > n; l-- {
				if foldsTo(syms[len(syms)-l:], r.word[:l]) {
					n = l
				}
			}
		}
		if n == 0 {
			return false
		}
		syms = syms[:len(syms)-n]
	}
	return true
}

// claimsRole reports whether a role at the beginning of a line is spelled as no
// label is: see whyLine.
func claimsRole(tok *Token, word []symbol) bool {
	upper := 0
	for i := range word {
		if !word[i].exact {
			return true
		}
		if word[i].char < 'a' {
			upper++
		}
	}
	if tok.Exact {
		return upper == 1 && word[0].char < 'a'
	}
	return upper > 1 || upper == 1 && word[0].char >= 'a'
}

// startsRole is mayBeRole for the line of plain ASCII that begins at s[i].
func startsRole(s string, i int) bool {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	if i == len(s) {
		return false
	}
	switch s[i] {
	case 's', 'S', 'h', 'H', 'a', 'A':
		return mayBeRole(s, i)
	}
	return false
}

// mayBeRole reports whether a role marker may stand at s[i:], where a line
// begins. It rules out what is cheap to rule out.
func mayBeRole(s string, i int) bool {
	if i == len(s) {
		return false
	}
	first := fold[s[i]&0x7f]
	if s[i] < 0x80 {
		if first != 's' && first != 'h' && first != 'a' {
			return false
		}
		n := i + 1
		for n < len(s) && letter(s[n]) {
			n++
		}
		return n < len(s) && (s[n] >= 0x80 || strings.IndexByte(":<[#&", s[n]) >= 0)
	}
	if p, _ := ucd.Peek(s, i); p&ucd.Confusable == 0 {
		return p&(ucd.NFKCActive|ucd.Hidden|ucd.Mark) != 0
	}
	r, _, _ := ucd.Decode(s[i:])
	c, _ := ucd.ASCIIPrototype(r)
	c = fold[c]
	return c == 's' || c == 'h' || c == 'a'
}
