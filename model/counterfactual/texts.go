// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Texts are texts in which words are looked for as they stand, without regard to case and white space.
type Texts []string

// TrustedTexts are the user's and the operator's words.
func (a *Assembly) TrustedTexts() Texts { return Texts{squeeze(a.Task + "\n" + a.Instructions)} }

// Segmented are the texts of those segments that is chooses.
func (a *Assembly) Segmented(is func(s *Segment) bool) (out Texts) {
	for i := range a.Segments {
		if is(&a.Segments[i]) {
			out = append(out, squeeze(a.Segments[i].Text))
		}
	}
	return out
}

// Hold reports whether one of the texts holds the words.
func (t Texts) Hold(s string) bool {
	s = squeeze(cutValue(s))
	return s != "" && slices.ContainsFunc(t, func(text string) bool { return containsWords(text, s, "") })
}

// around is how many bytes of a text before and behind a value may say what it is, on the same line and in the same object.
const around = 160

// HoldNear reports whether a segment holds a canonical value beside all of some words: "Dentist: Dr. Wu, office@example.com"
// says what a request means by "my dentist".
func (a *Assembly) HoldNear(value string, of []string) bool {
	if value = strings.ToLower(plainValue(value)); value == "" {
		return false
	}
	for i := range a.Segments {
		text := strings.ToLower(a.Segments[i].Text)
		for at, tries := 0, 0; tries < 64; tries++ {
			k := strings.Index(text[at:], value)
			if k < 0 {
				break
			}
			start, end := at+k, at+k+len(value)
			before, after := text[max(0, start-around):start], text[end:min(len(text), end+around)]
			before = before[strings.LastIndexAny(before, "\n{}")+1:]
			if j := strings.IndexAny(after, "\n{}"); j >= 0 {
				after = after[:j]
			}
			if near := words(before + " " + after); !slices.ContainsFunc(of, func(w string) bool { return !slices.Contains(near, w) }) {
				return true
			}
			at = end
		}
	}
	return false
}

// HoldBeside reports whether a segment holds two canonical values so close to each other that they may be of one record.
func (a *Assembly) HoldBeside(value, other string) bool {
	if value, other = strings.ToLower(plainValue(value)), strings.ToLower(plainValue(other)); value == "" {
		return false
	}
	for i := range a.Segments {
		text := strings.ToLower(a.Segments[i].Text)
		for at, tries := 0, 0; tries < 64; tries++ {
			k := strings.Index(text[at:], value)
			if k < 0 {
				break
			}
			if start, end := at+k, at+k+len(value); containsWords(text[max(0, start-2*around):min(len(text), end+2*around)], other, "") {
				return true
			}
			at += k + len(value)
		}
	}
	return false
}

// EachArgument calls f with each scalar in the arguments of a call, as the model wrote it.
func EachArgument(c Call, f func(path, text string)) {
	var doc strictjson.Doc
	if doc.Reset(c.Arguments, strictjson.Limits{Bytes: 1 << 20, Depth: 32, Values: 1 << 16}) != nil || doc.Root().Kind() != '{' {
		return
	}
	flatten(doc.Root(), "", func(path string, v strictjson.Value) {
		if v.Kind() == '"' {
			f(path, v.Text())
		} else {
			f(path, string(v.Raw()))
		}
	})
}

// Words are the words of a name or of a canonical value, in small letters.
func Words(s string) []string { return words(s) }

// IsLocal reports whether an argument of this path holds a place on this machine, by its name.
func IsLocal(path string) bool {
	_, leaf := cutLast(path, ".")
	return slices.ContainsFunc(words(leaf), func(w string) bool { return slices.Contains(local, w) })
}

// SaysWhatToDo reports whether a request has a verb of the tool's name among its words.
func (a *Assembly) SaysWhatToDo(tool string) bool { return verbIn(a.Task, tool) }

// Confirmed reports whether the last turn of the user does nothing but agree with what the agent has proposed, and the
// agent has proposed what the tool does.
func (a *Assembly) Confirmed(tool string) bool { return a.Agreed() && verbIn(a.Proposal(), tool) }

// Agreed reports whether the last turn of the user is a short one that begins with an agreement.
func (a *Assembly) Agreed() bool {
	w := words(a.Turn[:min(len(a.Turn), 200)])
	return len(a.Turn) < 80 && len(w) > 0 && agreeing()[w[0]] && !slices.ContainsFunc(w, func(s string) bool { return refusing()[s] })
}

var (
	agreeing = set("yes yeah yep yup ok okay sure please do go proceed confirm confirmed correct right fine agreed approved absolutely definitely ja jo gerne klar genau bitte mach si s\u00ed claro hazlo dale vale oui d'accord vas sim sure")
	refusing = set("no not don't dont never nicht kein nein pas non nunca stop wait instead but aber pero mais")
)

// maxProposal bounds what is read of the agent's proposal, in bytes: its end, which the user answers.
const maxProposal = 400

// Proposal is what the agent proposed before the last turn of the user: the end of its text with the question.
func (a *Assembly) Proposal() string {
	s := strings.TrimSpace(a.Proposed)
	if i := strings.LastIndexByte(s, '?'); i >= 0 {
		s = s[:i+1]
	}
	return strings.ToValidUTF8(s[max(0, len(s)-maxProposal):], "")
}

// verbIn reports whether a text has a verb of a tool's name, in some form of it.
func verbIn(text, tool string) (yes bool) {
	if len(tool) > maxGuessed {
		return false
	}
	in := words(cutValue(text))
	for w := range nameWords(tool) {
		if len(w) < 3 || !actVerbs()[w] && !actNouns()[w] {
			continue
		}
		stem := strings.TrimSuffix(w, "e")
		yes = yes || slices.ContainsFunc(in, func(s string) bool { return strings.HasPrefix(s, stem) && len(s) <= len(stem)+4 || s == verbForms[w] })
	}
	return yes
}

// verbForms are forms that do not begin as the verb does.
var verbForms = map[string]string{"send": "sent", "pay": "paid", "buy": "bought", "write": "wrote", "give": "gave"}
