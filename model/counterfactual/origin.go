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
	// Guessed: no argument of the call has a name that says what it decides, and this may be one that does.
	Guessed bool
	// Leaks: a reader sends to the web what only another tool has returned.
	Leaks bool
	// Minor: the argument does not decide where the call goes, and a segment holds the value.
	Minor bool
	// Composed: Segments hold only the host of this URL, or words of it.
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
	FormTime   Form = "time"
	FormPhone  Form = "phone"
	FormSecret Form = "secret" // by where it stands: see secretsIn
)

var forms = map[string]Form{"n:": FormNumber, "d:": FormDate, "e:": FormMail, "i:": FormIBAN, "u:": FormURL, "t:": FormTime, "p:": FormPhone, "s:": FormSecret}

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
func (f Form) Names() bool { return f == FormMail || f == FormIBAN || f == FormURL || f == FormPhone }

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
	secrets []string          // of the segments, once they are sought
	sought  bool
}

// A place is where one value stands.
type place struct {
	trusted, composed bool
	segments, whole   Set
	spans             []Span
}

// Finder makes one.
func (a *Assembly) Finder(p *Privileges) *Finder {
	return &Finder{a: a, p: p, trusted: a.trusted(), known: map[string]*place{}}
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
		leaks := at.segments != "" && !slices.ContainsFunc(at.segments.List(), func(i int) bool { return f.a.Segments[i].Source.Origin.Tool == frame.Label(c.Name) })
		if o.Leaks && !leaks {
			continue
		}
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
	leaks := rule.Privilege == 0 && goesOut(c.Name)
	each := func(critical func(path string, prose bool) bool) {
		list = nil
		flatten(doc.Root(), "", func(path string, v strictjson.Value) {
			text := v.Text()
			if v.Kind() != '"' {
				text = string(v.Raw())
			}
			list = appendOrigins(list, path, text, critical(path, isProse(text)), rule.free(path) || v.Kind() != '"' && v.Kind() != '0')
			if len(list) <= maxOrigins {
				list = append(list, f.secretsOf(path, text)...)
			}
			if leaks && len(list) <= maxOrigins {
				list = append(list, appendLeaks(path, text)...)
			}
		})
	}
	none := true
	each(func(path string, prose bool) bool {
		yes := rule.critical(path, prose)
		none = none && !yes
		return yes
	})
	if none && len(list) > 0 && f.p.PrivilegeOf(c) > 0 {
		// The names say nothing, as those of another language do: every short value counts.
		each(func(path string, prose bool) bool { return !prose && !rule.free(path) })
		for i := range list {
			list[i].Guessed = !list[i].Minor && !list[i].Inside
		}
	}
	minor := 0
	for i := range list {
		if list[i].Minor {
			minor++
		}
	}
	return list, minor <= maxMinor && len(list)-minor <= maxOrigins
}

// goesOut reports whether the name of a reader says that it asks the web.
func goesOut(tool string) (yes bool) {
	for w := range nameWords(tool[:min(len(tool), maxGuessed)]) {
		yes = yes || outward()[w]
	}
	return yes
}

// appendLeaks are the values in an argument of a reader that tell the web something: accounts, addresses and long numbers.
func appendLeaks(path, text string) (out []Origin) {
	add := func(value string) {
		out = append(out, Origin{Argument: frame.Label(path), path: path, value: value, Form: formOf(value), Inside: true, Leaks: true})
	}
	for _, atom := range Atoms(text) {
		if v := atom.Critical[0].Value; formOf(v).Names() && formOf(v) != FormURL {
			add(v)
		}
	}
	for w := range strings.FieldsFuncSeq(cutValue(text), func(r rune) bool { return r < '0' || r > '9' }) {
		if v := canonical(w); len(w) >= 6 && len(out) < maxProposals {
			add(v)
		}
	}
	return out
}

// Path is the canonical path of the argument, which is third-party text.
func (o *Origin) Path() string { return o.path }

// Value is the canonical value, which is third-party text.
func (o *Origin) Value() string { return o.value }

// Trusts reports of a canonical value whether the user's or the operator's words hold it.
func (a *Assembly) Trusts() func(value string) bool { return a.trusted().holds }

// trusted is the vocabulary of the user and the operator, who may say numbers and times in words.
func (a *Assembly) trusted() *vocabulary {
	v := &vocabulary{text: a.Task + "\n" + a.Instructions}
	v.prepare()
	v.spoken()
	return v
}

// Form is what kind of value the argument has.
func (x Argument) Form() Form { return formOf(x.Value) }

// FromSource is the segments that came of a source as a request names it: what the agent wrote
// to get the segment, with the name of the tool, holds the name, or every word of it that
// means something. Where the name finds an id, it is also what was read by that id.
func (a *Assembly) FromSource(name string) (out Set) {
	out = a.NamedSource(name)
	for i := range a.Segments {
		if !out.Has(i) && out != "" && a.askedBy(i, out) {
			out = out.Union(SetOf(i))
		}
	}
	return out
}

// NamedSource is FromSource without what was read by an id that a source has.
func (a *Assembly) NamedSource(name string) (out Set) {
	want := sourceWords(name)
	for i := range a.Segments {
		if s := &a.Segments[i]; saysAll(want, s.Source.Origin.Tool, s.Call) {
			out = out.Union(SetOf(i))
		}
	}
	return out
}

// AskedFor reports whether a call of the agent names a source, whatever became of its result.
func (a *Assembly) AskedFor(name string) bool {
	want := sourceWords(name)
	return slices.ContainsFunc(a.Prior, func(c Call) bool { return saysAll(want, c.Name, string(c.Arguments)) })
}

// sourceWords are the words of the name of a source that mean something.
func sourceWords(name string) (out []string) {
	for _, w := range words(squeeze(cutValue(name))) {
		if len(w) > 2 && !strings.Contains(stopWords, " "+w+" ") {
			out = append(out, w)
		}
	}
	return out
}

// saysAll reports whether a call has all of some words.
func saysAll(want []string, tool, args string) bool {
	got := words(tool + " " + args[:min(len(args), maxValue)])
	return len(want) > 0 && !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(got, w) })
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
	atoms := func() {
		for _, atom := range Atoms(text) {
			if v := atom.Critical[0].Value; formOf(v).Names() {
				add(v, true, false)
			}
		}
	}
	if v := canonical(text); formOf(v) != FormText || !strings.ContainsAny(text, ",;\n") || isProse(text) {
		if add(v, false, false); formOf(v) == FormText {
			atoms()
		}
		return list
	}
	defer atoms()
	for part := range strings.FieldsFuncSeq(text, listed) {
		if v := canonical(part); v != "" {
			add(v, false, false)
		}
	}
	return list
}

// strangeWords are the words of a URL that name something and that the user has not said.
func (f *Finder) strangeWords(url string) (out []string) {
	for _, w := range words(url[2:]) {
		if len(w) > 3 && !slices.Contains(urlWords, w) && !containsWords(f.trusted.squeezed, w, "") {
			out = append(out, w)
		}
	}
	return out
}

// urlWords are words of URLs that name nothing.
var urlWords = []string{"https", "http", "html", "index", "docs", "blob", "tree", "main", "master", "issues", "issue", "pull", "search", "query", "title", "wiki", "page", "pages", "about", "help", "blog", "download", "release", "releases", "latest"}

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
		if at.trusted = f.trusted.holdsHost(host) && f.tenantIsTrusted(value, host); at.trusted {
			continue
		}
		strange := f.strangeWords(value)
		for i := range f.a.Segments {
			text := squeeze(f.a.Segments[i].Text)
			if containsWords(text, host, hostJoins) || slices.ContainsFunc(strange, func(w string) bool { return containsWords(text, w, "") }) {
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
