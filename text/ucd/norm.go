// SPDX-License-Identifier: Apache-2.0

package ucd

import "unicode/utf8"

// Form is a Unicode normalization form (UAX #15).
type Form uint8

const (
	NFC  Form = iota // canonical
	NFKC             // compatibility
)

// active and joins return the two facts that rule the form's segments.
func (f Form) active() Prop {
	if f == NFKC {
		return NFKCActive
	}
	return NFCActive
}

func (f Form) joins() Prop {
	if f == NFKC {
		return NFKCJoins
	}
	return NFCJoins
}

// A Cell is one character of a decomposed or composed text.
type Cell struct {
	R   rune
	CCC uint8 // canonical combining class

	// Start, End are the source bytes [Start, End) from which R came. Two cells
	// that came from one character share its span; a composed cell's span covers
	// all that went into it, and what canonical ordering let stand between. The
	// spans of one segment (a cell with CCC 0 that does not compose backwards, and
	// what follows up to the next) need not ascend; those of two segments never
	// overlap or swap.
	Start, End uint32
}

// A Buffer is scratch space for normalising; once it has grown, its methods do
// not allocate. The zero Buffer is ready. One call takes 16 bytes for a cell,
// and twice that for a disordered run of non-starters.
type Buffer struct {
	Cells []Cell
	spare []Cell
}

// Reset empties Cells and keeps the memory.
func (b *Buffer) Reset() { b.Cells = b.Cells[:0] }

// Decompose appends the full decomposition of s, whose first byte lies at
// offset base of the source, and puts what it appended in canonical order.
// base+len(s) must fit in 32 bits.
func (b *Buffer) Decompose(f Form, s string, base int) {
	from := len(b.Cells)
	b.decompose(f, s, base)
	b.order(from)
}

// decompose is Decompose without the order.
func (b *Buffer) decompose(f Form, s string, base int) {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			b.Cells = append(b.Cells, Cell{R: rune(c), Start: uint32(base + i), End: uint32(base + i + 1)})
			i++
			continue
		}
		r, w, _ := Decode(s[i:])
		b.Cells = appendDecomposed(b.Cells, f, Cell{R: r, Start: uint32(base + i), End: uint32(base + i + w)})
		i += w
	}
}

// appendDecomposed appends the full decomposition of x.R with x's span.
func appendDecomposed(dst []Cell, f Form, x Cell) []Cell {
	at := decomposition(f, x.R)
	if at == 0 {
		x.CCC = 0
		if s := uint32(x.R - hangulS); s < hangulSCount {
			return appendHangul(dst, rune(s), x)
		}
		return append(dst, x)
	}
	for ; ; at++ {
		d := decompRuns[at]
		x.R, x.CCC = rune(d&decompRune), uint8(d>>decompClass)
		dst = append(dst, x)
		if d&decompLast != 0 {
			return dst
		}
	}
}

// decompRuns packs a rune, its combining class and the end of a decomposition.
const (
	decompRune  = 1<<21 - 1
	decompClass = 21
	decompLast  = 1 << 31
)

// decomposition returns the place in decompRuns, 0 for a starter that stays.
func decomposition(f Form, r rune) uint16 {
	if f == NFKC {
		return lookupNFKD(r)
	}
	return lookupNFD(r)
}

// Hangul syllables by arithmetic: The Unicode Standard, section 3.12.
const (
	hangulS, hangulL, hangulV, hangulT = 0xAC00, 0x1100, 0x1161, 0x11A7
	hangulLCount                       = 19
	hangulVCount                       = 21
	hangulTCount                       = 28
	hangulSCount                       = hangulLCount * hangulVCount * hangulTCount
)

func appendHangul(dst []Cell, s rune, x Cell) []Cell {
	l, v, t := x, x, x
	l.R = hangulL + s/(hangulVCount*hangulTCount)
	v.R = hangulV + s/hangulTCount%hangulVCount
	t.R = hangulT + s%hangulTCount
	if t.R == hangulT {
		return append(dst, l, v)
	}
	return append(dst, l, v, t)
}

// order puts every run of non-starters in Cells[from:] in canonical order.
func (b *Buffer) order(from int) {
	c := b.Cells
	for i := from; i < len(c); {
		if c[i].CCC == 0 {
			i++
			continue
		}
		start, sorted := i, true
		for i++; i < len(c) && c[i].CCC != 0; i++ {
			sorted = sorted && c[i-1].CCC <= c[i].CCC
		}
		if !sorted {
			b.sortRun(c[start:i])
		}
	}
}

// sortRun sorts by combining class and is stable: by insertion where the run is
// short, by counting where its length may be an attack.
func (b *Buffer) sortRun(run []Cell) {
	if len(run) <= 16 {
		for i := 1; i < len(run); i++ {
			x, j := run[i], i
			for ; j > 0 && run[j-1].CCC > x.CCC; j-- {
				run[j] = run[j-1]
			}
			run[j] = x
		}
		return
	}
	var at [256]int
	for i := range run {
		at[run[i].CCC]++
	}
	sum := 0
	for i, n := range at {
		at[i], sum = sum, sum+n
	}
	b.spare = append(b.spare[:0], run...)
	for _, x := range b.spare {
		run[at[x.CCC]] = x
		at[x.CCC]++
	}
}

// Compose puts Cells in canonical order, where several calls of Decompose or a
// caller's filter left them otherwise, and composes them in place. The cells
// must be decomposed.
func (b *Buffer) Compose() {
	b.order(0)
	c := b.Cells
	n, starter := 0, -1
	for _, x := range c {
		// x is blocked from the starter by a cell of the same class, or by any
		// starter, that was kept between them. c[n-1] is the last cell kept.
		if starter >= 0 && (n-1 == starter || c[n-1].CCC < x.CCC) {
			if p := composition(c[starter].R, x.R); p != 0 {
				c[starter].R = p
				c[starter].Start = min(c[starter].Start, x.Start)
				c[starter].End = max(c[starter].End, x.End)
				continue
			}
		}
		if x.CCC == 0 {
			starter = n
		}
		c[n] = x
		n++
	}
	b.Cells = c[:n]
}

// composition returns the primary composite of the pair, 0 if not found.
func composition(first, second rune) rune {
	if secondFilter[second>>6&31]>>(second&63)&1 == 0 {
		return 0
	}
	if l := uint32(first - hangulL); l < hangulLCount {
		if v := uint32(second - hangulV); v < hangulVCount {
			return hangulS + rune(l*hangulVCount+v)*hangulTCount
		}
		return 0
	}
	if s := uint32(first - hangulS); s < hangulSCount {
		if t := uint32(second - hangulT); 0 < t && t < hangulTCount && s%hangulTCount == 0 {
			return first + rune(t)
		}
		return 0
	}
	for h := compositionSlot(first, second); ; h = (h + 1) % uint32(len(compositions)) {
		switch e := &compositions[h]; {
		case e.first == uint32(first) && e.second == uint32(second):
			return rune(e.composite)
		case e.composite == 0:
			return 0
		}
	}
}

type compositionEntry struct{ first, second, composite uint32 }

// compositionSlot is where a pair's search in compositions begins; the generator
// computes the same.
func compositionSlot(first, second rune) uint32 {
	return (uint32(first)*0x9E3779B1 ^ uint32(second)*0x85EBCA6B) >> (32 - compositionBits)
}

// AppendTo appends the UTF-8 of Cells.
func (b *Buffer) AppendTo(dst []byte) []byte {
	for _, x := range b.Cells {
		dst = utf8.AppendRune(dst, x.R)
	}
	return dst
}

// Append appends the normalised s to dst; ill-formed bytes become U+FFFD. It
// leaves Cells empty.
func (b *Buffer) Append(dst []byte, f Form, s string) []byte {
	done := 0
	for from, to := b.Segment(f, s, 0); from < len(s); from, to = b.Segment(f, s, to) {
		dst = append(dst, s[done:from]...)
		dst = b.AppendTo(dst)
		done = to
	}
	b.Reset()
	return append(dst, s[done:]...)
}

// Segment normalises into Cells the first stretch s[from:to] at or after i that
// may not be in the form, and that nothing outside it can influence; from is
// len(s) if not found. i must be 0 or the to of the last call. Replacing each
// stretch by its Cells normalises s. Spans count from the start of s, which must
// be shorter than 4 GiB.
func (b *Buffer) Segment(f Form, s string, i int) (from, to int) {
	b.Reset()
	at, p, w := Scan(s, i, f.active())
	if at == len(s) {
		return at, at
	}
	from, to = at, at+w
	if p&f.joins() != 0 {
		from = lastBase(s[:at], i)
	}
	for to < len(s) {
		p, w := Peek(s, to)
		// A cut is possible before every character that does not join. Cutting
		// before each would cost time, cutting before none space.
		if p&f.joins() == 0 && (p&f.active() == 0 || to-from >= segmentSize) {
			break
		}
		to += w
	}
	b.decompose(f, s[from:to], from)
	b.Compose()
	return from, to
}

// segmentSize is where a segment ends, in bytes, as soon as it can.
const segmentSize = 512

// lastBase returns where the last character of s begins, but at least i. It must
// not be ill-formed.
func lastBase(s string, i int) int {
	n := len(s)
	if n > i {
		n--
		for n > i && s[n]&0xC0 == 0x80 {
			n--
		}
	}
	return n
}

// isNormal reports whether s is well-formed and in the form.
func (b *Buffer) isNormal(f Form, s string) bool {
	for from, to := b.Segment(f, s, 0); from < len(s); from, to = b.Segment(f, s, to) {
		if !b.spell(s[from:to]) {
			return false
		}
	}
	return true
}

// spell reports whether s is the UTF-8 of Cells.
func (b *Buffer) spell(s string) bool {
	for _, x := range b.Cells {
		r, w, ok := Decode(s)
		if !ok || r != x.R {
			return false
		}
		s = s[w:]
	}
	return s == ""
}

// Append appends the normalised s to dst; ill-formed bytes become U+FFFD.
func Append(dst []byte, f Form, s string) []byte {
	var b Buffer
	return b.Append(dst, f, s)
}

// String returns s in the form: s itself where it is normal already.
func (f Form) String(s string) string {
	var b Buffer
	if b.isNormal(f, s) {
		return s
	}
	return string(b.Append(make([]byte, 0, len(s)+len(s)/8), f, s))
}

// IsNormal reports whether s is well-formed and in the form.
func (f Form) IsNormal(s string) bool {
	var b Buffer
	return b.isNormal(f, s)
}
