// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// The view is how control tokens are looked for: compatibility decomposition,
// hidden characters and combining marks left out, confusable characters as the
// ASCII that they are taken for. It depends on each character alone, so it is the
// same for the raw, the NFC and the NFKC form of a text. spec: scrub/4

// A symbol is one character of the view.
type symbol struct {
	start, end uint32 // bytes of the text
	r          rune   // 0 for bytes that are no UTF-8
	char       byte   // ASCII, or other
	fold       byte   // char in lower case, with look-alikes within ASCII as one
	exact      bool   // the text spells it with this very byte
}

const other = 0 // a character that is no ASCII character's double

// fold makes one of what is alike within ASCII: letters of either case, i l 1 |
// and o 0. A confusable's prototype may be any of them.
var fold = func() (t [128]byte) {
	for c := range t {
		t[c] = byte(c)
		if 'A' <= c && c <= 'Z' {
			t[c] = byte(c) | 0x20
		}
	}
	for _, c := range "IlL1|" {
		t[c] = 'i'
	}
	t['0'] = 'o'
	return t
}()

// lookalike adds to the confusables what frames a token to the eye and whose
// prototype is a letter or no ASCII character. The brackets of mathematics and of
// Japanese are not among it: they are honest punctuation. spec: scrub/4.2
func lookalike(r rune) byte {
	switch r {
	case 0x01C0, 0x2223, 0x2758, 0x23D0, 0x05C0, 0x2502, 0x2503, 0x00A6, 0x23B8, 0x23B9, 0x2016, 0x01C1, 0x2551:
		return '|'
	case 0x2039, 0x276E, 0x226E:
		return '<'
	case 0x203A, 0x276F, 0x226F:
		return '>'
	case 0x2581, 0x02CD:
		return '_'
	}
	return other
}

// appendView appends the symbols of the character s[start:end], which is not
// ASCII, to dst. A character without symbols is hidden or a mark.
func appendView(dst []symbol, b *ucd.Buffer, s string, start, end int) []symbol {
	b.Reset()
	b.Decompose(ucd.NFKC, s[start:end], start)
	for i := range b.Cells {
		r := b.Cells[i].R
		x := symbol{start: uint32(start), end: uint32(end), r: r}
		if r < 0x80 {
			x.char = byte(r)
		} else if prop := ucd.Of(r); prop&(ucd.Hidden|ucd.Mark) != 0 {
			continue
		} else if x.char = lookalike(r); x.char == other && prop&ucd.Confusable != 0 {
			x.char, _ = ucd.ASCIIPrototype(r)
		}
		x.fold = fold[x.char]
		dst = append(dst, x)
	}
	return dst
}

// read leaves in view what stands at s[i] and returns its length.
func (m *matcher) read(s string, i int) int {
	m.view = m.view[:0]
	if s[i] != '&' {
		_, w, ok := ucd.Decode(s[i:])
		if !ok {
			m.view = append(m.view, symbol{start: uint32(i), end: uint32(i + w)})
		} else {
			m.view = appendView(m.view, m.buf, s, i, i+w)
		}
		return w
	}
	r, w := reference(s[i:])
	if w == 0 {
		r, w = bareAngle(s[i:])
	}
	if w == 0 || hiddenReference(r) {
		w = max(w, 1)
		if w == 1 {
			m.view = append(m.view, symbol{uint32(i), uint32(i + 1), '&', '&', '&', true})
		}
		return w
	}
	m.view = appendView(m.view, m.buf, string(r), 0, len(string(r)))
	for k := range m.view {
		m.view[k].start, m.view[k].end = uint32(i), uint32(i+w)
	}
	return w
}
