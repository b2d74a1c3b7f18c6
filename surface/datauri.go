package surface

import (
	"encoding/base64"
	"net/url"
	"strings"
	"unicode/utf8"
)

// inside says what a string holds that looks like a data URI.
type inside uint8

const (
	noDataURI inside = iota
	textInside
	blobInside
)

// insideDataURI returns the text of a data URI: whatever decodes to UTF-8 is text,
// since what it calls itself binds nobody. Other content is a blob.
func insideDataURI(s string) (string, inside) {
	const scheme = "data:"
	if len(s) < len(scheme) || s[4] != ':' || !strings.EqualFold(s[:len(scheme)], scheme) {
		return "", noDataURI
	}
	head, body, ok := strings.Cut(s[len(scheme):], ",")
	if !ok {
		return "", noDataURI
	}
	text, err := url.PathUnescape(body)
	if err != nil {
		text = body // it stands there as it is, and was looked at so
	}
	if strings.HasSuffix(strings.ToLower(strings.TrimRight(head, " ")), ";base64") {
		raw, ok := decodeBase64(text)
		if !ok {
			return "", blobInside
		}
		text = string(raw)
	}
	if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		return "", blobInside
	}
	return text, textInside
}

// decodeBase64 reads either alphabet, with or without padding and white space.
func decodeBase64(s string) ([]byte, bool) {
	s = strings.Map(func(r rune) rune {
		switch r {
		case ' ', '\t', '\r', '\n', '=':
			return -1
		case '-':
			return '+'
		case '_':
			return '/'
		}
		return r
	}, s)
	raw, err := base64.RawStdEncoding.DecodeString(s)
	return raw, err == nil
}
