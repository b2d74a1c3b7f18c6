// SPDX-License-Identifier: Apache-2.0

package local

import "unicode/utf8"

// form is the version of what is counted in a text. Weights of one form mean
// nothing under another.
const form = 1

// Buckets is how many weights there are: features are hashed into so many.
const Buckets = 1 << bits

// bits of a bucket's number.
const bits = 20

// Windows are how many tokens are judged together: a sentence or two, and a
// paragraph. An injection stands somewhere in a text, and the longer the text around
// it the less it would weigh in a sum over all of it.
var Windows = [...]int{24, 64}

// widest is the last of Windows.
const widest = 64

// perToken bounds the features of one token.
const perToken = 4 + maxWord + 2 + memory

// maxWord is how many bytes of a word are looked at. Longer ones are names of
// things, keys or base64.
const maxWord = 24

// A Reader yields the features of a text, token by token. A token is a word, or
// one character of a script that is written without spaces. Its zero value is
// not ready: use [Reader.Reset].
type Reader struct {
	text  string
	start int // of the token
	at    int // behind it

	// Hashes of the tokens before; 0 at the beginning.
	last, before uint64

	kindOf *kinds
	seen   [memory]kindAt // words of the lexicon before, the newest first
	count  int            // of tokens

	word [maxWord + 2]byte // the token in lower case between two marks
	n    int

	Features [perToken]uint32 // of the token that Next has found
	Count    int
	Words    int // of Features that are words and their parts; the rest are kinds
}

// Reset begins a text.
func (r *Reader) Reset(text string) {
	r.text, r.start, r.at, r.last, r.before, r.Count = text, 0, 0, 0, 0, 0
	r.seen, r.count, r.kindOf = [memory]kindAt{}, 0, lexiconKinds()
}

// kindAt is a word of the lexicon and where it stood.
type kindAt struct {
	kind uint8 // 0: none
	at   int
}

const (
	memory = 4  // words of the lexicon that are remembered
	reach  = 12 // how many tokens back they count
)

// Next goes to the next token and sets Features[:Count]. It is false at the end
// of the text.
func (r *Reader) Next() bool {
	if !r.token() {
		return false
	}
	h := uint64(offset)
	for _, c := range r.word[1 : r.n-1] {
		h = (h ^ uint64(c)) * prime
	}
	h = mix(h)
	r.Count = 0
	r.add(h)
	if r.last != 0 {
		r.add(mix(r.last*3 + h))
	}
	if r.before != 0 {
		r.add(mix(r.before*5 + h)) // whatever stands between them
		r.add(mix(r.before*7 + r.last*3 + h))
	}
	r.stems()
	r.Words = r.Count
	r.count++
	if k := r.kindOf.of(h); k != 0 {
		r.kinds(k)
	}
	r.before, r.last = r.last, h|1
	return true
}

// stems adds each run of five bytes of a word and its marks, so that a word which
// was never seen still speaks by its stem.
func (r *Reader) stems() {
	if r.n <= stem {
		return
	}
	for i := 0; i+stem <= r.n; i++ {
		var h uint64
		for _, c := range r.word[i : i+stem] {
			h = h<<8 | uint64(c)
		}
		r.add(mix(h ^ stemSeed))
	}
}

// kinds adds the kind of a word, its pairs with those before, and the triple with
// the last two.
func (r *Reader) kinds(k uint8) {
	h := mix(kindSeed + uint64(k))
	r.add(h)
	for _, p := range r.seen {
		if p.kind == 0 || r.count-p.at > reach {
			break
		}
		r.add(mix(h + uint64(p.kind)<<8))
	}
	if p := r.seen[1]; p.kind != 0 && r.count-p.at <= reach {
		r.add(mix(h + uint64(r.seen[0].kind)<<16 + uint64(p.kind)<<24))
	}
	copy(r.seen[1:], r.seen[:])
	r.seen[0] = kindAt{k, r.count}
}

const (
	stem            = 5
	kindSeed uint64 = 0xd6e8feb86659fd93
	offset   uint64 = 0xcbf29ce484222325 // FNV-1a
	prime    uint64 = 0x100000001b3
	stemSeed uint64 = 0x9e3779b97f4a7c15
)

func (r *Reader) add(h uint64) {
	r.Features[r.Count] = uint32(h >> (64 - bits))
	r.Count++
}

// mix spreads what differs over all bits (the finaliser of MurmurHash3).
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// token reads the next token into word.
func (r *Reader) token() bool {
	s, i := r.text, r.at
	for i < len(s) && class[s[i]] == space {
		i++
	}
	if i == len(s) {
		r.at = i
		return false
	}
	r.start, r.word[0], r.n = i, '^', 1
	digits := true
	for i < len(s) && r.n <= maxWord {
		c := s[i]
		if c < utf8.RuneSelf {
			k := class[c]
			if k == space {
				break
			}
			if k == mark {
				if r.n == 1 {
					r.word[r.n], r.n, i = c, r.n+1, i+1
				}
				break
			}
			if k == digit {
				c = '0' // which number it is says nothing
				if digits && r.n > 1 {
					i++
					continue
				}
			} else {
				digits = false
			}
			r.word[r.n], r.n, i = lower[c], r.n+1, i+1
			continue
		}
		_, w := utf8.DecodeRuneInString(s[i:])
		alone := unspaced(s[i:], w)
		if alone && r.n > 1 || r.n+w > maxWord+1 {
			break
		}
		digits = false
		r.n += copy(r.word[r.n:], s[i:i+w])
		i += w
		if alone {
			break
		}
	}
	// The rest of a word that is too long belongs to it.
	for r.n > maxWord && i < len(s) && class[s[i]] == letter {
		i++
	}
	r.at = i
	r.word[r.n] = '$'
	r.n++
	return true
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

// Classes of bytes.
const (
	letter = iota // or a byte of a character beyond ASCII
	digit
	mark // counts as a token of its own
	space
)

var class, lower = func() (k, l [256]byte) {
	for c := range k {
		l[c] = byte(c)
		switch {
		case 'A' <= c && c <= 'Z':
			l[c] += 'a' - 'A'
		case 'a' <= c && c <= 'z', c >= utf8.RuneSelf, c == '\'':
		case '0' <= c && c <= '9':
			k[c] = digit
		case c == '!', c == '?', c == '<', c == '>', c == '[', c == ']', c == '{', c == '=', c == '@', c == '/', c == '$', c == ':':
			k[c] = mark
		default:
			k[c] = space
		}
	}
	return k, l
}()
