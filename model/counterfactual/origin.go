// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// An Origin says where one value of a call comes from. Only its methods and the package see
// the value itself, which is third-party text.
type Origin struct {
	Argument string // label of the path
	Form     Form
	// Inside: the value is an atom of a longer free text.
	Inside bool
	// Trusted: the user's or the operator's words hold the value.
	Trusted bool
	// Segments hold the value. It is not looked for there if it is Trusted.
	Segments Set
	// Composed: Segments hold only the host of this URL.
	Composed bool

	path, value string // canonical
	spans       []Span // of the units of text that hold the value
	whole       Set    // segments that hold it in no single unit, or in more than one place
}

// A Form is the kind of a value, by its spelling.
type Form string

// The forms.
const (
	FormText   Form = "text"
	FormNumber Form = "number"
	FormDate   Form = "date"
	FormMail   Form = "mail"
	FormIBAN   Form = "iban"
	FormURL    Form = "url"
)

var forms = map[string]Form{"n:": FormNumber, "d:": FormDate, "e:": FormMail, "i:": FormIBAN, "u:": FormURL}

func formOf(canonical string) Form {
	if len(canonical) > 2 {
		if f := forms[canonical[:2]]; f != "" {
			return f
		}
	}
	return FormText
}

// Names reports whether values of this form name a party: whom a message reaches, or who
// gets the money.
func (f Form) Names() bool { return f == FormMail || f == FormIBAN || f == FormURL }

// maxOrigins bounds the values of one call that are looked for.
const maxOrigins = 64

// Origins says of each critical argument of a call, and of each atom in its free text, where
// it comes from. ok is false if the call's arguments cannot be read, or are too many. The
// cost is linear in the size of the context.
func (a *Assembly) Origins(p *Privileges, c Call) (list []Origin, ok bool) {
	rule := p.rule(c.Name)
	var doc strictjson.Doc
	args := c.Arguments
	if len(strings.TrimSpace(string(args))) == 0 {
		args = []byte("{}")
	}
	if doc.Reset(args, strictjson.Limits{Bytes: 1 << 20, Depth: 32, Values: 1 << 16}) != nil || doc.Root().Kind() != '{' {
		return nil, false
	}
	flatten(doc.Root(), "", func(path string, v strictjson.Value) {
		text := v.Text()
		if v.Kind() != '"' {
			text = string(v.Raw())
		}
		list = appendOrigins(list, path, text, rule.critical(path, isProse(text)))
	})
	if len(list) > maxOrigins {
		return nil, false
	}
	trusted := &vocabulary{text: a.Task + "\n" + a.Instructions}
	for i := range list {
		list[i].Trusted = trusted.holds(list[i].value)
	}
	a.search(list, trusted)
	return list, true
}

// Path is the canonical path of the argument, which is third-party text.
func (o *Origin) Path() string { return o.path }

// reaching are words of names of arguments that a tool connects to.
var reaching = []string{"url", "urls", "uri", "link", "href", "host", "hostname", "domain", "webhook", "endpoint", "ip"}

// Reaches reports whether a tool that gets the value may send something there.
func (o *Origin) Reaches() bool {
	if o.Form == FormURL || o.Form == FormMail {
		return true
	}
	_, leaf := cutLast(o.path, ".")
	return !o.Inside && slices.ContainsFunc(words(leaf), func(w string) bool { return slices.Contains(reaching, w) })
}

// MayReach is a quick look at the arguments of a call: false if none of its values Reaches.
func MayReach(args []byte) bool {
	s := strings.ToLower(string(args))
	return strings.Contains(s, `\u`) || slices.ContainsFunc([]string{"://", "@", "www.", `ip"`}, func(sign string) bool { return strings.Contains(s, sign) }) ||
		slices.ContainsFunc(reaching, func(w string) bool { return len(w) > 2 && strings.Contains(s, w) })
}

// Trusts reports of a canonical value whether the user's or the operator's words hold it.
func (a *Assembly) Trusts() func(value string) bool {
	return (&vocabulary{text: a.Task + "\n" + a.Instructions}).holds
}

// Form is what kind of value the argument has.
func (x Argument) Form() Form { return formOf(x.Value) }

// FromSource is the segments that came of a source as a request names it: what the agent wrote
// to get the segment, with the name of the tool, holds the name, or every word of it that
// means something.
func (a *Assembly) FromSource(name string) (out Set) {
	name = squeeze(cutValue(name))
	var want []string
	for _, w := range words(name) {
		if len(w) > 2 && !strings.Contains(stopWords, " "+w+" ") {
			want = append(want, w)
		}
	}
	if len(want) == 0 {
		return ""
	}
	for i := range a.Segments {
		s := &a.Segments[i]
		got := words(s.Source.Origin.Tool + " " + s.Call[:min(len(s.Call), maxValue)])
		if !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(got, w) }) {
			out = out.Union(SetOf(i))
		}
	}
	return out
}

// appendOrigins appends what has to be looked for of one argument: a critical one itself, or
// each element of a list that is written as one text; of others the atoms.
func appendOrigins(list []Origin, path, text string, critical bool) []Origin {
	add := func(value string, inside bool) {
		o := Origin{Argument: frame.Label(path), path: path, value: value, Form: formOf(value), Inside: inside}
		if len(list) <= maxOrigins && !slices.ContainsFunc(list, func(x Origin) bool { return x.path == path && x.value == value }) {
			list = append(list, o)
		}
	}
	if !critical {
		for _, atom := range Atoms(text) {
			if v := atom.Critical[0].Value; atom.Tool != "amount" || strings.ContainsAny(text, "$\u20ac\u00a3\u00a5") {
				add(v, true)
			}
		}
		return list
	}
	if v := canonical(text); formOf(v) != FormText || !strings.ContainsAny(text, ",;\n") {
		add(v, false)
		return list
	}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ';' || r == '\n' }) {
		if v := canonical(part); v != "" {
			add(v, false)
		}
	}
	return list
}

// search finds the values that are not trusted in the segments. A URL that stands nowhere is
// trusted if its host is, and else looked for by its host.
func (a *Assembly) search(list []Origin, trusted *vocabulary) {
	var wanted []*Origin
	for i := range list {
		if !list[i].Trusted {
			wanted = append(wanted, &list[i])
		}
	}
	if len(wanted) == 0 {
		return
	}
	for i := range a.Segments {
		a.searchSegment(i, wanted)
	}
	for _, o := range wanted {
		if o.Form != FormURL || o.Segments != "" {
			continue
		}
		host := hostOf(o.value)
		if o.Trusted = trusted.holdsHost(host); o.Trusted {
			continue
		}
		for i := range a.Segments {
			if v := (&vocabulary{text: a.Segments[i].Text}); v.holdsHost(host) {
				o.Segments, o.Composed = o.Segments.Union(SetOf(i)), true
				o.whole = o.whole.Union(SetOf(i))
			}
		}
	}
}

// searchSegment notes where in segment i the values stand.
func (a *Assembly) searchSegment(i int, wanted []*Origin) {
	text := a.Segments[i].Text
	found := make([]bool, len(wanted))
	for s := range unitsOf(text) {
		unit := &vocabulary{text: decoded(text[s.Start:s.End])}
		for k, o := range wanted {
			if unit.holds(o.value) {
				found[k] = true
				if a.single(i) {
					o.spans = append(o.spans, Span{i, s.Start, s.End})
				} else {
					o.whole = o.whole.Union(SetOf(i))
				}
			}
		}
	}
	var all *vocabulary
	for k, o := range wanted {
		if !found[k] {
			if all == nil {
				all = &vocabulary{text: text}
			}
			if found[k] = all.holds(o.value); found[k] {
				o.whole = o.whole.Union(SetOf(i))
			}
		}
		if found[k] {
			o.Segments = o.Segments.Union(SetOf(i))
		}
	}
}

// hostOf is the host of a canonical URL.
func hostOf(url string) string {
	host := strings.TrimPrefix(url, "u:")
	if i := strings.IndexAny(host, "/?#:"); i >= 0 {
		host = host[:i]
	}
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	return strings.TrimPrefix(host, "www.")
}

// Without is the variant that withholds the units of text which hold the values, and the whole
// of a segment where that is not possible. ok is false if there is nothing to withhold.
func (a *Assembly) Without(values ...Origin) (v Variant, ok bool) {
	var spans []Span
	var whole Set
	for i := range values {
		spans = append(spans, values[i].spans...)
		whole = whole.Union(values[i].whole)
	}
	spans = slices.DeleteFunc(spans, func(s Span) bool { return whole.Has(s.Segment) })
	kind := KindWithhold
	if len(spans) == 0 {
		kind = KindRemove
	}
	v = Variant{Kind: kind, Kept: AllOf(len(a.Segments)).Minus(whole), Without: SpansOf(spans...)}
	return v, whole != "" || len(spans) > 0
}

// A Rival is what an answer to a variant says of one value: the same tool with another value.
type Rival struct {
	// Other: the answer calls the tool with another value there, and not with this one.
	Other bool `json:"other,omitempty"`
	// Sourced: every critical value of that call is trusted or stands in what was shown.
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
			slices.ContainsFunc(values, func(o Origin) bool { return o.Inside || o.has(&other) })}
		if !r.Other {
			continue
		}
		r.Known = known[other.Digest()]
		r.Sourced = !slices.ContainsFunc(other.Critical, func(x Argument) bool {
			withheld := slices.ContainsFunc(values, func(o Origin) bool { return o.path == x.Path })
			return (withheld || formOf(x.Value).Names()) && !left.holds(x.Value)
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

// has reports whether a proposal has any value at the place of this one.
func (o *Origin) has(p *Proposal) bool {
	return slices.ContainsFunc(p.Critical, func(x Argument) bool { return x.Path == o.path })
}

func (o *Origin) plain() string {
	if o.Form != FormText {
		return o.value[2:]
	}
	return o.value
}

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
