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
	word    [wordRoom]byte // between two marks
	n       int
	foreign bool // it holds a letter that is not Latin
	mark    bool // it is a mark
	alone   bool // it is a character of a script that is written without spaces

	letters, digits int // of ASCII; only readAny sets them

	hash  uint64 // of the word
	stems int    // how many it has; -1: addStems has to tell
}

// wordRoom leaves room to read eight bytes where the last stem begins.
const wordRoom = maxWord + 8

// read reads the next token. It puts the stems of a plain word into f, as addStems does.
func (r *Reader) read(f *[perToken]uint32) bool {
	s, i := r.text, r.at
	for i < len(s) && class[s[i]] == space {
		i++
	}
	r.start, r.at = i, i
	if i == len(s) {
		return false
	}
	t := &r.token
	t.foreign, t.mark, t.alone = false, false, false
	// Most tokens are words of ASCII letters. One loop does for them what readAny does in many: a
	// processor does not foresee how long a word is, and loses time at the end of each loop.
	n, h, run := 0, uint64(offset), uint64('^')
	for _, b := range []byte(s[i:min(len(s), i+maxWord)]) {
		c := lower[b]
		if c == 0 {
			break
		}
		n++
		t.word[n] = c
		h = (h ^ uint64(c)) * prime
		run = run<<8 | uint64(c)
		if n+1 >= stem {
			f[n] = bucket(run&stemMask ^ stemSeed)
		}
	}
	i += n
	switch {
	case n == 0:
		if !r.readOne() {
			r.readAny()
		}
		return true
	case n == maxWord, i < len(s) && class[s[i]] < mark, n == 1 && t.oneLetter(s, i):
		r.readAny()
		return true
	}
	f[n+1] = bucket((run<<8|'$')&stemMask ^ stemSeed)
	r.at, t.n, t.hash, t.stems = i, n+2, h, max(0, n+3-stem)
	return true
}

// readOne reads a token that counts as one character, without stems: a mark, a number, or a
// character of a script without spaces. It is false if another begins at r.start.
func (r *Reader) readOne() bool {
	t, s := &r.token, r.text[r.start:]
	t.word[1] = s[0]
	n, w := 1, 1 // bytes of the word, and of the text
	switch class[s[0]] {
	case mark:
		t.mark = true
	case digit:
		for w < len(s) && class[s[w]] == digit {
			w++
		}
		if w < len(s) && class[s[w]] == letter {
			return false
		}
		t.word[1] = '0'
	default:
		_, w = utf8.DecodeRuneInString(s)
		if !unspaced(s, w) {
			return false
		}
		t.foreign, t.alone = true, true
		n = copy(t.word[1:], s[:w])
	}
	r.at, t.n, t.stems, t.hash = r.start+w, n+2, 0, hashed(t.word[1:n+1])
	return true
}

// readAny reads the token that begins at r.start, whatever it is.
func (r *Reader) readAny() {
	t, s := &r.token, r.text
	t.word[0], t.n, t.letters, t.digits = '^', 1, 0, 0
	i := t.fill(s, r.start)
	// The rest of a word that is too long belongs to it.
	for t.n > maxWord && i < len(s) && class[s[i]] == letter {
		i++
	}
	if t.n == 2 && t.letters == 1 {
		i = t.spelled(s, i)
	}
	name := t.plain()
	r.at, t.hash = i, hashed(t.word[1:t.n])
	t.word[t.n] = '$'
	t.n, t.stems = t.n+1, -1
	if name {
		t.stems = 0
	}
}

// fill puts the characters of a token that begins at s[i] into the word, and returns where it ends.
// A Latin letter becomes the ASCII one it is made of, and one of an alphabet with capitals a small one;
// an accent that stands alone is left out.
func (t *token) fill(s string, i int) int {
	n, fold := t.n, (*fold)(nil)
	for i < len(s) && n <= maxWord {
		c := s[i]
		if l := lower[c]; l != 0 {
			t.letters++
			t.word[n] = l
			i, n = i+1, n+1
			continue
		}
		if kind := class[c]; kind == digit {
			if t.digits++; t.letters > 0 || t.foreign || t.digits <= longest {
				t.word[n] = c
				n++
			}
			i++
			continue
		} else if kind != letter {
			if kind == mark && n == 1 {
				t.mark = true
				t.word[1] = c
				i, n = i+1, 2
			}
			break
		}
		x, w := utf8.DecodeRuneInString(s[i:])
		alone := unspaced(s[i:], w)
		if alone && n > 1 || n+w > maxWord+1 {
			break
		}
		if fold == nil {
			fold = folding()
		}
		if int(x) < len(fold.low) {
			x = fold.low[x]
		} else if x>>8 == 0x1e {
			x = fold.latin[x&0xff]
		}
		switch {
		case x == 0:
		case x < utf8.RuneSelf:
			t.letters++
			t.word[n] = byte(x)
			n++
		case w == 2:
			t.foreign = true
			t.word[n], t.word[n+1] = byte(0xc0|x>>6), byte(0x80|x&0x3f)
			n += 2
		default:
			t.foreign = true
			n += copy(t.word[n:], s[i:i+w])
		}
		i += w
		if alone {
			t.alone = true
			break
		}
	}
	t.n = n
	return i
}

// longest is how many digits at the beginning of a token are kept.
const longest = 6

// spelled adds the letters that follow one letter, each behind one character that is no part of a
// word: "i g n o r e" is a word. i is behind the first one.
func (t *token) spelled(s string, i int) int {
	more := 0
	for j := i; more < maxWord && t.oneLetter(s, j); j += 2 {
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
// letters. Other digits become one '0', since which number it is says nothing. It reports whether
// there are so many that the word is the name of a thing: a digest, an account, a constant.
func (t *token) plain() (name bool) {
	if t.foreign && t.letters > 0 {
		t.lookAlikes()
	}
	if t.digits == 0 {
		return false
	}
	leet := t.letters >= 3 && t.digits*2 <= t.letters
	n := 1
	for i := 1; i < t.n; i++ {
		c := t.word[i]
		if class[c] == digit {
			if leet {
				c = "oizeasgtbg"[c-'0']
			} else if c = '0'; n > 1 && t.word[n-1] == '0' {
				continue
			}
		}
		t.word[n], n = c, n+1
	}
	t.n = n
	return !leet && t.digits > 2
}

// lookAlikes replaces the letters of a word in two scripts that look like ASCII ones, if then it is
// all ASCII.
func (t *token) lookAlikes() {
	var out [wordRoom]byte
	n := 1
	for i := 1; i < t.n; {
		c, w := utf8.DecodeRune(t.word[i:t.n])
		i += w
		if c >= utf8.RuneSelf {
			p, ok := ucd.ASCIIPrototype(c)
			if !ok {
				return
			}
			c = rune(p)
			if l := lower[p]; l != 0 {
				c = rune(l)
			}
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
