// SPDX-License-Identifier: Apache-2.0

package ucd

// ASCIIPrototype returns the one ASCII character that r is taken for. It is true
// exactly where Of(r)&Confusable is set: r is not ASCII and is unchanged by NFKC;
// normalise first. 562 code points.
func ASCIIPrototype(r rune) (byte, bool) {
	if Of(r)&Confusable == 0 {
		return 0, false
	}
	return prototypes[lookupPrototype(r)+1], true
}

// Prototype returns what UTS #39 maps r to, "" if it has no mapping. ASCII has
// eight: % 0 1 I " ` m |.
func Prototype(r rune) string {
	at := int(lookupPrototype(r))
	return prototypes[at+1 : at+1+int(prototypes[at])]
}

// skeleton turns the canonically decomposed Cells into their UTS #39 skeleton:
// each replaced by its prototype, decomposed again and put in order. It is for
// comparing, never for showing. Hidden characters are kept: remove them before.
func (b *Buffer) skeleton() {
	b.spare = b.spare[:0]
	for _, x := range b.Cells {
		to := Prototype(x.R)
		if to == "" {
			b.spare = append(b.spare, x)
			continue
		}
		for len(to) > 0 {
			r, w, _ := Decode(to)
			b.spare = appendDecomposed(b.spare, NFC, Cell{R: r, Start: x.Start, End: x.End})
			to = to[w:]
		}
	}
	b.Cells, b.spare = b.spare, b.Cells
	b.order(0)
}

// AppendSkeleton appends the UTS #39 skeleton of s to dst.
func AppendSkeleton(dst []byte, s string) []byte {
	var b Buffer
	return b.AppendSkeleton(dst, s)
}

// AppendSkeleton is the same with b's memory. It leaves Cells empty.
func (b *Buffer) AppendSkeleton(dst []byte, s string) []byte {
	b.Reset()
	b.Decompose(NFC, s, 0)
	b.skeleton()
	dst = b.AppendTo(dst)
	b.Reset()
	return dst
}

// CCC returns the canonical combining class of r.
func CCC(r rune) uint8 { return lookupCCC(r) }
