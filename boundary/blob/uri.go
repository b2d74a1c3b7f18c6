// SPDX-License-Identifier: Apache-2.0

package blob

import "strings"

// A DataURI is what readers take a data: URI for.
type DataURI struct {
	// Contents are what readers get: one, or two where some of them decode base64
	// and others do not.
	Contents []Content
	// Ambiguous: some readers get bytes that are not among Contents.
	Ambiguous bool

	MediaType string // with its parameters

	body     string
	isBase64 bool
}

// Plain returns the bytes of a URI with one content.
func (u *DataURI) Plain() []byte {
	if u.isBase64 {
		digits, _ := unescapeDigits(u.body)
		return Decode(digits)
	}
	return unescape(u.body)
}

// ParseDataURI reads s as browsers, Python's urllib and the packages of npm do. ok is false
// where none of them takes s for a data: URI.
func ParseDataURI(s string) (u DataURI, ok bool) {
	if !HasDataScheme(s) {
		return DataURI{}, false
	}
	s = squeeze(s)
	const scheme = "data:"
	if len(s) < len(scheme) || !strings.EqualFold(s[:len(scheme)], scheme) {
		return DataURI{}, false
	}
	head, body, found := strings.Cut(s[len(scheme):], ",")
	if !found {
		// A reader that decodes the whole URI first finds a comma in %2C.
		return DataURI{Ambiguous: strings.Contains(strings.ToLower(head), "%2c")}, true
	}
	decodedHead := strings.ToLower(strings.ReplaceAll(string(unescape(head)), " ", ""))
	kind, isBase64 := cutBase64(head)
	u.MediaType, u.body, u.isBase64 = kind, body, isBase64
	t, charsets := parseType(kind)
	class := classOf(t)
	if class == binary {
		class = unnamed // what it calls itself binds no reader
	}
	if !strings.Contains(decodedHead, "base64") {
		plain := unescape(body)
		u.Contents = []Content{read(plain, class, charsets)}
		// Careless readers take what stands behind the comma for base64 in any case.
		if text := string(plain); len(text) >= minCareless && FormOf(text) != Ambiguous {
			if c := readBase64(text, unnamed, nil); len(c.Readings) > 0 {
				u.Contents = append(u.Contents, c)
			}
		}
		return u, true
	}
	if !isBase64 || strings.Count(decodedHead, "base64") != 1 || strings.ContainsAny(head, "% ") {
		// Only some readers decode.
		u.Contents = append(u.Contents, read(unescape(body), class, charsets))
	}
	digits, plain := unescapeDigits(body)
	switch form := FormOf(digits); {
	case !plain || form >= URLSafe:
		u.Ambiguous = true
	default:
		u.Contents = append(u.Contents, readBase64(digits, class, charsets))
	}
	return u, true
}

// minCareless is shorter than any control token in base64.
const minCareless = 4

// Canonical returns the spelling that all readers take for plain of that type.
func (u *DataURI) Canonical(plain []byte) string {
	return "data:" + u.MediaType + ";base64," + Encode(plain)
}

// HasDataScheme finds most strings that are no data: URI at their first characters.
func HasDataScheme(s string) bool {
	for i := range len(s) {
		if c := s[i]; c > ' ' {
			return c|0x20 == 'd' && strings.IndexByte(s[i:min(len(s), i+64)], ':') > 0
		}
	}
	return false
}

// squeeze does what a parser of URLs does first: controls and spaces around it go, tabs and line
// ends go everywhere.
func squeeze(s string) string {
	s = strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
	if !strings.ContainsAny(s, "\t\n\r") {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\r' {
			return -1
		}
		return r
	}, s)
}

// cutBase64 returns the media type before ";base64" at the end of head.
func cutBase64(head string) (kind string, isBase64 bool) {
	const flag = "base64"
	trimmed := strings.TrimRight(head, " ")
	if n := len(trimmed) - len(flag); n > 0 && strings.EqualFold(trimmed[n:], flag) {
		if before := strings.TrimRight(trimmed[:n], " "); strings.HasSuffix(before, ";") {
			return before[:len(before)-1], true
		}
	}
	return head, false
}

// unescape decodes percent escapes; what is not one stays as it is.
func unescape(s string) []byte {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if c, isEscape := escape(s[i:]); isEscape {
			b = append(b, c)
			i += 2
		} else {
			b = append(b, s[i])
		}
	}
	return b
}

// unescapeDigits decodes the escapes of characters that a maker of URIs must escape. plain is false
// where letters and digits are escaped: a reader that does not unescape gets other bytes.
func unescapeDigits(s string) (digits string, plain bool) {
	if strings.IndexByte(s, '%') < 0 {
		return s, true
	}
	plain = true
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c, isEscape := escape(s[i:])
		if !isEscape {
			b.WriteByte(s[i])
			continue
		}
		plain = plain && strings.IndexByte("+/= \r\n", c) >= 0
		b.WriteByte(c)
		i += 2
	}
	return b.String(), plain
}

// escape reads a percent escape at the beginning of s.
func escape(s string) (c byte, ok bool) {
	if len(s) < 3 || s[0] != '%' {
		return 0, false
	}
	for _, d := range []byte(s[1:3]) {
		switch {
		case '0' <= d && d <= '9':
			c = c<<4 | (d - '0')
		case 'a' <= d|0x20 && d|0x20 <= 'f':
			c = c<<4 | (d | 0x20 - 'a' + 10)
		default:
			return 0, false
		}
	}
	return c, true
}
