// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"iter"
	"strings"
)

// Found is a fence, or what looks like a part of one, in a larger text.
type Found struct {
	Start, End int // bytes [Start, End) of the text
	Origin     Origin
	Body       string // as delivered; "" unless Verified

	// Verified: k made this fence, with this origin and body. Otherwise
	// [Start, End) is a tag that is not part of a verified fence: the text around
	// it is untrusted and of unknown origin.
	Verified bool
}

// Scan finds every fence and every look-alike of a fence's tag in text, in
// order and without overlap. It is linear in text. Text in which a fence was
// escaped (as in JSON) must be unescaped first.
func (k Key) Scan(text string) iter.Seq[Found] {
	return func(yield func(Found) bool) {
		done := 0 // what was reported ends here
		for at, w := next(text, 0, fenceTag); w > 0; at, w = next(text, done, fenceTag) {
			f, ok := k.fenceAt(text, at, done)
			if !ok {
				f = Found{Start: at, End: at + w}
			}
			done = f.End
			if !yield(f) {
				return
			}
		}
	}
}

// fenceAt verifies the fence whose opening tag begins at text[at:] and whose
// notice begins at or behind from.
func (k Key) fenceAt(text string, at, from int) (Found, bool) {
	if !strings.HasSuffix(text[from:at], Notice+"\n") {
		return Found{}, false
	}
	h, rest, ok := parseHead(text[at:])
	if !ok {
		return Found{}, false
	}
	// A body holds no look-alike, so the next one is the closing tag or there is
	// none; "\n</" is where it begins, "<" is what next finds.
	bodyAt := len(text) - len(rest)
	angle, _ := next(text, bodyAt, fenceTag)
	bodyEnd, end := angle-1, angle-1+closingLen
	if bodyEnd < bodyAt || end > len(text) || !h.closedBy(text[bodyEnd:end]) || !k.made(h, text[bodyAt:bodyEnd]) {
		return Found{}, false
	}
	return Found{
		Start: at - len(Notice) - 1, End: end,
		Origin: h.origin, Body: text[bodyAt:bodyEnd], Verified: true,
	}, true
}
