package frame

import "github.com/pellucid-mcp/pellucid/internal/ucd"

// unlike is what a character folds to that resembles nothing in a tag.
const unlike = 0

// fold appends what a reader may take the one character s for: it is seen
// through NFKC and its UTS #39 skeleton, without regard to case. Whatever is
// hidden or blank, a mark on a letter, and a dash or line between words do not
// count. b is scratch.
func fold(dst []byte, b *ucd.Buffer, s string) []byte {
	if len(s) == 1 {
		return foldASCII(dst, s[0])
	}
	if p, _ := ucd.Peek(s, 0); p&(ucd.Hidden|ucd.Mark) != 0 {
		return dst
	}
	b.Reset()
	b.Decompose(ucd.NFKC, s, 0)
	b.Skeleton()
	for _, c := range b.Cells {
		switch {
		case c.R < 0x80:
			dst = foldASCII(dst, byte(c.R))
		case ucd.Of(c.R)&(ucd.Hidden|ucd.Mark) == 0:
			dst = append(dst, unlike)
		}
	}
	return dst
}

// foldASCII is fold for one octet. Of the ASCII characters that have an ASCII
// look-alike, i stands for I, l, 1 and |, which also makes upper and lower case
// one; an octet that is not ASCII is ill-formed.
func foldASCII(dst []byte, c byte) []byte {
	switch {
	case c >= 0x80:
		return append(dst, unlike)
	case c <= ' ', c == 0x7F, c == '-', c == '_':
		return dst
	case c == '1', c == '|', c|0x20 == 'l', c|0x20 == 'i':
		return append(dst, 'i')
	case c == '0':
		return append(dst, 'o')
	case c|0x20 == 'm':
		return append(dst, 'r', 'n')
	case c == '\\':
		return append(dst, '/')
	case 'A' <= c && c <= 'Z':
		return append(dst, c|0x20)
	}
	return append(dst, c)
}
