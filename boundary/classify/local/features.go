// SPDX-License-Identifier: Apache-2.0

package local

import (
	"encoding/binary"
	"unicode/utf8"
)

// form is the version of what is counted in a text, and of the file. Weights of one form
// mean nothing under another.
const form = 4

// Buckets is how many weights there are: features are hashed into so many.
const Buckets = 1 << bits

// bits of a bucket's number.
const bits = 20

// Windows are how many tokens are judged together: a sentence or two, and a
// paragraph. An injection stands somewhere in a text, and the longer the text around
// it the less it would weigh in a sum over all of it.
var Windows = [...]int{short, widest}

const (
	short  = 24
	widest = 64
)

// stemsAt is where the stems of a token begin among its features. Before them stand the word, its
// pairs with each of the two words before, and the triple.
const stemsAt = 4

// perToken bounds the features of one token.
const perToken = stemsAt + maxWord + 2 + memory

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
	count  uint32         // of tokens
	past   [256]pastAt    // triples before

	token

	Features [perToken]uint32 // of the token that Next has found
	Count    int
	Words    int // of Features that are words and their parts; the rest are kinds
}

// Reset begins a text.
func (r *Reader) Reset(text string) {
	r.text, r.start, r.at, r.last, r.before, r.Count = text, 0, 0, 0, 0, 0
	r.seen, r.count, r.kindOf = [memory]kindAt{}, 0, lexiconKinds()
	r.past = [256]pastAt{}
}

// Span is where the token stands.
func (r *Reader) Span() (start, end int) { return r.start, r.at }

// kindAt is a word of the lexicon and where it stood.
type kindAt struct {
	kind uint8 // 0: none
	at   uint32
}

const (
	memory = 4  // words of the lexicon that are remembered
	reach  = 12 // how many tokens back they count
)

// pastAt is a triple and the number, from 1, of the token that it ended with.
type pastAt struct {
	triple uint32
	at     uint32
}

// again reports whether the triple stood among the tokens of the widest window before. What is
// repeated says nothing new: without this a text of one word would be as loud as an order.
func (r *Reader) again(triple uint64) bool {
	p := &r.past[triple&0xff]
	repeated := p.triple == uint32(triple>>32) && p.at != 0 && r.count-p.at < widest
	*p = pastAt{uint32(triple >> 32), r.count}
	return repeated
}

// Next goes to the next token and sets Features[:Count]. It is false at the end
// of the text. A token that repeats what stood shortly before has no features.
func (r *Reader) Next() bool { return r.next(&r.Features) }

// next is Next with a place for the features.
func (r *Reader) next(f *[perToken]uint32) bool {
	if !r.read(f) {
		return false
	}
	r.Count, r.Words = 0, 0
	r.count++
	h := mix(r.hash)
	triple := mix(r.before*7 + r.last*3 + h)
	if !r.again(triple) {
		if r.stems < 0 {
			r.addStems(f)
		}
		f[0], f[1] = top(h), bucket(r.last*3+h)
		f[2] = bucket(r.before*5 + h) // whatever stands between them
		f[3] = top(triple)
		switch {
		case r.before != 0:
			r.Count = stemsAt + r.stems
		case r.last != 0: // the first tokens of a text have fewer
			r.Count = 2 + copy(f[2:], f[stemsAt:stemsAt+r.stems])
		default:
			r.Count = 1 + copy(f[1:], f[stemsAt:stemsAt+r.stems])
		}
		r.Words = r.Count
		if k := r.kind(h); k != 0 {
			r.kinds(f, k)
		}
	}
	r.before, r.last = r.last, h|1
	return true
}

// kind is the kind of the token, whose word has the hash h; where no spaces are written, of the word
// that begins with it.
func (r *Reader) kind(h uint64) uint8 {
	switch {
	case r.alone:
		return r.kindOf.of(r.text[r.start:min(len(r.text), r.start+maxWord)], true)
	case r.foreign:
		return r.kindOf.of(string(r.word[1:r.n-1]), false)
	}
	return r.kindOf.whole(r.word[1:r.n-1], h)
}

// addStems puts each run of some letters of the word and its marks into f, from stemsAt on, so that a
// word which was never seen still speaks by its stem: five of ASCII, four of other scripts.
func (r *Reader) addStems(f *[perToken]uint32) {
	k := stemsAt
	if !r.foreign {
		for i := 0; i+stem <= r.n; i++ {
			f[k] = bucket(binary.BigEndian.Uint64(r.word[i:])>>(64-8*stem) ^ stemSeed)
			k++
		}
		r.stems = k - stemsAt
		return
	}
	var begin [wordRoom]int // of each character
	n := 0
	for i, c := range r.word[:r.n] {
		if utf8.RuneStart(c) {
			begin[n] = i
			n++
		}
	}
	begin[n] = r.n
	for i := foreignStem; i <= n; i++ {
		f[k] = bucket(hashed(r.word[begin[i-foreignStem]:begin[i]]) ^ stemSeed)
		k++
	}
	r.stems = k - stemsAt
}

// kinds adds the kind of a word, its pairs with those before, and the triple with
// the last two.
func (r *Reader) kinds(f *[perToken]uint32, k uint8) {
	h := mix(kindSeed + uint64(k))
	f[r.Count] = top(h)
	r.Count++
	for _, p := range r.seen {
		if p.kind == 0 || r.count-p.at > reach {
			break
		}
		r.add(f, h+uint64(p.kind)<<8)
	}
	if p := r.seen[1]; p.kind != 0 && r.count-p.at <= reach {
		r.add(f, h+uint64(r.seen[0].kind)<<16+uint64(p.kind)<<24)
	}
	r.seen[0], r.seen[1], r.seen[2], r.seen[3] = kindAt{k, r.count}, r.seen[0], r.seen[1], r.seen[2]
}

const (
	stem               = 5
	foreignStem        = 4
	kindSeed    uint64 = 0xd6e8feb86659fd93
	offset      uint64 = 0xcbf29ce484222325 // FNV-1a
	prime       uint64 = 0x100000001b3
	stemSeed    uint64 = 0x9e3779b97f4a7c15
	mix1        uint64 = 0xff51afd7ed558ccd // MurmurHash3
	mix2        uint64 = 0xc4ceb9fe1a85ec53
	stemMask           = 1<<(8*stem) - 1
)

func (r *Reader) add(f *[perToken]uint32, x uint64) {
	f[r.Count] = bucket(x)
	r.Count++
}

// bucket is the feature that x makes: top(mix(x)). The last step of mix changes none of these bits.
func bucket(x uint64) uint32 {
	x = (x ^ x>>33) * mix1
	return top((x ^ x>>33) * mix2)
}

func top(h uint64) uint32 { return uint32(h >> (64 - bits)) }

// hashed is FNV-1a.
func hashed(b []byte) uint64 {
	h := uint64(offset)
	for _, c := range b {
		h = (h ^ uint64(c)) * prime
	}
	return h
}

// mix spreads what differs over all bits (the finaliser of MurmurHash3).
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= mix1
	h ^= h >> 33
	h *= mix2
	return h ^ h>>33
}

// Classes of bytes.
const (
	letter = iota // or a byte of a character beyond ASCII
	digit
	mark // counts as a token of its own
	space
)

// class is that of a byte, and lower the small letter of one that is an ASCII letter, or 0.
var class, lower = func() (k, l [256]byte) {
	for c := range k {
		switch {
		case 'A' <= c && c <= 'Z':
			l[c] = byte(c) + 'a' - 'A'
		case 'a' <= c && c <= 'z', c == '\'':
			l[c] = byte(c)
		case c >= utf8.RuneSelf:
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
