// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"maps"
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
	// Minor: the argument does not decide where the call goes, and a segment holds the value.
	Minor bool
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

// Bounds of the values of one call that are looked for: those that decide, and the minor ones,
// of which a call with a table has many.
const (
	maxOrigins = 64
	maxMinor   = 256
)

// A Finder says where the values of calls come from. It remembers what it has found, so that
// several calls cost one pass over the context. It is not for concurrent use.
type Finder struct {
	a       *Assembly
	p       *Privileges
	trusted *vocabulary
	known   map[string]*place // by value
}

// A place is where one value stands.
type place struct {
	trusted, composed bool
	segments, whole   Set
	spans             []Span
}

// Finder makes one.
func (a *Assembly) Finder(p *Privileges) *Finder {
	return &Finder{a: a, p: p, trusted: &vocabulary{text: a.Task + "\n" + a.Instructions}, known: map[string]*place{}}
}

// Prepare looks for the values of several calls at once.
func (f *Finder) Prepare(calls ...Call) {
	var all []Origin
	for _, c := range calls {
		if list, ok := f.values(c); ok {
			all = append(all, list...)
		}
	}
	f.search(all)
}

// Origins says of each critical argument of a call, of each other short one that a segment
// holds, and of each atom in its free text, where it comes from. ok is false if the arguments
// cannot be read, or are too many. The cost is linear in the size of the context.
func (f *Finder) Origins(c Call) (list []Origin, ok bool) {
	all, ok := f.values(c)
	if !ok {
		return nil, false
	}
	f.search(all)
	for _, o := range all {
		at := f.known[o.value]
		o.Trusted, o.Segments, o.Composed, o.spans, o.whole = at.trusted, at.segments, at.composed, at.spans, at.whole
		if !o.Minor || !o.Trusted && o.Segments != "" {
			list = append(list, o)
		}
	}
	return list, true
}

// Origins is that of a Finder, for one call.
func (a *Assembly) Origins(p *Privileges, c Call) (list []Origin, ok bool) {
	return a.Finder(p).Origins(c)
}

// values are the values of a call that are looked for.
func (f *Finder) values(c Call) (list []Origin, ok bool) {
	rule := f.p.rule(c.Name)
	var doc strictjson.Doc
	args := c.Arguments
	if len(strings.TrimSpace(string(args))) == 0 {
		args = []byte("{}")
	}
	if doc.Reset(args, strictjson.Limits{Bytes: 1 << 20, Depth: 32, Values: 1 << 16}) != nil || doc.Root().Kind() != '{' {
		return nil, false
	}
	each := func(critical func(path string, prose bool) bool) {
		list = nil
		flatten(doc.Root(), "", func(path string, v strictjson.Value) {
			text := v.Text()
			if v.Kind() != '"' {
				text = string(v.Raw())
			}
			list = appendOrigins(list, path, text, critical(path, isProse(text)), rule.free(path) || v.Kind() != '"' && v.Kind() != '0')
		})
	}
	none := true
	each(func(path string, prose bool) bool {
		yes := rule.critical(path, prose)
		none = none && !yes
		return yes
	})
	if none && len(list) > 0 && rule.Privilege > 0 {
		// The names say nothing, as those of another language do: every short value counts.
		each(func(path string, prose bool) bool { return !prose && !rule.free(path) })
	}
	minor := 0
	for i := range list {
		if list[i].Minor {
			minor++
		}
	}
	return list, minor <= maxMinor && len(list)-minor <= maxOrigins
}

// Path is the canonical path of the argument, which is third-party text.
func (o *Origin) Path() string { return o.path }

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
	// A search by that name gives an id, and the text is read by the id.
	for i := range a.Segments {
		if !out.Has(i) && out != "" && a.askedBy(i, out) {
			out = out.Union(SetOf(i))
		}
	}
	return out
}

// askedBy reports whether what the agent wrote to get segment i stands in one of the others
// before it.
func (a *Assembly) askedBy(i int, others Set) (yes bool) {
	var doc strictjson.Doc
	if call := a.Segments[i].Call; len(call) > maxValue || doc.Reset([]byte(call), strictjson.Limits{}) != nil {
		return false
	}
	flatten(doc.Root(), "", func(_ string, v strictjson.Value) {
		text := v.Text()
		if v.Kind() != '"' {
			text = string(v.Raw())
		}
		value := canonical(text)
		for j := range others.Places() {
			yes = yes || j < i && len(text) > 2 && (&vocabulary{text: a.Segments[j].Text}).holds(value)
		}
	})
	return yes
}

// appendOrigins appends what has to be looked for of one argument: a critical one itself, or
// each element of a list that is written as one text; of others the atoms.
func appendOrigins(list []Origin, path, text string, critical, free bool) []Origin {
	add := func(value string, inside, minor bool) {
		o := Origin{Argument: frame.Label(path), path: path, value: value, Form: formOf(value), Inside: inside, Minor: minor}
		if len(list) <= maxOrigins+maxMinor && !slices.ContainsFunc(list, func(x Origin) bool { return x.path == path && x.value == value }) {
			list = append(list, o)
		}
	}
	_, leaf := cutLast(path, ".")
	if host, ok := strings.CutPrefix(strings.TrimSpace(text), "//"); (ok || hostLike(host)) && !slices.ContainsFunc(words(leaf), func(w string) bool { return slices.Contains(local, w) }) && !isProse(text) && hostLike(strings.TrimSpace(text)) {
		if v, ok := canonURL("https://" + host); ok {
			add(v, false, false)
			return list
		}
	}
	if !critical {
		for _, atom := range Atoms(text) {
			if v := atom.Critical[0].Value; atom.Tool != "amount" || strings.ContainsAny(text, "$\u20ac\u00a3\u00a5") {
				add(v, true, false)
			}
		}
		if v := canonical(text); !free && !isProse(text) && len(v) > 2 {
			add(v, false, true)
		}
		return list
	}
	if v := canonical(text); formOf(v) != FormText || !strings.ContainsAny(text, ",;\n") || isProse(text) {
		add(v, false, false)
		return list
	}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ';' || r == '\n' }) {
		if v := canonical(part); v != "" {
			add(v, false, false)
		}
	}
	return list
}

// search finds the values in the trusted text and, where that does not hold them, in the
// segments. A URL that stands nowhere is trusted if its host is, and else looked for by its host.
func (f *Finder) search(list []Origin) {
	wanted := map[string]*place{}
	for i := range list {
		v := list[i].value
		if f.known[v] != nil {
			continue
		}
		at := &place{trusted: f.trusted.holds(v)}
		if f.known[v] = at; !at.trusted {
			wanted[v] = at
		}
	}
	if len(wanted) == 0 {
		return
	}
	for i := range f.a.Segments {
		f.a.searchSegment(i, wanted)
	}
	for value, at := range wanted {
		if formOf(value) != FormURL || at.segments != "" {
			continue
		}
		host := hostOf(value)
		if at.trusted = f.trusted.holdsHost(host); at.trusted {
			continue
		}
		for i := range f.a.Segments {
			if containsWords(squeeze(f.a.Segments[i].Text), host, hostJoins) {
				at.segments, at.composed = at.segments.Union(SetOf(i)), true
				at.whole = at.whole.Union(SetOf(i))
			}
		}
	}
}

// searchSegment notes where in segment i the values stand.
func (a *Assembly) searchSegment(i int, wanted map[string]*place) {
	text := a.Segments[i].Text
	all := &vocabulary{text: decoded(text)}
	var here []string
	for v, at := range wanted {
		if all.holds(v) {
			here = append(here, v)
			at.segments = at.segments.Union(SetOf(i))
		}
	}
	if strings.Contains(text, `\`) { // the escapes of a JSON text may hide a value
		here = slices.Collect(maps.Keys(wanted))
	}
	if len(here) == 0 {
		return
	}
	placed := map[string]int{}
	look := func(s Span) {
		unit := &vocabulary{text: decoded(text[s.Start:s.End])}
		for _, v := range here {
			if at := wanted[v]; unit.holds(v) {
				placed[v]++
				at.spans = append(at.spans, Span{i, s.Start, s.End})
				at.segments = at.segments.Union(SetOf(i))
			}
		}
	}
	if a.single(i) {
		for s := range unitsOf(text) {
			look(s)
		}
		here = slices.DeleteFunc(here, func(v string) bool { return 0 < placed[v] && placed[v] <= maxPlaces })
		var last Span
		for s := range unitsOf(text) { // a value may stand in two neighbours
			if len(here) == 0 {
				break
			}
			if last.End > 0 {
				look(Span{Start: last.Start, End: s.End})
			}
			last = s
		}
	}
	for _, v := range here {
		if at := wanted[v]; (placed[v] == 0 || placed[v] > maxPlaces) && at.segments.Has(i) {
			at.whole = at.whole.Union(SetOf(i))
		}
	}
}

// maxPlaces bounds the units of one segment that are withheld for one value: where more hold it,
// the segment is withheld.
const maxPlaces = 256

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
