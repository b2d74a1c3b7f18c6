// SPDX-License-Identifier: Apache-2.0

package href

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// maxLevels is how often a URI may be percent-decoded until nothing is left to decode.
const maxLevels = 4

// delimiters must not come out of a triplet, or of a character that NFKC turns
// into one: readers would part the URI in different places.
const delimiters = `/?#@:\`

// A decoded is a text after some levels of decoding, with the offset in the URI
// from which each byte stems.
type decoded struct {
	text []byte
	from []uint16
}

// checkDecoding follows what readers may decode s[start:] to, level by level.
// Each level must be UTF-8, hold no hidden character or control, and no
// delimiter that was not there before.
func checkDecoding(s string, start int) error {
	first := strings.IndexByte(s[start:], '%')
	if first < 0 {
		return nil
	}
	start += first // nothing before is ever decoded
	d := decoded{make([]byte, len(s)-start), make([]uint16, len(s)-start)}
	copy(d.text, s[start:])
	for i := range d.from {
		d.from[i] = uint16(start + i)
	}
	for level := 0; ; level++ {
		from, changed, err := d.decode(level == maxLevels)
		if err != nil {
			return err
		}
		if !changed {
			return nil
		}
		if err := d.check(from); err != nil {
			return err
		}
	}
}

// decode replaces the percent triplets of d, in place, and returns the index of
// the first byte that came out of one. A "%" without two digits behind it, which
// only a decoded text can hold, stands for itself. The last level must not find
// any triplet.
func (d *decoded) decode(last bool) (first int, changed bool, err error) {
	n := 0
	for i := 0; i < len(d.text); n++ {
		c, size := d.text[i], 1
		d.from[n] = d.from[i]
		if c == '%' && i+2 < len(d.text) && isHex(d.text[i+1]) && isHex(d.text[i+2]) {
			c, size = hexValue(d.text[i+1])<<4|hexValue(d.text[i+2]), 3
			if last || strings.IndexByte(delimiters, c) >= 0 {
				return 0, true, refuse(finding.URIDecodes, int(d.from[n]))
			}
			if !changed {
				first, changed = n, true
			}
		}
		d.text[n] = c
		i += size
	}
	d.text, d.from = d.text[:n], d.from[:n]
	return first, changed, nil
}

func hexValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// check checks the characters of d from index i on.
func (d *decoded) check(i int) error {
	for text := string(d.text); i < len(text); {
		r, width, ok := ucd.Decode(text[i:])
		if !ok {
			return refuse(finding.URIDecodes, int(d.from[i]))
		}
		if hidden(r) {
			return refuse(finding.URIHidden, int(d.from[i]))
		}
		if ucd.Of(r)&ucd.NFKCActive != 0 {
			form := ucd.NFKC.String(text[i : i+width])
			if strings.ContainsAny(form, delimiters) {
				return refuse(finding.URIDecodes, int(d.from[i]))
			}
		}
		i += width
	}
	return nil
}
