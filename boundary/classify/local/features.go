// SPDX-License-Identifier: Apache-2.0

package local

import (
	"unicode/utf8"
	"unsafe"
)

// form is the version of what is counted in a text. Weights of one form mean
// nothing under another.
const form = 3

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
	at   int
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
	repeated := p.at != 0 && p.triple == uint32(triple>>32) && uint32(r.count)-p.at < widest
	*p = pastAt{uint32(triple >> 32), uint32(r.count)}
	return repeated
}

// Next goes to the next token and sets Features[:Count]. It is false at the end
// of the text. A token that repeats what stood shortly before has no features.
func (r *Reader) Next() bool {
	if !r.read() {
		return false
	}
	h := uint64(offset)
	for _, c := range r.word[1 : r.n-1] {
		h = (h ^ uint64(c)) * prime
	}
	h = mix(h)
	r.Count, r.Words = 0, 0
	r.count++
	triple := mix(r.before*7 + r.last*3 + h)
	if !r.again(triple) {
		r.add(h)
		if r.last != 0 {
			r.add(mix(r.last*3 + h))
		}
		if r.before != 0 {
			r.add(mix(r.before*5 + h)) // whatever stands between them
			r.add(triple)
		}
		r.stems()
		r.Words = r.Count
		if k := r.kind(); k != 0 {
			r.kinds(k)
		}
	}
	r.before, r.last = r.last, h|1
	return true
}

// kind is the kind of the token; where no spaces are written, of the word that begins with it.
func (r *Reader) kind() uint8 {
	if r.alone {
		return r.kindOf.of(r.text[r.start:min(len(r.text), r.start+maxWord)], true)
	}
	return r.kindOf.of(unsafe.String(&r.word[1], r.n-2), false)
}

// stems adds each run of some letters of a word and its marks, so that a word which
// was never seen still speaks by its stem: five of ASCII, four of other scripts.
func (r *Reader) stems() {
	if r.foreign {
		r.foreignStems()
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

func (r *Reader) foreignStems() {
	from, to, n := 0, 0, 0
	for to < r.n {
		for to++; to < r.n && !utf8.RuneStart(r.word[to]); {
			to++
		}
		if n++; n < foreignStem {
			continue
		}
		h := uint64(offset)
		for _, c := range r.word[from:to] {
			h = (h ^ uint64(c)) * prime
		}
		r.add(mix(h ^ stemSeed))
		for from++; from < to && !utf8.RuneStart(r.word[from]); {
			from++
		}
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
	stem               = 5
	foreignStem        = 4
	kindSeed    uint64 = 0xd6e8feb86659fd93
	offset      uint64 = 0xcbf29ce484222325 // FNV-1a
	prime       uint64 = 0x100000001b3
	stemSeed    uint64 = 0x9e3779b97f4a7c15
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
