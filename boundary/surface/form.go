// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Tolerated are the parts of definitions whose change alone holds no item: Date, Count, Version, Icons, Meta, and enums by their
// place. Only a value that stays of its type is tolerated. spec: surface/6
type Tolerated []string

// The parts.
const (
	Date    = "date"    // in a text, and lastModified
	Count   = "count"   // a number in a text, and the size of a resource
	Version = "version" // in a text, and that of the server
	Icons   = "icons"   // the address of a picture, at the same origin, or the picture in it
	Meta    = "_meta"   // numbers, dates, versions and ids in it
	Enum    = "enum:"   // and the JSON pointer of the enum
)

// Tolerable reports whether s names a part.
func Tolerable(s string) bool {
	place, isEnum := strings.CutPrefix(s, Enum)
	return slices.Contains([]string{Date, Count, Version, Icons, Meta}, s) ||
		isEnum && len(s) <= 512 && strings.HasPrefix(place, "/") && strings.HasSuffix(place, "/enum") && !strings.ContainsFunc(place, func(r rune) bool { return r <= ' ' || r > '~' })
}

func (t Tolerated) has(part string) bool { return slices.Contains(t, part) }

// formOf returns the form of an item that is compared: its canonical form, with the sets of its schemas in order and without
// repetition, and with a hole of its type for each tolerated part. A hole begins with a byte that no text of JSON has, so that
// a server cannot write one. spec: surface/2.5
func formOf(key Key, canonical []byte, t Tolerated) []byte {
	if len(t) == 0 && (key.Kind != Tool || !hasSets(canonical)) {
		return canonical
	}
	var doc strictjson.Doc
	if doc.Reset(canonical, itemLimits) != nil {
		return canonical
	}
	f := formWriter{t, make([]byte, 0, len(canonical)+64)}
	f.appendValue(doc.Root(), inEntry, "")
	return f.dst
}

// hasSets reports whether there may be a set, whose order does not count.
func hasSets(canonical []byte) bool {
	return slices.ContainsFunc([]string{`"required":[`, `"type":[`, `"dependentRequired":{`, `"dependencies":{`},
		func(s string) bool { return bytes.Contains(canonical, []byte(s)) })
}

// A position says by the place of a value how it is compared.
type position uint8

const (
	inData    position = iota // compared as it is
	inEntry                   // an item, and its members other than schemas
	inSchema                  // a JSON schema
	inSchemas                 // schemas by name, or a list of them
	inSets                    // sets or schemas by name
	inSet
	inEnum
	inMeta
	inIcons
)

// keywords gives the position under each keyword of JSON Schema. Under others stands data.
var keywords = map[string]position{
	"required": inSet, "type": inSet, "enum": inEnum, "dependentRequired": inSets, "dependencies": inSets,
	"properties": inSchemas, "patternProperties": inSchemas, "$defs": inSchemas, "definitions": inSchemas, "dependentSchemas": inSchemas,
	"allOf": inSchemas, "anyOf": inSchemas, "oneOf": inSchemas, "prefixItems": inSchemas,
	"items": inSchema, "additionalItems": inSchema, "additionalProperties": inSchema, "unevaluatedItems": inSchema, "unevaluatedProperties": inSchema,
	"contains": inSchema, "propertyNames": inSchema, "contentSchema": inSchema, "not": inSchema, "if": inSchema, "then": inSchema, "else": inSchema,
}

// positionOf returns the position of a member of an object at p.
func (p position) positionOf(name string, v strictjson.Value) position {
	switch p {
	case inSchema:
		return keywords[name]
	case inSchemas:
		return inSchema
	case inSets:
		if v.Kind() == '[' {
			return inSet
		}
		return inSchema
	case inMeta:
		if name == "ui" || strings.HasPrefix(name, "ui/") { // which page a client shows
			return inData
		}
		return inMeta
	case inEntry:
		switch name {
		case "inputSchema", "outputSchema":
			return inSchema
		case "_meta":
			return inMeta
		case "icons":
			return inIcons
		}
		return inEntry
	}
	return p
}

type formWriter struct {
	tolerated Tolerated
	dst       []byte
}

// appendValue appends the form of v. at is its JSON pointer.
func (f *formWriter) appendValue(v strictjson.Value, in position, at string) {
	switch kind := v.Kind(); {
	case kind == '{' && in != inData && in != inSet && in != inEnum:
		f.appendObject(v, in, at)
	case kind == '[' && (in == inSet || in == inEnum):
		f.appendSet(v, in == inEnum, at)
	case kind == '[' && in != inData:
		f.dst = append(f.dst, '[')
		if in == inSchemas {
			in = inSchema
		}
		i := 0
		for e := range v.Elements() {
			f.appendValue(e, in, at+"/"+strconv.Itoa(i))
			f.dst = append(f.dst, ',')
			i++
		}
		f.dst = closed(f.dst, ']')
	case in == inMeta && f.tolerated.has(Meta):
		f.dst = append(f.dst, holeForMeta(v)...)
	default:
		f.dst = append(f.dst, v.Raw()...)
	}
}

func (f *formWriter) appendObject(v strictjson.Value, in position, at string) {
	f.dst = append(f.dst, '{')
	for name, val := range v.Members() {
		n := name.Text()
		f.dst = append(strictjson.AppendQuote(f.dst, n), ':')
		if hole := f.holeFor(n, val, in); hole != "" {
			f.dst = append(f.dst, hole...)
		} else {
			f.appendValue(val, in.positionOf(n, val), at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(n))
		}
		f.dst = append(f.dst, ',')
	}
	f.dst = closed(f.dst, '}')
}

// appendSet appends the elements of a set, sorted and once. The order of an enum is content: forms show it, and a model may
// prefer the first value. A tolerated enum is a hole for its type.
func (f *formWriter) appendSet(v strictjson.Value, enum bool, at string) {
	var all []string
	for e := range v.Elements() {
		all = append(all, string(e.Raw()))
	}
	if !enum {
		slices.Sort(all)
		all = slices.Compact(all)
	}
	if enum && f.tolerated.has(Enum+at) && len(all) > 0 && len(all) <= maxEnum && !slices.ContainsFunc(all, func(s string) bool {
		return (s[0] == '"') != (all[0][0] == '"') || !patterns().enum.MatchString(s)
	}) {
		all = []string{"\x01enum" + map[bool]string{true: "string", false: "number"}[all[0][0] == '"']}
	}
	f.dst = append(append(append(f.dst, '['), strings.Join(all, ",")...), ']')
}

// Bounds of tolerated values.
const (
	maxEnum = 256     // values, each of at most 64 letters, digits and marks, without a space
	maxIcon = 1 << 20 // bytes of a picture
	maxURL  = 2048    // and of its address
)

// patterns returns the patterns of tolerated values. They are of this program: no pattern comes from a server.
var patterns = sync.OnceValue(func() (p struct{ enum, date, count, version, id, icon *regexp.Regexp }) {
	const (
		day    = `(?:0?[1-9]|[12][0-9]|3[01])`
		month  = `(?:0?[1-9]|1[0-2])`
		name   = `(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)`
		year   = `(?:19|20)[0-9]{2}`
		week   = `(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:day|sday|nesday|rsday|urday)?,? )?`
		clock  = `(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?(?: ?[AaPp][Mm])?(?: ?(?:Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2}))?`
		dates  = year + `-` + month + `-` + day + `|` + week + day + ` ` + name + ` ` + year + `|` + week + name + ` ` + day + `,? ` + year + `|` + day + `[./]` + day + `[./]` + year
		number = `[0-9]{1,3}(?:[,' ][0-9]{3}){1,3}|[0-9]{1,6}`
		parts  = `[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,6}(?:[-.]?(?:alpha|beta|rc|dev|pre|post|a|b)[.-]?[0-9]{0,6})?(?:\+g?[0-9a-f]{1,40})?`
		vers   = `[vV]?` + parts + `|[vV][0-9]{1,4}(?:\.[0-9]{1,4})?`
	)
	p.enum = regexp.MustCompile(`^(?:"[\pL\pN_.:/@+-]{1,64}"|-?[0-9]{1,15}(?:\.[0-9]{1,15})?)$`)
	p.date = regexp.MustCompile(`^(?:` + dates + `)(?:[T ](?:at )?` + clock + `)?|^` + clock)
	p.count, p.version = regexp.MustCompile(`^(?:`+number+`)`), regexp.MustCompile(`^(?:`+vers+`)`)
	p.id = regexp.MustCompile(`^(?:[0-9a-fA-F]{7,64}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$`)
	p.icon = regexp.MustCompile(`^(?:(https://[a-z0-9.:-]{1,256}/)[A-Za-z0-9/._~%?=&+-]*|(data:image/(?:png|jpeg|gif|webp);base64,)[A-Za-z0-9+/=]*)$`)
	for _, re := range []*regexp.Regexp{p.date, p.count, p.version} {
		re.Longest()
	}
	return p
})

// holeFor returns what stands for a member in the form, or "" if all of it is compared.
func (f *formWriter) holeFor(name string, v strictjson.Value, in position) string {
	kind := v.Kind()
	switch {
	case len(f.tolerated) == 0 || in == inData || in == inSchemas || in == inSets || in == inMeta:
	case kind == '"' && (name == "description" || name == "instructions" && in == inEntry):
		return f.replaceInText(v.Text())
	case in == inEntry && kind == '"' && name == "version" && f.tolerated.has(Version):
		return holeForAll(v, "version", patterns().version)
	case in == inEntry && kind == '"' && name == "lastModified" && f.tolerated.has(Date):
		return holeForAll(v, "date", patterns().date)
	case in == inEntry && kind == '0' && name == "size" && f.tolerated.has(Count):
		return "\x01count"
	case in == inIcons && kind == '"' && name == "src" && f.tolerated.has(Icons) && len(v.Text()) <= maxIcon:
		if m := patterns().icon.FindStringSubmatch(v.Text()); m != nil && (m[1] == "" || len(m[0]) <= maxURL) {
			return "\x01icon" + m[1] + m[2]
		}
	}
	return ""
}

// holeForAll returns a hole for a text that matches a pattern from its beginning to its end, or "".
func holeForAll(v strictjson.Value, what string, of *regexp.Regexp) string {
	if s := v.Text(); s != "" && len(of.FindString(s)) == len(s) {
		return "\x01" + what
	}
	return ""
}

func holeForMeta(v strictjson.Value) string {
	p := patterns()
	switch {
	case v.Kind() == '0' && len(v.Raw()) <= 20:
		return "\x01number"
	case v.Kind() != '"':
		return string(v.Raw())
	}
	return cmp.Or(holeForAll(v, "date", p.date), holeForAll(v, "id", p.id), holeForAll(v, "version", p.version), string(v.Raw()))
}

// replaceInText returns a text with a hole for each tolerated date, version and count that stands alone.
func (f *formWriter) replaceInText(s string) string {
	p := patterns()
	var b strings.Builder
	for at, from := 0, 0; ; at++ {
		if at == len(s) {
			return b.String() + string(strictjson.AppendQuote(nil, s[from:]))
		}
		if s[at] > '~' || !wordMayBegin(s, at) {
			continue
		}
		for _, part := range []struct {
			name string
			of   *regexp.Regexp
		}{{Date, p.date}, {Version, p.version}, {Count, p.count}} {
			n := 0
			if f.tolerated.has(part.name) {
				n = len(part.of.FindString(s[at:min(len(s), at+128)]))
			}
			if n > 0 && wordMayEnd(s, at+n) && !(part.name == Count && besideDigit(s, at, at+n)) {
				b.Write(strictjson.AppendQuote(nil, s[from:at]))
				b.WriteString("\x01" + part.name)
				at += n - 1
				from = at + 1
				break
			}
		}
	}
}

// wordMayBegin reports whether a word may begin at s[at].
func wordMayBegin(s string, at int) bool {
	return at == 0 || strings.IndexByte(" \t\n(~\"'", s[at-1]) >= 0
}

// wordMayEnd reports whether a word may end before s[at].
func wordMayEnd(s string, at int) bool {
	if at < len(s) && strings.IndexByte(".,;:!?", s[at]) >= 0 {
		at++
	}
	return at == len(s) || strings.IndexByte(" \t\n)\"'", s[at]) >= 0
}

// besideDigit reports whether a number stands beside s[from:to], with a space between them: together they are an account or
// a telephone number.
func besideDigit(s string, from, to int) bool {
	isDigit := func(i int) bool { return i >= 0 && i < len(s) && '0' <= s[i] && s[i] <= '9' }
	return isDigit(from-2) || isDigit(to+1)
}

// Tolerable returns the fewest parts that would have to be tolerated for the change not to be held, or nil if no parts
// suffice.
func (p *PinnedItem) Tolerable() Tolerated {
	if p.Approved == "" || p.Pending == "" {
		return nil
	}
	old, new := p.approved(), p.pending()
	all := Tolerated{Date, Count, Version, Icons, Meta}
	for _, f := range compare(old, new).Fields {
		schema, _, ok := strings.Cut(f.Path+"/", "/enum/")
		if part := Enum + schema + "/enum"; ok && Tolerable(part) && !all.has(part) {
			all = append(all, part)
		}
	}
	if !old.sameBut(new, all) {
		return nil
	}
	for i := len(all) - 1; i >= 0; i-- {
		if fewer := slices.Delete(slices.Clone(all), i, i+1); old.sameBut(new, fewer) {
			all = fewer
		}
	}
	return all
}
