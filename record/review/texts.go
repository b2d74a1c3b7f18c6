// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"iter"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A placed text is a value of a body with the place where it stands. Names that a
// third party chose are quoted in the place.
type placed struct{ place, text string }

// texts are the values of a body: strings as they read; numbers, true, false, null and empty
// objects and arrays as they are spelled. A reviewer who releases a call has to see all of its
// arguments, not only its words. The names of members are among them where they hide something.
// A body that is not JSON is one text.
func texts(body []byte) iter.Seq[placed] {
	return func(yield func(placed) bool) {
		var doc strictjson.Doc
		switch {
		case body == nil:
		case doc.Reset(body, strictjson.Limits{MendSurrogates: true}) != nil:
			yield(placed{whole, string(body)})
		default:
			eachText("", doc.Root(), yield)
		}
	}
}

// Texts are the values of a body with their places, as a reviewer reads them. The values are third-party text;
// in a place, names that a third party chose are quoted.
func Texts(body []byte) iter.Seq2[string, string] {
	return func(yield func(place, text string) bool) {
		for t := range texts(body) {
			if !yield(t.place, t.text) {
				return
			}
		}
	}
}

// Ours reports whether a place of a delivered text is in a member of _meta that Pellucid has added: no server says it.
func Ours(place string) bool { return strings.HasPrefix(place, `_meta/"`+frame.MetaPrefix) }

// whole is the place of a body that is one value, or is not JSON.
const whole = "the whole"

// maxPlace bounds what is shown of a path, in bytes: the end of it.
const maxPlace = 512

func eachText(place string, v strictjson.Value, yield func(placed) bool) bool {
	if len(place) > maxPlace {
		place = "\u2026" + place[len(place)-maxPlace/2:]
	}
	switch v.Kind() {
	case '{':
		empty := true
		for name, m := range v.Members() {
			empty = false
			text := name.Text()
			at := strings.TrimPrefix(place+"/"+shownName(text), "/")
			if terminal.Printable(text) != text && !yield(placed{"name at " + at, text}) || !eachText(at, m, yield) {
				return false
			}
		}
		return !empty || yield(placed{cmp.Or(place, whole), "{}"})
	case '[':
		n := 0
		for e := range v.Elements() {
			if !eachText(place+"/"+strconv.Itoa(n), e, yield) {
				return false
			}
			n++
		}
		return n > 0 || yield(placed{cmp.Or(place, whole), "[]"})
	case '"':
		return yield(placed{cmp.Or(place, whole), v.Text()})
	}
	return yield(placed{cmp.Or(place, whole), string(v.Raw())})
}

// shownName is a member's name on a path: as it is where it is a plain word.
func shownName(s string) string {
	plain := s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.$") == ""
	if plain {
		return s
	}
	return finding.Quote(s)
}
