// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"errors"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"
)

// The first pieces of a vocabulary stand for no text.
const (
	Begin   = iota // before the first piece of a window
	End            // after the last one
	Unknown        // a code point that no piece holds
	specials
)

// space stands for a space in a piece, as SentencePiece writes it.
const space = "\u2581"

// longestWord bounds, in code points, what is cut into pieces at one time. A longer word
// (a text without spaces, base64) is cut there first, so that memory is bounded.
const longestWord = 256

// Bounds of a vocabulary.
const (
	maxPieces     = 1 << 18
	maxPieceBytes = 64
	maxNodes      = 1<<24 - 1 // which leaves a byte of a key
)

var errPieces = errors.New("deep: not a vocabulary of this form")

// A Vocabulary cuts text into the pieces that a unigram model finds most likely. It does
// not change and may be used at the same time.
type Vocabulary struct {
	scores  []float32
	unknown float32 // score of a code point that no piece holds

	// The pieces as a tree of bytes, in one table with open addressing: the key is the
	// node and the byte, the value is the next node. piece has the piece that ends there.
	keys  []uint32
	next  []uint32
	piece []int32
	mask  uint32
}

// NewVocabulary makes a Vocabulary of pieces and the logarithms of their likelihoods. A
// piece that stands for no text is "".
func NewVocabulary(pieces []string, scores []float32) (*Vocabulary, error) {
	if len(pieces) <= specials || len(pieces) > maxPieces || len(scores) != len(pieces) {
		return nil, errPieces
	}
	lowest := float32(0)
	for i, p := range pieces {
		if len(p) > maxPieceBytes || (p == "") != (i < specials) || !utf8.ValidString(p) || !finite(scores[i]) || scores[i] > 0 {
			return nil, errPieces
		}
		lowest = min(lowest, scores[i])
	}
	nodes := 1
	before := ""
	for _, p := range slices.Sorted(slices.Values(pieces)) { // the nodes that it does not share with the one before
		same := 0
		for same < len(p) && same < len(before) && p[same] == before[same] {
			same++
		}
		nodes, before = nodes+len(p)-same, p
	}
	if nodes >= maxNodes {
		return nil, errPieces
	}
	size := uint32(1024)
	for size < uint32(nodes)*3/2 {
		size *= 2
	}
	v := &Vocabulary{scores: scores, unknown: lowest - 10, keys: make([]uint32, size), next: make([]uint32, size),
		piece: append(make([]int32, 0, nodes), -1), mask: size - 1}
	for i, p := range pieces[specials:] {
		node := uint32(0)
		for k := range len(p) {
			node = v.grow(node, p[k])
		}
		if v.piece[node] >= 0 {
			return nil, errPieces // two that are equal
		}
		v.piece[node] = int32(i + specials)
	}
	return v, nil
}

func finite(x float32) bool { return !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0) }

// slot is where the way from a node by a byte stands, or would.
func (v *Vocabulary) slot(key uint32) uint32 {
	i := uint32(uint64(key)*0x9e3779b97f4a7c15>>20) & v.mask
	for v.keys[i] != 0 && v.keys[i] != key {
		i = (i + 1) & v.mask
	}
	return i
}

// wayOf is never 0, which marks an empty slot.
func wayOf(node uint32, b byte) uint32 { return (node+1)<<8 | uint32(b) }

func (v *Vocabulary) grow(node uint32, b byte) uint32 {
	key := wayOf(node, b)
	i := v.slot(key)
	if v.keys[i] == 0 {
		v.keys[i], v.next[i] = key, uint32(len(v.piece))
		v.piece = append(v.piece, -1)
	}
	return v.next[i]
}

// A cutter cuts one text, word by word.
type cutter struct {
	v     *Vocabulary
	word  []byte // begins with space, unless a longer word goes on
	lead  int    // bytes of that space
	runs  int    // code points of word, without space
	begin int    // of the word in the text
	best  []path // by byte of word
	out   []int32
	from  []int // the byte of the text at which each of out begins
}

// A path is the most likely way to cut the word up to a byte.
type path struct {
	score float64 // a sum of many: paths of the same pieces in another order are to be equal
	from  int32   // byte at which its last piece begins; -1: no path ends here
	piece int32
}

// Cut appends the pieces of text to dst, at most most of them, and says how many bytes of
// text it has read. White space of any kind and length counts as one space, as do control
// characters and bytes that are no UTF-8.
func (v *Vocabulary) Cut(dst []int32, text string, most int) ([]int32, int) {
	c := cutter{v: v, out: dst}
	most += len(dst)
	read := c.read(text, func() bool { return len(c.out) < most })
	return c.out[:min(len(c.out), most)], read
}

// read cuts the text as long as more says so, which is asked after each word.
func (c *cutter) read(text string, more func() bool) int {
	c.word, c.lead = append(c.word[:0], space...), len(space)
	for i, r := range text {
		white := r == utf8.RuneError || unicode.IsSpace(r) || unicode.IsControl(r)
		if c.runs > 0 && (white || c.runs == longestWord) {
			if c.flush(); !more() {
				return i
			}
			if white {
				c.word, c.lead = append(c.word, space...), len(space)
			}
		}
		if white {
			continue
		}
		if c.runs == 0 {
			c.begin = i
		}
		c.word = utf8.AppendRune(c.word, r)
		c.runs++
	}
	if c.runs > 0 {
		c.flush()
	}
	return len(text)
}

// windows calls yield with each window of a text, in order: size pieces from every stride on, and the
// last ones. The window stands between the bytes from and to of the text.
func (v *Vocabulary) windows(text string, size, stride int, yield func(ids []int32, from, to int)) {
	c := cutter{v: v}
	first := 0 // of the next window
	read := c.read(text, func() bool {
		for ; len(c.out)-first > size; first += stride {
			yield(c.out[first:first+size], c.from[first], c.from[first+size])
		}
		if past := first - size; past > 4096 { // what no window holds any more
			c.out, c.from, first = append(c.out[:0], c.out[past:]...), append(c.from[:0], c.from[past:]...), size
		}
		return true
	})
	for ; len(c.out)-first > size; first += stride {
		yield(c.out[first:first+size], c.from[first], c.from[first+size])
	}
	last := max(0, len(c.out)-size)
	from := 0
	if len(c.out) > 0 {
		from = c.from[last]
	}
	yield(c.out[last:], from, read)
}

// flush cuts the word into pieces and forgets it.
func (c *cutter) flush() {
	n := len(c.word)
	c.best = append(c.best[:0], make([]path, n+1)...)
	for i := range c.best {
		c.best[i].from = -1
	}
	c.best[0].from = 0
	for i := 0; i < n; {
		_, width := utf8.DecodeRune(c.word[i:])
		if c.best[i].from >= 0 {
			c.step(i, i+width)
		}
		i += width
	}
	begin, first := len(c.out), len(c.from)
	for i := n; i > 0; i = int(c.best[i].from) {
		c.out = append(c.out, c.best[i].piece)
		c.from = append(c.from, c.begin+max(0, int(c.best[i].from)-c.lead))
	}
	slices.Reverse(c.out[begin:])
	slices.Reverse(c.from[first:])
	c.word, c.lead, c.runs = c.word[:0], 0, 0
}

// step tries every piece that begins at byte i; after is where its first code point ends.
func (c *cutter) step(i, after int) {
	from := c.best[i].score
	node := uint32(0)
	for e := i; e < len(c.word); {
		at := c.v.slot(wayOf(node, c.word[e]))
		if c.v.keys[at] == 0 {
			break
		}
		node = c.v.next[at]
		e++
		if p := c.v.piece[node]; p >= 0 {
			c.raise(e, path{from + float64(c.v.scores[p]), int32(i), p})
		}
	}
	c.raise(after, path{from + float64(c.v.unknown), int32(i), Unknown})
}

func (c *cutter) raise(at int, p path) {
	if b := &c.best[at]; b.from < 0 || p.score > b.score {
		*b = p
	}
}
