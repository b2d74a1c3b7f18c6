// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"crypto/subtle"
	"errors"
	"iter"
	"strings"
)

// ErrUnverified means that a text is not a fence that this key made: it is
// untrusted and its origin is unknown. There is one such error, so that it
// tells a forger nothing.
var ErrUnverified = errors.New("frame: open fence: not verified: text is untrusted, origin unknown")

// Open checks that fenced is exactly one fence made with k and returns its
// labels and its body as delivered. Any deviation is ErrUnverified.
//
// first is the origin of the first fence of the result, which Open has returned before. It is
// used where fenced is a further fence and so has no labels of its own. It need not be
// trusted: the nonce covers the labels.
func (k Key) Open(fenced string, first Origin) (Origin, string, error) {
	h, rest, ok := parseHead(fenced, first)
	if !ok {
		return Origin{}, "", ErrUnverified
	}
	var f Form
	before, strict := strings.CutSuffix(rest, strictLine)
	f.Strict = strict
	end := len(before)
	if strings.HasSuffix(before, cutEnd) {
		end = max(0, strings.LastIndexByte(before, '\n'))
		if f.Cut, _, ok = parseCut(before[end:]); !ok {
			return Origin{}, "", ErrUnverified
		}
	}
	bodyEnd := end - closingLen
	if bodyEnd < 0 || !h.closedBy(rest[bodyEnd:end]) || !k.isSealed(h, DigestOf(rest[:bodyEnd]), f) {
		return Origin{}, "", ErrUnverified
	}
	return h.origin, rest[:bodyEnd], nil
}

// Found is a fence, or what looks like a part of one, in a larger text.
type Found struct {
	Start, End int // bytes [Start, End) of the text
	Origin     Origin
	Body       string // as delivered; "" unless Verified
	Cut        Cut    // what the fence says of the body
	Strict     bool   // the fence says that the result was treated more strictly

	// Verified: k made this fence, with this origin and body. Otherwise
	// [Start, End) is a tag that is not part of a verified fence: the text around
	// it is untrusted and of unknown origin.
	Verified bool
}

// Scan finds every fence and every look-alike of a fence's tag in text, in
// order and without overlap. It is linear in text. Text in which a fence was
// escaped (as in JSON) must be unescaped first.
//
// A further fence is verified with the origin of the verified fence before it. first is that
// origin for a fence at the beginning of text: of a result of several texts, the Origin of the
// last fence that was found in the texts before. It need not be trusted.
func (k Key) Scan(text string, first Origin) iter.Seq[Found] {
	return func(yield func(Found) bool) {
		done, before := 0, first // what was reported ends at done
		for at, w := next(text, 0, fenceTag); w > 0; at, w = next(text, done, fenceTag) {
			f, ok := k.fenceAt(text, at, done, before)
			if ok {
				before = f.Origin
			} else {
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
// notice, if it has one, begins at or behind from.
func (k Key) fenceAt(text string, at, from int, first Origin) (Found, bool) {
	f := Found{Start: at, Verified: true}
	if strings.HasSuffix(text[from:at], Notice+"\n") {
		f.Start -= len(Notice) + 1
	}
	h, rest, ok := parseHead(text[f.Start:], first)
	if !ok {
		return Found{}, false
	}
	// A body holds no look-alike, so the next one is the closing tag or there is
	// none; "\n</" is where it begins, "<" is what next finds.
	bodyAt := len(text) - len(rest)
	angle, _ := next(text, bodyAt, fenceTag)
	bodyEnd := angle - 1
	f.End = bodyEnd + closingLen
	if bodyEnd < bodyAt || f.End > len(text) || !h.closedBy(text[bodyEnd:f.End]) {
		return Found{}, false
	}
	f.Origin, f.Body = h.origin, text[bodyAt:bodyEnd]
	d := DigestOf(f.Body)
	cut, _, _ := parseCut(text[f.End:])
	for _, form := range [...]Form{{Cut: cut, Strict: true}, {Cut: cut}, {}} {
		if lines := string(form.appendLines(nil)); strings.HasPrefix(text[f.End:], lines) && k.isSealed(h, d, form) {
			f.Cut, f.Strict, f.End = form.Cut, form.Strict, f.End+len(lines)
			return f, true
		}
	}
	return Found{}, false
}

// head is an opening tag, parsed and not yet verified.
type head struct {
	origin Origin
	nonce  string // hex
}

func (h head) closedBy(s string) bool {
	s, ok := strings.CutPrefix(s, closeStart)
	return ok && strings.HasPrefix(s, h.nonce) && s[len(h.nonce):] == closeEnd
}

// isSealed reports whether k, or a key that k also accepts, made the fence with head h around a body with digest d.
func (k Key) isSealed(h head, d Digest, f Form) bool {
	if k.hasNonce(h, d, f) {
		return true
	}
	if k.also != nil {
		for _, other := range *k.also {
			if other.hasNonce(h, d, f) {
				return true
			}
		}
	}
	return false
}

func (k Key) hasNonce(h head, d Digest, f Form) bool {
	nonce := k.nonce(h.origin, d, f)
	return subtle.ConstantTimeCompare(nonce[:], []byte(h.nonce)) == 1
}

// parseHead parses a notice and an opening tag with labels, or an opening tag without, in their
// one spelling, up to and with the line feed behind it. The origin of a tag without labels is
// first.
func parseHead(s string, first Origin) (h head, rest string, ok bool) {
	s, labelled := strings.CutPrefix(s, Notice+"\n")
	s, ok = strings.CutPrefix(s, openStart)
	if !ok || len(s) < nonceLen || !labelled && first == (Origin{}) {
		return head{}, "", false
	}
	h.nonce, h.origin = s[:nonceLen], first.Labels()
	if s, ok = strings.CutPrefix(s[nonceLen:], attrMark); !ok {
		return head{}, "", false
	}
	if labelled {
		if h.origin, s, ok = parseLabels(s); !ok {
			return head{}, "", false
		}
	}
	rest, ok = strings.CutPrefix(s, openEnd)
	return h, rest, ok
}

func parseLabels(s string) (o Origin, rest string, ok bool) {
	if o.Server, s, ok = cutLabel(s, attrServer); !ok {
		return Origin{}, "", false
	}
	if o.Tool, s, ok = cutLabel(s, attrTool); !ok {
		return Origin{}, "", false
	}
	if strings.HasPrefix(s, attrModel) {
		if o.Model, s, ok = cutLabel(s, attrModel); !ok {
			return Origin{}, "", false
		}
	}
	rest, ok = strings.CutPrefix(s, attrEnd)
	return o, rest, ok
}

// cutLabel cuts prefix and the label behind it, up to the quote that ends it.
func cutLabel(s, prefix string) (lab, rest string, ok bool) {
	s, ok = strings.CutPrefix(s, prefix)
	if !ok {
		return "", "", false
	}
	end := strings.IndexByte(s[:min(len(s), maxLabel+1)], '"')
	if end < 0 || !IsLabel(s[:end]) {
		return "", "", false
	}
	return s[:end], s[end:], true
}
