package gateway

import (
	"encoding/base64"
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/finding"
	"github.com/pellucid-mcp/pellucid/internal/strictjson"
)

// blob treats base64. Text is decoded, scrubbed and encoded again; what is no
// text is reported as not inspected; what is no base64 is a string like any other.
func (w *walker) blob(v strictjson.Value, mimeType string) finding.Code {
	s := v.Text()
	kind := blobKind(mimeType)
	if kind == binary {
		if !isBase64(s) {
			w.scrub(v, w.text)
			return ok
		}
		w.skip(finding.BlobNotInspected)
		return ok
	}
	plain, encoding, err := decodeBase64(s)
	if err != nil {
		w.scrub(v, w.text)
		return ok
	}
	if kind == unnamed && !utf8.Valid(plain) {
		w.skip(finding.BlobNotInspected)
		return ok
	}
	w.inspected++
	w.text.Scrub(asString(plain), &w.res)
	w.noteEvents()
	if w.res.Changed() {
		w.edited = true
		w.edits.ReplaceText(v, encoding.EncodeToString([]byte(w.res.Clean.String())))
	}
	return ok
}

type blobClass uint8

const (
	unnamed blobClass = iota // no mime type: text if it is UTF-8
	binary
	textual
)

// textTypes are applications' types whose octets a model may read.
var textTypes = []string{"application/json", "application/xml", "application/javascript", "application/ecmascript",
	"application/x-javascript", "application/yaml", "application/x-yaml", "application/toml", "application/sql",
	"application/graphql", "application/xhtml", "application/rtf", "application/x-sh", "application/x-httpd-php",
	"application/typescript", "application/x-ndjson", "application/jsonl", "application/x-www-form-urlencoded",
	"application/x-tex", "application/x-latex", "application/x-subrip", "application/csv", "message/", "model/vnd.mermaid"}

// blobKind says how octets of a mime type are read. A type that cannot be
// parsed names none; text in another character set than UTF-8 is binary to us.
func blobKind(mimeType string) blobClass {
	t, params, err := mime.ParseMediaType(mimeType)
	if err != nil || t == "" {
		return unnamed
	}
	text := strings.HasPrefix(t, "text/")
	for _, suffix := range []string{"+xml", "+json", "+yaml", "+json-seq", "+csv"} {
		text = text || strings.HasSuffix(t, suffix)
	}
	for _, known := range textTypes {
		text = text || t == known || strings.HasSuffix(known, "/") && strings.HasPrefix(t, known)
	}
	if !text {
		return binary
	}
	switch strings.ToLower(params["charset"]) {
	case "", "utf-8", "utf8", "us-ascii", "ascii":
		return textual
	}
	return binary
}

// isBase64 reports whether s consists of base64's characters and line ends only.
func isBase64(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '+', c == '/', c == '=', c == '-', c == '_', c == '\n', c == '\r':
		default:
			return false
		}
	}
	return true
}

// decodeBase64 accepts the alphabets and paddings that readers accept, and
// returns the one in which s was written.
func decodeBase64(s string) (plain []byte, e *base64.Encoding, err error) {
	for _, e = range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if plain, err = e.DecodeString(s); err == nil {
			return plain, e, nil
		}
	}
	return nil, nil, err
}
