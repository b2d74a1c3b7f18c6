// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/boundary/blob"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// tokensOf is an upper estimate of the tokens that a text costs: real tokenizers
// need about one for four bytes of English or JSON, and up to two for a character
// of other scripts.
func tokensOf(s string) int {
	ascii, other := 0, 0
	for _, r := range s {
		if r < utf8.RuneSelf {
			ascii++
		} else {
			other++
		}
	}
	return (ascii+2)/3 + 2*other
}

// overlap is how much of a piece the next one repeats, in bytes, so that no
// sentence is seen only in halves.
const overlap = 512

// chunks cuts a surface into texts of about budget tokens each. An item stands in
// one of them where it fits, behind a line that says what it is; a longer one is
// cut into overlapping pieces. Nothing is left out. spec: surface/8.2
func chunks(items []Item, budget int) []string {
	var out []string
	var b strings.Builder
	used := 0
	put := func(entry string) {
		cost := tokensOf(entry)
		if used > 0 && used+cost > budget {
			out = append(out, b.String())
			b.Reset()
			used = 0
		}
		b.WriteString(entry)
		used += cost
	}
	for _, it := range items {
		head := it.Kind.String() + " " + finding.Quote(it.Name)
		text := readable(it)
		pieces := cut(text, max(budget-tokensOf(head)-64, minPiece))
		for i, piece := range pieces {
			label := head
			if len(pieces) > 1 {
				label += fmt.Sprintf(" (piece %d of %d)", i+1, len(pieces))
			}
			put(label + "\n" + piece + "\n\n")
		}
	}
	if used > 0 {
		out = append(out, b.String())
	}
	return out
}

// minPiece keeps pieces longer than what they overlap by, in tokens.
const minPiece = 4 * overlap

// cut cuts s into pieces of at most budget tokens.
func cut(s string, budget int) (pieces []string) {
	start, cost := 0, 0 // cost in thirds of a token
	for i := 0; i < len(s); {
		_, w := utf8.DecodeRuneInString(s[i:])
		c := 1
		if w > 1 {
			c = 6
		}
		if cost += c; cost > 3*budget {
			pieces = append(pieces, s[start:i])
			start = max(start+1, i-overlap)
			for !utf8.RuneStart(s[start]) {
				start++
			}
			i, cost = start, 0
			continue
		}
		i += w
	}
	return append(pieces, s[start:])
}

// readable is an item as a reviewer reads it: its canonical JSON, in which hidden
// characters are escapes, the text of a data URI is plain and a blob is a note of
// its size. The fingerprint covers what is left out here.
func readable(it Item) string {
	var doc strictjson.Doc
	if doc.Reset(it.JSON, itemLimits) != nil {
		return escapeHidden(string(it.JSON))
	}
	var e strictjson.Edits
	walk(doc.Root(), nil, func(v strictjson.Value, _ *trail, isName bool) {
		if isName {
			return
		}
		switch inner, form := insideDataURI(v.Text()); form {
		case textInside:
			text := strings.Join(slices.Compact(inner), "\n")
			if strings.Contains(v.Text(), text) {
				return
			}
			e.ReplaceText(v, "data URI that decodes to: "+text)
		case blobInside:
			if text := v.Text(); isPicture(text) {
				e.ReplaceText(v, "data URI of "+strconv.Itoa(len(text))+" bytes that holds no text")
			}
		}
	})
	return escapeHidden(string(e.Apply(nil, doc.Root())))
}

// isPicture reports whether a data URI whose content is no text also says so, in
// an encoding that no model reads. Any other is shown as it stands.
func isPicture(s string) bool {
	head, body, _ := strings.Cut(strings.ToLower(s[len("data:"):]), ",")
	if blob.FormOf(s[len(s)-len(body):]) == blob.Ambiguous || !strings.HasSuffix(head, ";base64") {
		return false
	}
	kind, _, _ := strings.Cut(head, "/")
	return kind == "image" || kind == "audio" || kind == "video" || kind == "font"
}

// escapeHidden writes what a reader would not see as JSON escapes.
func escapeHidden(s string) string {
	if at, _, _ := ucd.Scan(s, 0, ucd.Hidden); at == len(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, w, _ := ucd.Decode(s[i:])
		switch {
		case r == '\n' || ucd.Of(r)&ucd.Hidden == 0:
			b.WriteString(s[i : i+w])
		case r > 0xFFFF:
			hi, lo := 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += w
	}
	return b.String()
}
