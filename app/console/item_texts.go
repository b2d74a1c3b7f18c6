// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"encoding/hex"
	"slices"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/review"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// texts fills the page with the texts of the body, as they came and as they would be delivered.
func (v *itemView) texts(it *hold.Item, s *scrub.Scrubber) {
	switch {
	case it.Sealed():
		v.Sealed = true
		return
	case it.Body == nil:
		v.Gone = map[hold.State]Own{hold.Taken: "it was delivered", hold.Denied: "the item was denied, and its content destroyed", hold.Expired: "the item expired, and its content was destroyed"}[it.State]
		if v.Gone == "" {
			v.Gone = "it is not in the store any more"
		}
		return
	}
	left, more := maxItemText, 0
	for place, text := range review.Texts(it.Body) {
		if len(v.Texts) == maxTexts || left <= 0 {
			more++
			continue
		}
		left -= len(text)
		for _, h := range scrub.Reveal(text) {
			if h.Message != "" && len(v.Hidden) < 20 {
				v.Hidden = append(v.Hidden, hiddenView{marked.Of(h.Message), kindWord(h.Kind), marked.Identifier(place), bytesBetween(h.Start, h.End)})
			}
		}
		v.Texts = append(v.Texts, v.text(s, place, text))
	}
	slices.SortStableFunc(v.Texts, func(a, b textView) int { // what was found comes first
		return cmp.Compare(min(len(b.Ribbon.Marks), 1), min(len(a.Ribbon.Marks), 1))
	})
	if more > 0 {
		v.More = things(more, "text")
	}
}

func (v *itemView) text(s *scrub.Scrubber, place, text string) textView {
	out := textView{Place: marked.Identifier(place)}
	if v.Bytes {
		out.Received = marked.Of(hex.Dump([]byte(text[:min(len(text), maxBytes)])))
		return out
	}
	var r scrub.Result
	s.Scrub(text, &r)
	out.Ribbon = ribbonOf(r.Edits, len(text))
	if v.Read {
		out.Received = marked.Unfolded(text, r.Edits)
	} else {
		out.Received = marked.Received(text, r.Edits)
	}
	delivered := marked.Delivered(r.Clean.String(), r.Edits)
	out.Delivered = &delivered
	return out
}

// asked fills the page with the question, or with why it is not there.
func (v *itemView) asked(a review.Asked) {
	if a.Question == nil {
		v.AskedNo = own(a.Why)
		return
	}
	v.Context = len(a.Context) > 0
	body := []byte(a.Arguments)
	if v.Context {
		body = a.Context
	} else if a.Arguments == "" && a.Bytes > 0 {
		v.AskedLen = size(int64(a.Bytes))
		return
	}
	for place, text := range review.Texts(body) {
		if len(v.Asked) < maxTexts {
			v.Asked = append(v.Asked, textView{Place: marked.Identifier(place), Received: marked.Of(text)})
		}
	}
}
