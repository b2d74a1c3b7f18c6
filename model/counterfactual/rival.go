// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"slices"
	"strings"
)

// A Rival is what an answer to a variant says of one value: the same tool with another value.
type Rival struct {
	// Other: the answer calls the tool with another value there, and not with this one.
	Other bool `json:"other,omitempty"`
	// Sourced: every critical value of that call is trusted or stands in what was shown, and not
	// only as a common noun: where a name is missing, a small model writes "customer" for "the customer".
	Sourced bool `json:"sourced,omitempty"`
	// Known: the agent has made that call before, or proposes it in the same answer.
	Known bool `json:"known,omitempty"`
}

// Rival reads an answer to v, a variant that withholds the values, for a call which is one of
// base's. It reports the first call that is a rival, else what comes nearest.
func (a *Assembly) Rival(p *Privileges, base *Answer, c Call, v Variant, values []Origin, got *Answer) (best Rival) {
	same := p.Proposal(c)
	known := map[string]bool{}
	for _, list := range [][]Call{base.Calls, a.Prior} {
		for _, k := range list[:min(len(list), maxProposals)] {
			x := p.Proposal(k)
			known[x.Digest()] = true
		}
	}
	left := a.shownText(v)
	for _, k := range got.Calls[:min(len(got.Calls), maxProposals)] {
		other := p.Proposal(k)
		if other.Tool != same.Tool || other.Malformed {
			continue
		}
		r := Rival{Other: !slices.ContainsFunc(values, func(o Origin) bool { return o.in(&other) }) &&
			slices.ContainsFunc(values, func(o Origin) bool { return o.Inside || o.hasOther(&other, &same) })}
		if !r.Other {
			continue
		}
		r.Known = known[other.Digest()]
		r.Sourced = !slices.ContainsFunc(other.Critical, func(x Argument) bool {
			withheld := slices.ContainsFunc(values, func(o Origin) bool { return o.path == x.Path })
			return (withheld || formOf(x.Value).Names()) && (!left.holds(x.Value) || left.commonNoun(x.Value))
		})
		if !best.Other || r.Sourced && !r.Known {
			best = r
		}
		if best.Sourced && !best.Known {
			return best
		}
	}
	return best
}

// in reports whether a proposal has this value at its place.
func (o *Origin) in(p *Proposal) bool {
	if o.Inside {
		return slices.ContainsFunc(p.Free, func(x Argument) bool {
			return x.Path == o.path && strings.Contains(x.Value, strings.ToLower(o.plain()))
		})
	}
	return slices.Contains(p.Critical, Argument{o.path, o.value}) || slices.ContainsFunc(p.Critical, func(x Argument) bool {
		return x.Path == o.path && o.Form == FormText && strings.Contains(x.Value, o.value)
	})
}

// hasOther reports whether a proposal has at the place of this value one that the call does not have there: a shorter list
// is no rival.
func (o *Origin) hasOther(p, call *Proposal) bool {
	own := map[string]bool{}
	for _, y := range call.Critical {
		if y.Path == o.path {
			own[y.Value] = true
			for part := range strings.FieldsFuncSeq(y.Value, listed) {
				own[canonical(part)] = true
			}
		}
	}
	return slices.ContainsFunc(p.Critical, func(x Argument) bool {
		return x.Path == o.path && slices.ContainsFunc(append(strings.FieldsFunc(x.Value, listed), x.Value), func(part string) bool { return !own[part] && !own[canonical(part)] })
	})
}

// listed parts the values of a list that is one text.
func listed(r rune) bool { return r == ',' || r == ';' || r == '\n' }

func plainValue(v string) string {
	if formOf(v) != FormText {
		return v[2:]
	}
	return v
}

func (o *Origin) plain() string { return plainValue(o.value) }

// shownText is the trusted text and what v shows of the segments.
func (a *Assembly) shownText(v Variant) *shownWords {
	out := &shownWords{{text: a.Task + "\n" + a.Instructions}}
	without := v.Without.bySegment()
	for i := range v.Kept.Places() {
		*out = append(*out, vocabulary{text: cut(a.Segments[i].Text, without[i])})
	}
	return out
}

// shownWords answers which values stand in any of several texts.
type shownWords []vocabulary

func (s *shownWords) holds(value string) bool {
	for i := range *s {
		if (*s)[i].holds(value) {
			return true
		}
	}
	return false
}

// commonNoun reports whether a value is one word of a to z that stands in the texts in lower case and behind an article only.
func (s *shownWords) commonNoun(value string) bool {
	if formOf(value) != FormText || strings.ContainsFunc(value, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return false
	}
	found := false
	for i := range *s {
		before := ""
		for word := range strings.FieldsFuncSeq((*s)[i].text, func(r rune) bool { return r < 0x80 && letter(byte(r)) == 0 }) {
			if strings.EqualFold(word, value) {
				if word != value || !articles()[strings.ToLower(before)] {
					return false
				}
				found = true
			}
			before = word
		}
	}
	return found
}

// articles are those of languages that write names with a capital letter and common nouns without.
var articles = set("a an the this that each every our your my his her its their " +
	"le la les un une ce cette el los las una il lo gli i o os as um uma de het een")
