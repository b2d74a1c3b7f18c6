// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"html"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// Bounds of the evidence of a fault.
const (
	minHidden   = 4       // bytes of a hidden message
	maxEvidence = 4 << 10 // bytes that are kept of each kind
)

// hiding are the classes of characters that can spell a hidden message.
var hiding = [...]scrub.Class{scrub.Tag, scrub.VariationSelector, scrub.ZeroWidth, scrub.InvisibleOperator, scrub.Bidi, scrub.HiddenReference}

// noteHidden remembers the messages that the last scrub has removed from a text. Hidden characters that spell nothing
// are no fault: emoji, names of files and pages of the web have them.
func (w *walker) noteHidden(text string) {
	if w.strictly || len(w.hidden) >= maxEvidence || !slices.ContainsFunc(hiding[:], w.res.Has) {
		return
	}
	if w.res.Has(scrub.HiddenReference) {
		text = html.UnescapeString(text)
	}
	for _, h := range scrub.Reveal(text) {
		if len(h.Message) >= minHidden && h.Kind != scrub.OpaqueMessage && !isFlag(text, h) && len(w.hidden) < maxEvidence {
			w.hidden = append(append(w.hidden, h.Message...), 0)
		}
	}
}

// isFlag reports whether a message in tag characters is the name of a region behind a black flag, as U+1F3F4 and
// "ustx". Few such flags are on the list of emoji.
func isFlag(text string, h scrub.Hidden) bool {
	return h.Kind == scrub.TagMessage && len(h.Message) <= 6 && strings.HasSuffix(text[:h.Start], "\U0001F3F4") && strings.HasSuffix(text[:h.End], "\U000E007F")
}

// noteForged remembers what imitates a frame or a receipt.
func (w *walker) noteForged(d frame.Digest) {
	if !w.strictly && len(w.forged) < maxEvidence {
		w.forged = append(w.forged, d[:]...)
	}
}

// worstFault returns the worst fault by which the message lowers the trust in its server. Other findings are no faults: a
// server is not to blame for the subject or the spelling of a text that it delivers.
func (in *inspection) worstFault() Fault {
	w, d := &in.w, &in.d
	switch {
	case d.Released != "":
		return Fault{} // a reviewer has looked at it
	case len(w.hidden) > 0:
		return Fault{hiddenMessage, frame.DigestOf(string(w.hidden))}
	case len(w.forged) > 0:
		return Fault{forgedFrame, frame.DigestOf(string(w.forged))}
	}
	return d.shapeFault()
}

// shapeFault returns the fault of a message that was withheld for its form.
func (d *Decision) shapeFault() Fault {
	if d.Verdict != Withheld && d.Verdict != Dropped || d.Kind == "call" {
		return Fault{}
	}
	for _, c := range slices.Concat(d.Findings, d.Withheld) {
		switch c.Code {
		case finding.ShapeInvalid, finding.SchemaInvalid, finding.Misshapen, finding.CaseVariant, finding.Violation:
			return Fault{shapeLie, cmp.Or(d.Received, frame.DigestOf(string(c.Code)))}
		}
	}
	return Fault{}
}
