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

// maxOrigins bounds the values of one call that are looked for.
const maxOrigins = 64

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
	return list, len(list) <= maxOrigins
}

// Path is the canonical path of the argument, which is third-party text.
func (o *Origin) Path() string { return o.path }

// reaching are words of names of arguments that a tool connects to.
var reaching = []string{"url", "urls", "uri", "link", "href", "host", "hostname", "domain", "webhook", "endpoint", "ip"}

// local are words of names of arguments that hold a place on this machine.
var local = []string{"path", "paths", "file", "files", "filename", "filepath", "folder", "dir", "directory"}

// Reaches reports whether a tool that gets the value may send something there.
func (o *Origin) Reaches() bool {
	if o.Form == FormURL || o.Form == FormMail {
		return true
	}
	_, leaf := cutLast(o.path, ".")
	named := words(leaf)
	is := func(list []string) bool {
		return slices.ContainsFunc(named, func(w string) bool { return slices.Contains(list, w) })
	}
	return !o.Inside && (is(reaching) || !is(local) && hostLike(o.plain()))
}

// MayReach is a quick look at the arguments of a call: false if none of its values Reaches.
func MayReach(args []byte) bool {
	s := strings.ToLower(string(args))
	for i := 1; i+1 < len(s); i++ { // a host has a dot between two letters or digits
		if s[i] == '.' && letter(s[i-1]) != 0 && letter(s[i+1]) != 0 {
			return true
		}
	}
	return slices.ContainsFunc([]string{`\`, "//", "@", `ip"`}, func(sign string) bool { return strings.Contains(s, sign) }) ||
		slices.ContainsFunc(reaching, func(w string) bool { return len(w) > 2 && strings.Contains(s, w) })
}

// extensions of files that look like the end of a host, beside those of which no domain is.
const extensions = " md py rs sh pl zip mov ps so cc cd ml tf app doc docx pdf txt csv tsv json jsonl yaml yml toml xml html htm log ini cfg conf lock go js ts jsx tsx java c h cpp hpp rb php sql png jpg jpeg gif svg webp mp3 mp4 wav tar gz tgz xz bz2 exe dll bin bak tmp ipynb xls xlsx ppt pptx odt ods rtf tex bib env "

// hostLike reports whether a text that is no URL by its spelling begins with a host all the
// same: "//example.com/x", "example.com:8080/x".
func hostLike(s string) bool {
	rest, slashes := strings.CutPrefix(strings.ReplaceAll(s, `\`, "/"), "//")
	end := strings.IndexAny(rest, "/?#:")
	if end < 0 {
		end = len(rest)
	}
	host := rest[:end]
	_, last := cutLast(host, ".")
	if host == last || len(host) > 253 || strings.ContainsAny(host, " \t\n@,") || strings.Contains(host, "..") || host[0] == '.' {
		return slashes && host != ""
	}
	return slashes || len(last) > 1 && !digits(last) && !strings.Contains(extensions, " "+strings.ToLower(last)+" ") || end < len(rest) && rest[end] != ':' && digits(last)
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
		if len(list) <= maxOrigins && !slices.ContainsFunc(list, func(x Origin) bool { return x.path == path && x.value == value }) {
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

// hostOf is the host of a canonical URL.
func hostOf(url string) string {
	host := strings.TrimPrefix(url, "u:")
	if i := strings.IndexAny(host, "/?#"); i >= 0 {
		host = host[:i]
	}
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		host = host[:i]
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
