// SPDX-License-Identifier: Apache-2.0

package review

import (
	"iter"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A placed text is a string of a body with the place where it stands. Names that a
// third party chose are quoted in it.
type placed struct{ place, text string }

// texts are the strings of a body, the names of members too where they hide something.
// What is no JSON is one text.
func texts(body []byte) iter.Seq[placed] {
	return func(yield func(placed) bool) {
		var doc strictjson.Doc
		switch {
		case body == nil:
		case doc.Reset(body, strictjson.Limits{MendSurrogates: true}) != nil:
			yield(placed{"the whole", string(body)})
		default:
			eachText("", doc.Root(), yield)
		}
	}
}

// maxPlace bounds what is shown of a path, in bytes: the end of it.
const maxPlace = 512

func eachText(place string, v strictjson.Value, yield func(placed) bool) bool {
	if len(place) > maxPlace {
		place = "\u2026" + place[len(place)-maxPlace/2:]
	}
	switch v.Kind() {
	case '{':
		for name, m := range v.Members() {
			text := name.Text()
			at := strings.TrimPrefix(place+"/"+shownName(text), "/")
			if terminal.Printable(text) != text && !yield(placed{"name at " + at, text}) || !eachText(at, m, yield) {
				return false
			}
		}
	case '[':
		n := 0
		for e := range v.Elements() {
			if !eachText(place+"/"+strconv.Itoa(n), e, yield) {
				return false
			}
			n++
		}
	case '"':
		return yield(placed{place, v.Text()})
	}
	return true
}

// shownName is a member's name on a path: as it is where it is a plain word.
func shownName(s string) string {
	plain := s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.$") == ""
	if plain {
		return s
	}
	return finding.Quote(s)
}
