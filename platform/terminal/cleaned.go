// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"

	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// CleanRows cleans the text of every row. A text that s refuses becomes null.
func CleanRows(s *scrub.Scrubber) RowEdit {
	var r scrub.Result
	return func(_, text strictjson.Value, e *strictjson.Edits) error {
		in := text.Text()
		s.Scrub(in, &r)
		if r.Refused != 0 { // then it must not come out as one
			e.Replace(text, []byte("null"))
			return Refusal(&r)
		}
		if out := r.Clean.String(); out != in {
			e.ReplaceText(text, out)
		}
		return nil
	}
}

// Refusal is the error for a text that the profile refuses.
func Refusal(r *scrub.Result) error {
	return fmt.Errorf("scrub: refused: %s, the first at byte %d", r.Refused.Code(), r.RefusedAt.Start)
}

// A Cleaned is the outcome of scrubbing a text, for a program.
type Cleaned struct {
	Text              string          `json:"text"`
	Changed           bool            `json:"changed"`
	Refused           string          `json:"refused,omitempty"` // the class for which the text must not be used
	Profile           string          `json:"profile"`
	SanitationVersion string          `json:"sanitation_version"`
	UnicodeVersion    string          `json:"unicode_version"`
	ControlTokens     int             `json:"control_tokens"`
	Events            []eventReport   `json:"events"`
	Flags             []noteReport    `json:"flags"`
	Hidden            []messageReport `json:"hidden"`
}

// An eventReport is a scrub.Edit: [start,end) are bytes of the input,
// [out,out_end) of text.
type eventReport struct {
	Class  string `json:"class"`
	Start  int    `json:"start"`
	End    int    `json:"end"`
	Out    int    `json:"out"`
	OutEnd int    `json:"out_end"`
}

// A noteReport is a scrub.Note: found, and left as it is.
type noteReport struct {
	Class string `json:"class"`
	Start int    `json:"start"`
	End   int    `json:"end"`
	Count int    `json:"count"`
}

// A messageReport is a scrub.Hidden: what hidden characters said.
type messageReport struct {
	Kind    string `json:"kind"`
	Start   int    `json:"start"`
	End     int    `json:"end"`
	Message string `json:"message"`
}

// NewCleaned makes it of the text and of what s has made of it.
func NewCleaned(s *scrub.Scrubber, in string, r *scrub.Result) *Cleaned {
	rep := &Cleaned{
		Text:              r.Clean.String(),
		Changed:           r.Changed(),
		Refused:           string(r.Refused.Code()),
		Profile:           s.Policy().Profile.String(),
		SanitationVersion: s.Policy().Profile.Version(),
		UnicodeVersion:    scrub.UnicodeVersion,
		ControlTokens:     r.Tokens,
		Events:            []eventReport{},
		Flags:             []noteReport{},
		Hidden:            []messageReport{},
	}
	for _, ev := range r.Edits {
		rep.Events = append(rep.Events, eventReport{string(ev.Class.Code()), ev.Start, ev.End, ev.Out, ev.OutEnd})
	}
	for _, n := range r.Notes {
		rep.Flags = append(rep.Flags, noteReport{string(n.Class.Code()), n.Start, n.End, n.Count})
	}
	for _, m := range scrub.Reveal(in) {
		rep.Hidden = append(rep.Hidden, messageReport{string(m.Kind), m.Start, m.End, m.Message})
	}
	return rep
}
