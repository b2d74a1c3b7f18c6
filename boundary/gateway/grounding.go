// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// The types of a grounding adapter's answer and of its frames.
//
// spec: RFC-VERITAS-MCP-GROUNDING 5.1, 5.2
const (
	groundedType  = "veritas:GroundedAttestationResponse"
	groundedFrame = "veritas:UntrustedValidatorText"
)

// groundingKey names the _meta member that says what was seen of such an answer.
const groundingKey = frame.MetaPrefix + "grounding"

// A grounding is what was seen of a grounding adapter's answer. Its frames pass as
// they are; a client should believe the less what is of low confidence.
//
// spec: RFC-VERITAS-MCP-GROUNDING 8.2
type grounding struct {
	frames  int             // of the copy of the answer that has the fewest
	reasons []lowConfidence // none: nothing speaks against it
	answers int             // copies: structuredContent, and JSON in texts
}

// A lowConfidence is a reason to believe an answer less.
type lowConfidence string

// The reasons.
const (
	noFrame            lowConfidence = "no-frame"            // not one text is in a frame
	unframedText       lowConfidence = "unframed-text"       // an attestation or a quote is not
	confusablesPresent lowConfidence = "confusables-present" // the adapter says so, and has not replaced them
	unreadable         lowConfidence = "unreadable"          // no strict JSON
)

func (g *grounding) doubt(r lowConfidence) {
	if !slices.Contains(g.reasons, r) {
		g.reasons = append(g.reasons, r)
	}
}

// grounding looks at the answers in a result as the client will see them, and
// returns the member for _meta; nil: it only talks of such answers.
func (in *inspection) grounding(root strictjson.Value) []byte {
	if in.again.Reset(in.w.edits.Apply(nil, root), strictjson.Limits{}) != nil {
		return nil
	}
	var g grounding
	g.search(in.again.Root(), true)
	if g.answers == 0 {
		return nil
	}
	in.d.grounding = &g
	return g.appendJSON(nil)
}

// search finds the answers in v. In texts it looks too, but not in texts of texts.
func (g *grounding) search(v strictjson.Value, texts bool) {
	switch v.Kind() {
	case '{':
		if v.Get("@type").Text() == groundedType {
			g.judge(v)
			return
		}
		for _, m := range v.Members() {
			g.search(m, texts)
		}
	case '[':
		for e := range v.Elements() {
			g.search(e, texts)
		}
	case '"':
		if texts && strings.Contains(v.Text(), groundedType) {
			g.text(v.Text())
		}
	}
}

// text looks for an answer from the first brace to the last: neither a notice nor
// the tags of a frame have any.
func (g *grounding) text(s string) {
	from, to := strings.IndexByte(s, '{'), strings.LastIndexByte(s, '}')
	if from < 0 || to < from {
		return
	}
	var doc strictjson.Doc
	if doc.Reset([]byte(s[from:to+1]), strictjson.Limits{}) == nil {
		g.search(doc.Root(), false)
		return
	}
	// Prose may speak of the type and hold braces; what names it as its type does
	// not, and who reads it leniently takes it for an answer.
	if strings.Contains(s[from:to], `"@type"`) {
		g.answers++
		g.frames = 0
		g.doubt(unreadable)
	}
}

// judge looks at one copy of an answer.
func (g *grounding) judge(answer strictjson.Value) {
	frames := countFrames(answer)
	if g.answers++; g.answers == 1 || frames < g.frames {
		g.frames = frames
	}
	if frames == 0 {
		g.doubt(noFrame)
	}
	for a := range answer.Get("attestations").Elements() {
		text := a.Get("_untrusted_text")
		framed := isFrame(text)
		for e := range text.Get("evidence").Elements() {
			framed = framed && isFrame(e.Get("_untrusted_quote"))
		}
		if !framed {
			g.doubt(unframedText)
		}
	}
	if present, _ := answer.Get("_meta").Get("confusables_present").Bool(); present {
		g.doubt(confusablesPresent)
	}
}

func isFrame(v strictjson.Value) bool { return v.Get("@type").Text() == groundedFrame }

func countFrames(v strictjson.Value) (n int) {
	switch v.Kind() {
	case '{':
		if isFrame(v) {
			n++
		}
		for _, m := range v.Members() {
			n += countFrames(m)
		}
	case '[':
		for e := range v.Elements() {
			n += countFrames(e)
		}
	}
	return n
}

// appendJSON appends g as an object. Its reasons need no escape.
func (g *grounding) appendJSON(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"frames":`...), int64(g.frames), 10)
	dst = strconv.AppendBool(append(dst, `,"low_confidence":`...), len(g.reasons) > 0)
	dst = append(dst, `,"reasons":[`...)
	for i, r := range g.reasons {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), r...), '"')
	}
	return append(dst, "]}"...)
}
