// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

type role struct {
	word string // folded
	tok  *Token
}

// compile fills in what the matcher looks up, and reports faults to p.
func (t *TokenTable) compile(p *tokenParser) {
	for k := range t.names {
		t.names[k], t.numbered[k] = map[string]*Token{}, map[string]*Token{}
	}
	t.partial, t.seqs, t.spares = map[string]bool{}, map[*Token][]tokenRow{}, map[*Token][]tokenRow{}
	for i, tok := range t.tokens {
		tok.index = i
		t.add(tok, p)
	}
	for _, tok := range t.tokens {
		for _, text := range tok.Sequences {
			seq, fault := t.parseSequence(tok, text)
			switch {
			case fault == "" && tok.Unless:
				t.spares[seq[0].tok] = append(t.spares[seq[0].tok], seq)
			case fault != "":
				p.line = p.lines[tok]
				p.fault("the sequence %s %s", quoted(text), fault)
			case seq[0].tok == anyShape:
				t.ofShape = append(t.ofShape, seq)
			default:
				t.seqs[seq[0].tok] = append(t.seqs[seq[0].tok], seq)
			}
		}
	}
	// The longest spelling is tried first.
	slices.SortStableFunc(t.literals, func(a, b spelling) int { return len(b.syms) - len(a.syms) })
	t.prepareLiterals()
}

func (t *TokenTable) add(tok *Token, p *tokenParser) {
	text := tok.Text
	switch tok.kind {
	case inAngles, inBrackets, asPrefix:
		name := text[1 : len(text)-1]
		if tok.kind == asPrefix {
			name = text[1:]
			for i := range len(name) {
				if name[i] == ' ' {
					t.partial[viewKey(name[:i])] = true
					t.partials.add(viewKey(name[:i]), false)
				}
			}
		}
		t.wide = t.wide || hasWide(name)
		tok.barred = tok.kind == inAngles && viewOf(name)[0].char == '|'
		t.names[tok.kind][viewKey(name)] = tok
		set := map[tokenKind]*nameSet{inAngles: &t.angles, inBrackets: &t.brackets, asPrefix: &t.prefixes}[tok.kind]
		set.add(viewKey(name), false)
		if stem := strings.TrimRight(name, "0123456789"); stem != name && tok.kind != asPrefix {
			tok.stem = 1 + len(stem)
			t.numbered[tok.kind][viewKey(stem)] = tok
			set.add(viewKey(stem), true)
		}
	case asHeading:
		t.names[asHeading][viewKey(text[4:len(text)-1])] = tok
	case asLine:
		r := role{viewKey(text[:len(text)-1]), tok}
		t.roles = append(t.roles, r)
		for c := range 128 {
			t.opens[c] = t.opens[c] || letter(byte(c)) && fold[c] == r.word[0]
		}
	case asLiteral:
		x := newSpelling(text)
		x.tok = tok
		if len(x.syms) < 2 || x.syms[0].char <= ' ' {
			p.line = p.lines[tok]
			p.fault("a token that no brackets delimit begins with a visible ASCII character: %s", quoted(text))
			return
		}
		t.literals = append(t.literals, x)
	}
}

// hasWide reports whether a name holds what is not ASCII in the view.
func hasWide(name string) bool {
	return slices.ContainsFunc(viewOf(name), func(x symbol) bool { return x.char == other })
}

// viewKey returns what a name is looked up by.
func viewKey(name string) string {
	var b []byte
	for _, x := range viewOf(name) {
		b = x.appendKey(b)
	}
	return string(b)
}

// appendKey appends what stands for x in a key.
func (x symbol) appendKey(b []byte) []byte {
	switch {
	case x.char == other && x.r != 0:
		return utf8.AppendRune(b, x.r)
	case x.char == '|': // it is a delimiter, which no letter stands for
		return append(b, '|')
	}
	return append(b, x.fold)
}

// A nameKey is the key of a name, at most maxName symbols long.
type nameKey struct {
	b [maxName * utf8.UTFMax]byte
	n int
}

// set reports false for a name that is too long to be a token's.
func (k *nameKey) set(content []symbol) bool {
	k.n = 0
	if len(content) == 0 || len(content) > maxName {
		return false
	}
	for i := range content {
		k.n = len(content[i].appendKey(k.b[:k.n]))
	}
	return true
}

// lookup returns the token of that kind and name, nil if not found.
func (t *TokenTable) lookup(kind tokenKind, content []symbol) *Token {
	var k nameKey
	if !k.set(content) {
		return nil
	}
	if tok := t.names[kind][string(k.b[:k.n])]; tok != nil {
		return tok
	}
	stem := k.n
	for stem > 0 && ('2' <= k.b[stem-1] && k.b[stem-1] <= '9' || k.b[stem-1] == 'i' || k.b[stem-1] == 'o') {
		stem--
	}
	for ; stem < k.n; stem++ {
		if tok := t.numbered[kind][string(k.b[:stem])]; tok != nil {
			return tok
		}
	}
	return nil
}

// lookupAngle returns the token <content>, nil if it is not one. spec: scrub/4.2
func (t *TokenTable) lookupAngle(content []symbol) *Token {
	if tok := t.lookup(inAngles, content); tok != nil {
		return tok
	}
	n := len(content)
	if n < minBarred+1 {
		if n < 3 || content[0].char != '|' || content[n-1].char != '|' {
			return nil
		}
	}
	opens, closes := content[0].char == '|', content[n-1].char == '|'
	switch {
	case opens && closes:
		if isName(content[1:n-1], "-./:") {
			return anyShape
		}
	case opens:
		// <|name>, or <|name|more>
		end := slices.IndexFunc(content[1:], func(x symbol) bool { return x.char == '|' })
		if end < 0 && isWord(content[1:]) || end > 0 && isWord(content[1:1+end]) && isName(content[2+end:], "-./:|") {
			return anyShape
		}
	case closes:
		if isWord(content[:n-1]) {
			return anyShape
		}
	}
	return nil
}

// isName reports whether syms is made of letters, digits, "_" and the others, and
// has a letter or digit.
func isName(syms []symbol, others string) bool {
	some := false
	for _, x := range syms {
		word := letter(x.char) || '0' <= x.char && x.char <= '9'
		if !word && x.char != '_' && strings.IndexByte(others, x.char) < 0 {
			return false
		}
		some = some || word
	}
	return some
}

// isWord reports whether syms is a name that no formula and no table holds: in one
// line, with three letters or more, no other character but "_", "-" and digits.
func isWord(syms []symbol) bool {
	if len(syms) < minBarred || !letter(syms[0].char) || !letter(syms[1].char) || !isName(syms, "-") {
		return false
	}
	return int(syms[len(syms)-1].end-syms[0].start) < 4*len(syms)
}

// double returns the token <<content>>, nil if it is not one.
func (t *TokenTable) double(content []symbol) *Token {
	var b [maxName]byte
	if len(content)+2 > len(b) {
		return nil
	}
	key := append(b[:0], '<')
	for _, x := range content {
		key = append(key, x.fold)
	}
	return t.names[inAngles][string(append(key, '>'))]
}

// minBarred is the shortest name of <|name> and <name|>: a shorter one stands
// between operators or in mathematics.
const minBarred = 3

// lookupBracket returns the token [content], nil if it is not one; doubtful says
// that it has the shape of one, as the arrays of some languages also have.
func (t *TokenTable) lookupBracket(content []symbol) (tok *Token, doubtful bool) {
	if tok := t.lookup(inBrackets, content); tok != nil {
		return tok, false
	}
	n := len(content)
	if n < minBarred+2 || content[0].char != '|' || content[n-1].char != '|' {
		return nil, false
	}
	for _, x := range content[1 : n-1] {
		if !letter(x.char) && x.char != '_' {
			return nil, false
		}
	}
	return nil, true
}

// lookupLine returns the role with which word ends, and where it begins in word.
// What stands before it must itself be beginnings of roles.
func (t *TokenTable) lookupLine(word []symbol) (tok *Token, from int) {
	for _, r := range t.roles {
		n := len(word) - len(r.word)
		if n >= 0 && foldsTo(word[n:], r.word) && (tok == nil || n == from) && t.beginsRoles(word[:n]) {
			// Two families may have one word in different case.
			if tok, from = r.tok, n; claimsRole(tok, word[n:]) {
				break
			}
		}
	}
	return tok, from
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
func (t *TokenTable) beginsRoles(syms []symbol) bool {
	for len(syms) > 0 {
		n := 0
		for _, r := range t.roles {
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
// label is: in plain lower case or capitalised it is a key or a label.
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
	switch {
	case tok.Treatment == Ambiguous:
		return upper == len(word)
	case tok.Exact:
		return upper == 1 && word[0].char < 'a'
	}
	return upper > 1 || upper == 1 && word[0].char >= 'a'
}

// startsRole is mayBeRole for the line of plain ASCII that begins at s[i].
func (t *TokenTable) startsRole(s string, i int) bool {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i < len(s) && t.opens[s[i]] && t.mayBeRole(s, i)
}

// mayBeRole reports whether a role marker may stand at s[i:], where a line
// begins. It rules out what is cheap to rule out.
func (t *TokenTable) mayBeRole(s string, i int) bool {
	if i == len(s) {
		return false
	}
	if s[i] < 0x80 {
		if !t.opens[s[i]] {
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
	return t.opens[c&0x7f]
}
