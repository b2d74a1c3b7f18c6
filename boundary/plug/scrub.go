// SPDX-License-Identifier: Apache-2.0

package plug

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// maxTexts bounds the texts of one request.
const maxTexts = 1024

// profiles are the scrubbers by "profile" or "profile field".
type profiles map[string]*scrub.Scrubber

func compile(tokens *scrub.TokenTable) (profiles, error) {
	p := profiles{}
	for name, policy := range map[string]scrub.Policy{
		"mcp":                        {},
		"faithful":                   {Profile: scrub.Faithful},
		"surface":                    {Profile: scrub.Surface},
		"veritas-0.1":                {Profile: scrub.Veritas},
		"veritas-0.1 rationale":      {Profile: scrub.Veritas},
		"veritas-0.1 qualifications": {Profile: scrub.Veritas},
		"veritas-0.1 quote":          {Profile: scrub.Veritas, MaxBytes: scrub.QuoteMaxBytes},
	} {
		policy.Tokens = tokens
		s, err := scrub.Compile(policy)
		if err != nil {
			return nil, fmt.Errorf("plug: %w", err)
		}
		p[name] = s
	}
	return p, nil
}

func (p profiles) find(name, field string) *scrub.Scrubber {
	if name == "" {
		name = "faithful"
	}
	if field != "" {
		name += " " + field
	}
	return p[name]
}

// A scrubbed text: what scrub --json prints, without what was hidden.
type scrubbed struct {
	Clean   *string `json:"clean,omitempty"` // absent: the text must not be used
	Changed bool    `json:"changed"`
	Refused string  `json:"refused,omitempty"`
	Tokens  int     `json:"control_tokens"`
	validation
	Events []change `json:"events"`
	Flags  []flag   `json:"flags"`
}

// An event covers count changes: [start,end) are bytes of the text as it was sent,
// [out,out_end) of clean.
type change struct {
	Class  string `json:"class"`
	Start  int    `json:"start"`
	End    int    `json:"end"`
	Out    int    `json:"out"`
	OutEnd int    `json:"out_end"`
	Count  int    `json:"count"`
}

// A flag is what was found and left as it is.
type flag struct {
	Class string `json:"class"`
	Start int    `json:"start"`
	End   int    `json:"end"`
	Count int    `json:"count"`
}

type versions struct {
	Profile    string `json:"profile"`
	Sanitation string `json:"sanitation_version"`
	Unicode    string `json:"unicode_version"`
}

type scrubAnswer struct {
	versions
	scrubbed
}

type scrubAnswers struct {
	versions
	Results []scrubbed `json:"results"`
}

// scrub answers POST /v1/scrub.
func (h *handler) scrub(q *query) (any, *refusal) {
	profile, okProfile := q.text("profile")
	field, okField := q.text("field")
	if !q.has("text", "texts", "profile", "field") || !okProfile || !okField {
		return nil, errShape
	}
	s := h.profiles.find(profile, field)
	one, many := q.doc.Root().Get("text"), q.doc.Root().Get("texts")
	if s == nil || one.Exists() == many.Exists() {
		return nil, errShape
	}
	v := versions{s.Policy().Profile.String(), s.Policy().Profile.Version(), scrub.UnicodeVersion}
	if one.Exists() {
		if one.Kind() != '"' {
			return nil, errShape
		}
		var r scrub.Result
		s.Scrub(one.Text(), &r)
		return scrubAnswer{v, report(&r, "/text", one.Mended())}, nil
	}
	if many.Kind() != '[' || many.Len() > maxTexts {
		return nil, errShape
	}
	var texts []string
	var mended []bool
	for e := range many.Elements() {
		if e.Kind() != '"' {
			return nil, errShape
		}
		texts, mended = append(texts, e.Text()), append(mended, e.Mended())
	}
	rs := make([]scrub.Result, len(texts))
	s.ScrubAll(texts, rs) // a token may be spread over several
	out := scrubAnswers{v, make([]scrubbed, len(texts))}
	for i := range rs {
		out.Results[i] = report(&rs[i], "/texts/"+strconv.Itoa(i), mended[i])
	}
	return out, nil
}

// report says what scrub did with the text at path.
func report(r *scrub.Result, path string, mended bool) scrubbed {
	out := scrubbed{
		Changed: r.Changed() || mended, Refused: string(r.Refused.Code()), Tokens: r.Tokens,
		Events: []change{}, Flags: []flag{},
	}
	if r.Refused == 0 {
		clean := r.Clean.String()
		out.Clean = &clean
	}
	var t tally
	if mended {
		t.add(finding.SurrogateMended, 1)
	}
	for _, e := range scrub.Merge(nil, r.Edits) {
		t.add(e.Class.Code(), e.Count)
		out.Events = append(out.Events, change{string(e.Class.Code()), e.Start, e.End, e.Out, e.OutEnd, e.Count})
	}
	notes := r.Notes
	if r.Refused != 0 {
		notes = append(slices.Clone(notes), r.RefusedAt)
	}
	for _, n := range notes {
		t.add(n.Class.Code(), n.Count)
		out.Flags = append(out.Flags, flag{string(n.Class.Code()), n.Start, n.End, n.Count})
	}
	if r.Refused != 0 {
		t.add(r.Refused.Code(), 1)
	}
	out.validation = t.verdict(path)
	return out
}

// A tally counts findings by code, in the order in which codes come up.
type tally struct {
	codes  []finding.Code
	counts map[finding.Code]int
}

func (t *tally) add(code finding.Code, n int) {
	if t.counts == nil {
		t.counts = map[finding.Code]int{}
	}
	if t.counts[code] == 0 {
		t.codes = append(t.codes, code)
	}
	t.counts[code] += n
}

func (t *tally) verdict(path string) validation {
	var messages []message
	worst := finding.Info
	for _, code := range t.codes {
		messages = append(messages, messageOf(path, code, t.counts[code]))
		worst = max(worst, code.Severity())
	}
	return validationOf(messages, worst)
}

func messageOf(path string, code finding.Code, n int) message {
	return message{path, string(code) + ": " + strconv.Itoa(n), code.Severity().String()}
}
