// SPDX-License-Identifier: Apache-2.0

package local

import (
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A token is a word as it is counted: in small letters, Latin ones without accents, and without
// the disguises that normalising a text leaves in it.
type token struct {
	word    [maxWord + 2]byte // between two marks
	n       int
	foreign bool // it holds a letter that is not Latin
	mark    bool // it is a mark
	alone   bool // it is a character of a script that is written without spaces

	letters, digits int // of ASCII
}

// read reads the next token.
func (r *Reader) read() bool {
	s, i := r.text, r.at
	for i < len(s) && class[s[i]] == space {
		i++
	}
	if i == len(s) {
		r.at = i
		return false
	}
	r.start = i
	t := &r.token
	t.word[0], t.n, t.alone, t.foreign, t.mark, t.letters, t.digits = '^', 1, false, false, false, 0, 0
	i = t.fill(s, i)
	// The rest of a word that is too long belongs to it.
	for t.n > maxWord && i < len(s) && class[s[i]] == letter {
		i++
	}
	if t.n == 2 && t.letters == 1 {
		i = t.spelled(s, i)
	}
	t.plain()
	r.at = i
	t.word[t.n] = '$'
	t.n++
	return true
}

// fill puts the characters of a token that begins at s[i] into the word, and returns where it ends.
func (t *token) fill(s string, i int) int {
	for i < len(s) && t.n <= maxWord {
		c := s[i]
		switch class[c] {
		case space:
			return i
		case mark:
			if t.n > 1 {
				return i
			}
			t.mark = true
			t.word[1], t.n = c, 2
			return i + 1
		case digit:
			if t.digits++; t.letters > 0 || t.foreign || t.digits <= longest {
				t.word[t.n], t.n = c, t.n+1
			}
			i++
			continue
		}
		if c < utf8.RuneSelf {
			t.letters++
			t.word[t.n], t.n, i = lower[c], t.n+1, i+1
			continue
		}
		c2, w := utf8.DecodeRuneInString(s[i:])
		alone := unspaced(s[i:], w)
		if alone && t.n > 1 || t.n+w > maxWord+1 {
			return i
		}
		t.character(c2, s[i:i+w])
		i += w
		if alone {
			t.alone = true
			return i
		}
	}
	return i
}

// longest is how many digits at the beginning of a token are kept.
const longest = 6

// character puts one beyond ASCII into the word: a Latin one as the letter it is made of, one of an
// alphabet with capitals in small, and no accent that stands alone.
func (t *token) character(c rune, s string) {
	if f := folding(); int(c) < len(f.low) {
		c = f.low[c]
	} else if c>>8 == 0x1e {
		c = f.latin[c&0xff]
	}
	switch {
	case c == 0:
	case c < utf8.RuneSelf:
		t.letters++
		t.word[t.n], t.n = byte(c), t.n+1
	case len(s) == 2:
		t.foreign = true
		t.word[t.n], t.word[t.n+1] = byte(0xc0|c>>6), byte(0x80|c&0x3f)
		t.n += 2
	default:
		t.foreign = true
		t.n += copy(t.word[t.n:], s)
	}
}

// spelled adds the letters that follow one letter, each behind one character that is no part of a
// word: "i g n o r e" is a word. i is behind the first one.
func (t *token) spelled(s string, i int) int {
	more := 0
	for j := i; t.oneLetter(s, j); j += 2 {
		more++
	}
	if more < 2 {
		return i
	}
	for ; more > 0 && t.n <= maxWord; more-- {
		t.word[t.n], t.n, i = lower[s[i+1]], t.n+1, i+2
		t.letters++
	}
	return i
}

// oneLetter reports whether a single letter stands behind the character at i, alone.
func (t *token) oneLetter(s string, i int) bool {
	return i+1 < len(s) && class[s[i]] == space && s[i] != '\n' && s[i+1] < utf8.RuneSelf && class[s[i+1]] == letter && s[i+1] != '\'' &&
		(i+2 == len(s) || class[s[i+2]] == space || class[s[i+2]] == mark)
}

// plain undoes disguises: letters of another script in a Latin word, and digits that stand for
// letters. Other digits become '0', since which number it is says nothing.
func (t *token) plain() {
	if t.foreign && t.letters > 0 {
		t.lookAlikes()
	}
	if t.digits == 0 {
		return
	}
	leet := t.letters >= 3 && t.digits*2 <= t.letters
	n, only := 1, true
	for i := 1; i < t.n; i++ {
		c := t.word[i]
		switch {
		case class[c] != digit:
			only = false
		case leet:
			c = "oizeasgtbg"[c-'0']
		case only && n > 1:
			continue // a number is one character
		default:
			c = '0'
		}
		t.word[n], n = c, n+1
	}
	t.n = n
}

// lookAlikes replaces the letters of a word in two scripts that look like ASCII ones, if then it is
// all ASCII.
func (t *token) lookAlikes() {
	var out [maxWord + 2]byte
	n := 1
	for i := 1; i < t.n; {
		c, w := utf8.DecodeRune(t.word[i:t.n])
		i += w
		if c >= utf8.RuneSelf {
			p, ok := ucd.ASCIIPrototype(c)
			if !ok {
				return
			}
			c = rune(lower[p])
		}
		out[n], n = byte(c), n+1
	}
	out[0] = '^'
	t.word, t.n, t.foreign = out, n, false
}

// unspaced reports whether the character that s begins with, w bytes long, is of
// a script that is written without spaces: U+0E00 to U+109F, U+1780 to U+17FF and
// from U+2E80 to the end of the BMP's ideographs and syllables.
func unspaced(s string, w int) bool {
	if w != 3 {
		return w == 4
	}
	switch c, d := s[0], s[1]; {
	case c == 0xe0:
		return d >= 0xb8
	case c == 0xe1:
		return d <= 0x82 || d == 0x9e || d == 0x9f
	case c == 0xe2:
		return d >= 0xba
	}
	return s[0] <= 0xed
}

// A fold is what letters are read as.
type fold struct {
	low   [0x600]rune // of those below U+0600; 0: nothing
	latin [0x100]rune // of U+1E00 to U+1EFF
}

// plainLatin are Latin letters that do not decompose into one of ASCII and an accent.
var plainLatin = map[rune]rune{'\u00e6': 'a', '\u00f0': 'd', '\u00f8': 'o', '\u00fe': 't', '\u00df': 's', '\u0111': 'd', '\u0127': 'h', '\u0131': 'i', '\u0142': 'l', '\u014b': 'n', '\u0153': 'o', '\u0167': 't'}

// folding is made when a text beyond ASCII is first read.
var folding = sync.OnceValue(func() *fold {
	f := new(fold)
	var b ucd.Buffer
	of := func(r rune) rune {
		if r >= 0x300 && r < 0x370 {
			return 0
		}
		l := unicode.ToLower(r)
		if p := plainLatin[l]; p != 0 {
			return p
		}
		b.Reset()
		if b.Decompose(ucd.NFC, string(l), 0); b.Cells[0].R < utf8.RuneSelf && class[b.Cells[0].R] == letter {
			return b.Cells[0].R
		}
		if utf8.RuneLen(l) == utf8.RuneLen(r) {
			return l
		}
		return r
	}
	for r := range f.low {
		f.low[r] = of(rune(r))
	}
	for r := range f.latin {
		f.latin[r] = of(0x1e00 + rune(r))
	}
	return f
})
