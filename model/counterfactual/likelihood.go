// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// LikelihoodVersion names the oracle that reads log-probabilities: the text that a variant is
// written as, and the number that is compared with the threshold. It changes with either.
const LikelihoodVersion = "log-likelihood/1"

// A Likelihood says that the questions of a plan were put to no model that answers. A model was
// asked how likely it finds each target's call behind each variant. The same question has the
// same answer, so that it is asked once, and no answer is there to be passed on.
type Likelihood struct {
	Version string `json:"version"` // LikelihoodVersion
	// Threshold is the most that a target may lose and still count as recurring: thousandths
	// of a nat for each token of its values, on average, against the whole context.
	Threshold int `json:"threshold"`
	// Base is the mean log-likelihood of the tokens of each target's values behind the whole
	// context, in thousandths of a nat.
	Base []int `json:"base"`
}

func (l *Likelihood) check(targets int) error {
	if l != nil && (l.Version != LikelihoodVersion || len(l.Base) != targets) {
		return errors.New("counterfactual: new plan: a likelihood of another version, or of other targets")
	}
	return nil
}

// Recurrence is what a mean log-likelihood of target t says, in thousandths of a nat.
func (l *Likelihood) Recurrence(t, mean int) Recurrence {
	loss := l.Base[t] - mean
	return Recurrence{Recurs: loss <= l.Threshold, Loss: &loss}
}

// fits reports whether recurrences are of the problem's oracle, and follow from what they say.
func (p *Problem) fits(list []Recurrence) bool {
	return !slices.ContainsFunc(list, func(r Recurrence) bool {
		if p.Likelihood == nil {
			return r.Loss != nil
		}
		return r.Loss == nil || r.Recurs != (*r.Loss <= p.Likelihood.Threshold) || len(r.Tampered) > 0
	})
}

// once is the rule of an oracle that says the same each time: one answer decides.
func (r Rule) once() Rule {
	r.Accept, r.Reject = r.Positive, r.Negative
	return r
}

// maxTranscript bounds a transcript, in bytes.
const maxTranscript = 4 << 20

// Transcript writes a request as plain text that ends where the assistant's next call begins,
// for models that are asked how likely that call is. One line begins with the name of its
// speaker; further lines of the same text are indented, so that no text can begin a turn.
func Transcript(f format.Name, src []byte) (string, error) {
	form, root := format.Of(f), format.Parse(src)
	if form == nil || !root.Exists() {
		return "", errors.New("counterfactual: transcript: not a request of this format")
	}
	t := &transcript{names: map[string]string{}}
	if !form.Places(root, t.place) {
		return "", errors.New("counterfactual: transcript: not a request of this format")
	}
	if t.b.Len() > maxTranscript {
		return "", errors.New("counterfactual: transcript: the context is too long")
	}
	return t.b.String() + speakerAssistant, nil
}

const speakerAssistant = "Assistant:"

// A transcript is being written.
type transcript struct {
	b      strings.Builder
	names  map[string]string // of tools, by the id of the call
	result string            // speaker of the result that has begun
}

func (t *transcript) place(p format.Place) {
	switch p.Kind {
	case format.PlaceTool:
		t.tool(p)
	case format.PlaceSystem:
		t.line("System: ", p)
	case format.PlaceUser:
		t.line("User: ", p)
	case format.PlaceAgent:
		if p.Value.Kind() == '"' && p.Value.Text() != "" {
			t.line(speakerAssistant+" ", p)
		}
	case format.PlaceCall:
		t.names[p.ID] = p.Name
		t.call(p)
	case format.PlaceServed:
		t.call(p)
		t.result = "Tool " + label(p.Name) + ": "
	case format.PlaceResult:
		t.result = strings.TrimRight("Tool "+label(t.names[p.ID]), " ") + ": "
	case format.PlaceOutput:
		t.line(t.result, p)
	case format.PlaceRetrieved:
		t.line("Document: ", p)
	case format.PlaceUnknown:
		t.line("Other: ", p)
	}
}

// line writes a text. What is neither a text nor the JSON that stands for one is named only.
func (t *transcript) line(speaker string, p format.Place) {
	text := "[no text]"
	switch {
	case p.Value.Kind() == '"':
		text = p.Value.Text()
	case p.Whole:
		text = string(p.Value.Raw())
	}
	t.b.WriteString(speaker)
	t.b.WriteString(strings.ReplaceAll(text, "\n", "\n  "))
	t.b.WriteByte('\n')
}

// tool writes a definition: its name, the names of its parameters, and its description.
func (t *transcript) tool(p format.Place) {
	fmt.Fprintf(&t.b, "Tool: %s(", label(p.Name))
	description, n := "", 0
	for _, v := range p.More {
		if v.Kind() == '"' {
			description = v.Text()
			continue
		}
		properties := v.Get("properties")
		if !properties.Exists() {
			properties = v.Get("json").Get("properties")
		}
		for name := range properties.Members() {
			if n++; n > 1 {
				t.b.WriteString(", ")
			}
			t.b.WriteString(label(name.Text()))
		}
	}
	t.b.WriteByte(')')
	if description != "" {
		t.b.WriteString(" " + strings.ReplaceAll(description, "\n", "\n  "))
	}
	t.b.WriteByte('\n')
}

func (t *transcript) call(p format.Place) {
	args := p.Arguments.Raw()
	if p.Arguments.Kind() == '"' {
		args = []byte(p.Arguments.Text())
	}
	t.b.WriteString(speakerAssistant + " ")
	t.b.WriteString(spelled(Call{Name: p.Name, Arguments: args}))
	t.b.WriteByte('\n')
}

// maxSpelled bounds a call whose likelihood is asked for, in bytes.
const maxSpelled = 8 << 10

// A Spelling is a call as a transcript goes on with it, in printable ASCII: a server's tokens of
// it are then found by their text. It begins with a space, since words of most models do.
type Spelling struct {
	Text string
	// Values are where the values of its critical arguments stand; of all arguments, where none
	// is critical; all of Text, where there are none.
	Values []Range
}

// A Range is a part of a text, in bytes.
type Range struct{ Start, End int }

// Spell spells a call. ok is false where it is too long.
func (p *Privileges) Spell(c Call) (s Spelling, ok bool) {
	s.Text = " " + spelled(c)
	if len(s.Text) > maxSpelled {
		return Spelling{}, false
	}
	critical := map[string]bool{}
	for _, a := range p.Proposal(c).Critical {
		critical[a.Path] = true
	}
	before := len(" " + label(c.Name) + "(")
	var doc strictjson.Doc
	if doc.Reset([]byte(s.Text[before:len(s.Text)-1]), strictjson.Limits{}) != nil {
		return Spelling{}, false
	}
	var all []Range
	flatten(doc.Root(), "", func(path string, v strictjson.Value) {
		r := Range{before + v.Offset(), before + v.Offset() + len(v.Raw())}
		if v.Kind() == '"' && r.End-r.Start > 2 {
			r.Start, r.End = r.Start+1, r.End-1
		}
		if all = append(all, r); critical[path] {
			s.Values = append(s.Values, r)
		}
	})
	if s.Values == nil {
		s.Values = all
	}
	if s.Values == nil {
		s.Values = []Range{{0, len(s.Text)}}
	}
	return s, true
}

func spelled(c Call) string {
	args := c.Arguments
	if len(bytes.TrimSpace(args)) == 0 {
		args = []byte("{}")
	}
	var compact bytes.Buffer
	var doc strictjson.Doc
	if doc.Reset(args, strictjson.Limits{}) != nil || json.Compact(&compact, args) != nil {
		compact.Reset()
		compact.Write(strictjson.AppendQuote(nil, strings.ToValidUTF8(string(args), "\ufffd")))
	}
	return label(c.Name) + "(" + ascii(compact.String()) + ")"
}

// label is a name in printable ASCII.
func label(name string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '?'
		}
		return r
	}, name)
}

// ascii spells what is not printable ASCII in a JSON text by escapes. Such characters stand in
// strings alone.
func ascii(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case r >= ' ' && r <= '~':
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
