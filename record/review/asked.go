// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/captures"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// Asked is what is known of the question that an item answers. Where it is not there, Why says so in a
// constant text, with what to do to have it next time.
type Asked struct {
	*hold.Question
	Why string
}

// Reasons for which a question cannot be shown.
const (
	notKept       = "not kept; to keep it, set capture: [arguments] for the tool, its server or in defaults"
	contextUnkept = "not kept; to keep it, set guard: {context: true}"
	isItsBody     = "" // the body of a call that the policy has held are its parameters
	askedSealed   = "encrypted to its reviewers: --identity opens it"
	askedForeign  = "sealed with a key that this machine does not have"
	askedDamaged  = "damaged: it is not what was asked"
	askedGone     = "gone: its time is over"
)

// Ask reads the question of an item with the keys of by and the identities of a reviewer, or "".
func Ask(it *hold.Item, by *capture.Sealer, identities string) Asked {
	switch {
	case it.Question != nil:
	case it.State != hold.Held && it.State != hold.Released:
		return Asked{Why: askedGone}
	case it.Rule == hold.GuardCall:
		return Asked{Why: contextUnkept}
	case it.IsCall():
		return Asked{Why: isItsBody}
	default:
		return Asked{Why: notKept}
	}
	document, err := by.Open(it.Question, it.ID, identities)
	var q hold.Question
	if err == nil {
		q, err = it.ReadQuestion(document)
	}
	switch {
	case err == nil:
		return Asked{Question: &q}
	case errors.Is(err, capture.ErrSealed):
		return Asked{Why: askedSealed}
	case errors.Is(err, capture.ErrForeign):
		return Asked{Why: askedForeign}
	}
	return Asked{Why: askedDamaged}
}

// A Finding is one for programs.
type Finding struct {
	Place    string      `json:"place"`
	Code     string      `json:"code"`
	Severity string      `json:"severity"`
	Count    int         `json:"count"`
	Spans    []hold.Span `json:"spans,omitzero"`
}

// Findings are those of an item, as they are shown: a code that this release does not know, and a place
// that is not a path, are Other.
func Findings(f *hold.Found) (out []Finding) {
	for _, x := range f.Findings[:min(len(f.Findings), hold.MaxFindings)] {
		out = append(out, Finding{believedPlace(x.Place), believedCode(x.Code), severity(x.Code), max(x.Count, 1), x.Spans})
	}
	for _, c := range f.More {
		out = append(out, Finding{frame.Other, believedCode(c.Code), severity(c.Code), max(c.N, 1), nil})
	}
	return out
}

func severity(c finding.Code) string {
	if c.Known() {
		return c.Severity().String()
	}
	return frame.Other
}

func believedCode(c finding.Code) string {
	if c.Known() {
		return string(c)
	}
	return frame.Other
}

func believedPlace(s string) string {
	if s != "" && len(s) <= terminal.MaxInline && terminal.Printable(s) == s {
		return s
	}
	return frame.Other
}

// Scores are what classifiers have said of an item, as they are shown.
func Scores(f *hold.Found) []hold.Score {
	const most = 64 // more than a configuration has
	out := append([]hold.Score(nil), f.Scores[:min(len(f.Scores), most)]...)
	for i := range out {
		s := &out[i]
		for _, label := range []*string{&s.Name, &s.Version, &s.Mode, &s.Outcome, &s.Code, &s.Reason} {
			if *label != "" && !frame.IsLabel(*label) {
				*label = frame.Other
			}
		}
	}
	return out
}

// codes are all codes of an item in few words: the one that held it, and how many more.
func codes(it *hold.Item) string {
	more := 0
	for _, c := range it.Found.Counts() {
		if c.Code != it.Code {
			more++
		}
	}
	if more == 0 {
		return reasonOf(it)
	}
	return reasonOf(it) + " +" + strconv.Itoa(more)
}

// showFound prints what was found in an item, and what classifiers say of it.
func showFound(w *bufio.Writer, p terminal.Palette, it *hold.Item) {
	if list := Findings(&it.Found); len(list) > 0 {
		terminal.Section(w, p, "findings")
		for _, f := range list {
			fmt.Fprintf(w, "  %-5s  %s  %d at %s%s\n", f.Severity, f.Code, f.Count, f.Place, spans(f.Spans))
		}
	}
	if list := Scores(&it.Found); len(list) > 0 {
		terminal.Section(w, p, "classifiers")
		for _, s := range list {
			why := s.Code
			if s.Reason != "" {
				why = "not judged: " + s.Reason
			}
			fmt.Fprintf(w, "  %s  %.3f  %s  %s  %s\n", s.Name, s.P, s.Mode, s.Outcome, why)
		}
	}
}

func spans(list []hold.Span) string {
	s := ""
	for i, at := range list {
		switch {
		case i == 3:
			return s + ", and more"
		case i == 0:
			s = ", bytes "
		default:
			s += ", "
		}
		s += strconv.Itoa(at.Start) + " to " + strconv.Itoa(at.End)
	}
	return s
}

// showAsked prints the question.
func showAsked(w *bufio.Writer, p terminal.Palette, a Asked) {
	switch {
	case a.Question == nil && a.Why != "":
		terminal.Section(w, p, "the question is "+a.Why)
	case a.Question == nil:
	case len(a.Context) > 0:
		terminal.Section(w, p, "what the model has read")
		showTexts(w, p, a.Context)
	case a.Arguments == "" && a.Bytes > 0:
		terminal.Section(w, p, "the question is not kept: its arguments have "+terminal.Plural(a.Bytes, "byte"))
	default:
		terminal.Section(w, p, "the question: arguments of the call")
		showTexts(w, p, []byte(a.Arguments))
	}
}

// showTexts prints every value of a JSON text.
func showTexts(w *bufio.Writer, p terminal.Palette, body []byte) {
	for t := range texts(body) {
		showText(w, p, t)
	}
}

func showText(w *bufio.Writer, p terminal.Palette, t placed) {
	terminal.Section(w, p, t.place)
	terminal.Indent(w, terminal.Printable(t.text))
	terminal.ExplainHidden(w, p, t.text)
}

// ShowCapture prints the texts that were kept of a call that was not held.
func ShowCapture(dst io.Writer, p terminal.Palette, c *captures.Capture) error {
	w := bufio.NewWriter(dst)
	it := Believed(&hold.Item{ID: c.ID, State: hold.Held, Server: c.Server, Tool: c.Tool, Principal: c.Principal})
	verdict := c.Verdict
	if !frame.IsLabel(verdict) {
		verdict = frame.Other
	}
	for _, row := range [][2]string{{"call", it.ID}, {"verdict", verdict + "; it was not held"}, {"tool", Source(it)}, {"principal", it.Principal},
		{"at", terminal.Minute(c.Time) + ", kept until " + terminal.Minute(c.Until)}} {
		if row[1] != "" {
			fmt.Fprintf(w, "%s %s\n", p.Dim(fmt.Sprintf("%-10s", row[0])), terminal.Inline(row[1]))
		}
	}
	for _, part := range []struct {
		name string
		*captures.Part
	}{{"arguments", c.Arguments}, {"received", c.Received}, {"delivered", c.Delivered}} {
		switch {
		case part.Part == nil:
			terminal.Section(w, p, part.name+": not kept; capture: ["+part.name+"] keeps it")
		case part.Text == "" && part.Bytes > 0:
			terminal.Section(w, p, part.name+": not kept, for it has "+terminal.Plural(part.Bytes, "byte"))
		default:
			terminal.Section(w, p, part.name)
			for t := range texts([]byte(part.Text)) {
				if part.name != "delivered" || !Ours(t.place) {
					showText(w, p, t)
				}
			}
		}
	}
	return w.Flush()
}
