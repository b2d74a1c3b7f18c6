// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"bytes"
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
	t.spelled = spelled{
		angles: names{}, squares: names{}, marked: map[string][]string{},
		varied: map[string]bool{}, variedKeys: map[string]bool{},
	}
	for _, name := range t.varied {
		key := viewKey(name)
		t.spelled.varied[name], t.spelled.variedKeys[key] = true, true
		t.partials.add(key, false)
	}
	t.partial, t.seqs, t.spares = map[string]bool{}, map[*Token][]tokenRow{}, map[*Token][]tokenRow{}
	for i, tok := range t.tokens {
		tok.index = i
		t.add(tok, p)
		t.addSpelling(tok)
	}
	for _, tok := range t.tokens {
		if k := tok.kind; k == inAngles || k == inBrackets {
			tok.closer = t.names[k][viewKey("/"+tok.Text[1:len(tok.Text)-1])]
		}
	}
	slices.SortFunc(t.spelled.prefixes, func(a, b string) int { return len(b) - len(a) })
	for _, tok := range t.tokens {
		for _, text := range tok.Sequences {
			seq, fault := t.parseSequence(tok, text)
			for _, e := range seq {
				if e.claimsRole() {
					t.spelled.mark(e.word.text)
				}
			}
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
		t.roleSet.add(r.word, true)
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
	if !slices.ContainsFunc(content, func(x symbol) bool { return x.char == '|' || x.char == ':' }) {
		return nil // neither a shape nor a variant
	}
	var k nameKey
	if !k.set(content) {
		return nil
	}
	var chars [maxName]byte
	for i := range content {
		chars[i] = content[i].char
	}
	// A shape of one bar stands on one line: a table has bars too.
	n := len(content)
	bars := content[0].char == '|' && content[n-1].char == '|'
	switch {
	case isShape(chars[:n]) && (bars || int(content[n-1].end-content[0].start) < 4*n):
		return anyShape
	case isVaried(k.b[:k.n], t.spelled.variedKeys, false):
		return variedShape
	}
	return nil
}

// lookupPrefix returns the token of which content is the beginning, nil if it is not one.
func (t *TokenTable) lookupPrefix(content []symbol, behind byte) *Token {
	if tok := t.lookup(asPrefix, content); tok != nil {
		return tok
	}
	var k nameKey
	if !k.set(content) {
		return nil
	}
	key := k.b[:k.n]
	if n := bytes.IndexByte(key, ' '); n > 0 && key[k.n-1] == '=' && n+2 < k.n && isVaried(key[:n], t.spelled.variedKeys, true) {
		return variedShape
	}
	if key[k.n-1] == '|' && letter(behind) {
		chars := make([]byte, 0, maxName+1)
		for i := range content {
			chars = append(chars, content[i].char)
		}
		if markupPrefix(string(append(chars, behind))) == len(content) {
			return anyShape
		}
	}
	return nil
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

// claimsRole reports whether a role at the beginning of a line is spelled as its template
// spells it, or disguised. In another case it is a key or a label.
func claimsRole(tok *Token, word []symbol) bool {
	got := make([]byte, len(word))
	for i := range word {
		if !word[i].exact {
			return true
		}
		got[i] = word[i].char
	}
	return strings.HasPrefix(tok.Text, string(got)) || oddCase(string(got))
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
		return n < len(s) && (s[n] >= 0x80 || s[n] == ':' && t.roleSet.has(s[i:], n-i) || strings.IndexByte("<[#&", s[n]) >= 0)
	}
	if p, _ := ucd.Peek(s, i); p&ucd.Confusable == 0 {
		return p&(ucd.NFKCActive|ucd.Hidden|ucd.Mark) != 0
	}
	r, _, _ := ucd.Decode(s[i:])
	c, _ := ucd.ASCIIPrototype(r)
	return t.opens[c&0x7f]
}
