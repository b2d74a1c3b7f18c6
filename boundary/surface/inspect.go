// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A Hit is hidden text that pass 1 has found in one string.
type Hit struct {
	Place
	Code       finding.Code // of the first hidden character
	Start, End int          // bytes of it in the decoded string
	text       string       // the string: third-party text, for [Hit.Shown] alone
}

// Shown is the string around the first hidden character with everything hidden
// spelled out, for a person: one line of ASCII, a few hundred bytes.
func (h Hit) Shown() string {
	const around = 48
	from, to := max(0, h.Start-around), min(len(h.text), h.End+3*around)
	return finding.Quote(h.text[from:h.Start]) + " " + finding.Quote(h.text[h.Start:h.End]) + " " + finding.Quote(h.text[h.End:to])
}

// Messages are what the hidden characters of the string say, where they can be
// decoded. They are for a person, by finding.Quote, and never for a model.
func (h Hit) Messages() []scrub.Hidden { return scrub.Reveal(h.text) }

// maxHits bounds what an Inspection spells out.
const maxHits = 256

// An Inspection is what pass 1 has found.
type Inspection struct {
	Hits  []Hit
	More  int     // hits beyond those
	Blobs []Place // not inspected: data URIs that hold no text
	size  int     // of all answers
	keys  map[Key]bool
	apart bool // hidden text stands in no item, as in a cursor
}

// A HiddenTextError rejects a surface in which text is hidden.
type HiddenTextError struct{ inspection *Inspection }

// Error names the first place, the item's name quoted.
func (e *HiddenTextError) Error() string {
	first := e.inspection.Hits[0]
	item := first.Key.Kind.String()
	if first.Key.Name != "" {
		item += " " + finding.Quote(first.Key.Name)
	}
	text := fmt.Sprintf("surface: hidden text: %s at %s %s, byte %d", first.Code, item, first.Pointer, first.Start)
	if more := len(e.inspection.Hits) + e.inspection.More - 1; more > 0 {
		text += fmt.Sprintf(", and %d more places", more)
	}
	return text
}

// Err is a *HiddenTextError if anything was found, else nil.
func (in *Inspection) Err() error {
	if len(in.Hits) == 0 {
		return nil
	}
	return &HiddenTextError{in}
}

// touches reports whether hidden text stands in the item.
func (in *Inspection) touches(k Key) bool { return in.keys[k] }

// Rules shape pass 1. The zero value looks for every character that a reader does not
// see, but for those that an emoji or a language needs; with Narrow only for the 151 code
// points of SUSPICIOUS_UNICODE.
type Rules struct {
	Narrow bool
	// Reject rejects a server in whose surface text is hidden. Otherwise only the item is
	// withheld, and of the server's own introduction only the text.
	Reject bool
	// DangerouslyAllow lists the digests of items whose hidden text a person has seen
	// and accepts. Any change of such an item ends that.
	DangerouslyAllow []Digest
	// Tolerates are the parts of items whose change holds no item.
	Tolerates Tolerated
}

var narrow, wide = compileOnce(scrub.Policy{Profile: scrub.Surface}), compileOnce(scrub.Policy{Profile: scrub.Surface, Wide: true})

// compileOnce returns the scrubber of a policy, which is compiled when it is first asked for.
func compileOnce(p scrub.Policy) func() *scrub.Scrubber {
	return sync.OnceValue(func() *scrub.Scrubber {
		s, err := scrub.Compile(p)
		if err != nil {
			panic(err) // a constant of this package
		}
		return s
	})
}

// Inspect is pass 1: it looks for hidden text in every string of every answer, names,
// cursors and the text inside data URIs among them, on the raw text. It costs too
// little to be remembered, so it is done at every start. spec: surface/5
func (s *Surface) Inspect(r Rules) *Inspection {
	in := newInspector(r, s.size)
	for _, it := range s.items {
		if it.isIn(r.DangerouslyAllow) {
			in.allowed = append(in.allowed, it.Key)
		}
	}
	for _, a := range slices.Concat(s.answers, s.more) {
		in.answer(a)
	}
	return in.out
}

func newInspector(r Rules, size int) *inspector {
	return &inspector{wide: !r.Narrow, out: &Inspection{size: size}}
}

type inspector struct {
	wide    bool
	allowed []Key
	result  scrub.Result
	hello   strictjson.Value // the server's introduction
	apart   bool             // what is looked at stands in no item
	of      Key              // the definition that item is about
	item    scrub.Allowance  // what the strings of the definition keep together
	key     Key
	out     *Inspection
}

// answer walks one result; places in an entry of a list count from the entry.
func (in *inspector) answer(a answer) {
	l := listOf(a.method)
	root := a.doc.Root()
	if l == nil {
		in.key, in.hello, in.apart = Key{Kind: Server}, root, false
		in.value(root, nil)
		return
	}
	i := 0
	for name, val := range root.Members() {
		at := trail{nil, name, i}
		in.key = Key{List, l.method}
		if RepeatsName(name.Text(), val, in.hello) {
			in.key = Key{Kind: Server}
		}
		in.apart = isBookkeeping(name.Text(), val)
		in.visit(name, &at, true)
		if name.Text() != l.member {
			in.value(val, &at)
		} else {
			for e := range val.Elements() {
				if !harmless(e.Raw()) {
					in.key = Key{l.kind, e.Get(l.key).Text()}
					walk(e, nil, in.visit)
				}
			}
		}
		i++
	}
}

func (in *inspector) value(v strictjson.Value, t *trail) {
	if !harmless(v.Raw()) {
		walk(v, t, in.visit)
	}
}

// harmless reports, without looking at the strings one by one, that none of them can
// hold a hidden character, a long row of white space or a data URI: all is ASCII, and of what
// JSON can escape there are only quotes, backslashes, slashes, tabs and line feeds, these few.
func harmless(raw []byte) bool {
	if bytes.Contains(raw, blanks) || bytes.Count(raw, lineFeed) >= fewLines {
		return false
	}
	b := raw
	for ; len(b) >= 8; b = b[8:] {
		if binary.LittleEndian.Uint64(b)&0x8080808080808080 != 0 {
			return false
		}
	}
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	if bytes.IndexByte(raw, 0x7f) >= 0 {
		return false
	}
	for rest := raw; ; {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 || i+1 == len(rest) {
			break
		}
		switch rest[i+1] {
		case 'u', 'b', 'f', 'r':
			return false
		}
		rest = rest[i+2:]
	}
	for rest := raw; ; {
		i := bytes.IndexByte(rest, ':')
		if i < 0 {
			return true
		}
		if endsInData(rest[:i]) {
			return false
		}
		rest = rest[i+1:]
	}
}

// What a row of white space that scrub refuses in a description has at least.
const fewLines = 32

var blanks, lineFeed = bytes.Repeat([]byte(" "), 64), []byte(`\n`)

// endsInData reports whether JSON ends in the scheme "data". Readers of URIs skip the
// tabs and line feeds in it.
func endsInData(raw []byte) bool {
	for want := []byte("data"); len(want) > 0; {
		n := len(raw)
		switch {
		case n >= 2 && raw[n-2] == '\\' && (raw[n-1] == 't' || raw[n-1] == 'n'):
			raw = raw[:n-2]
		case n >= 1 && raw[n-1]|0x20 == want[len(want)-1]:
			raw, want = raw[:n-1], want[:len(want)-1]
		default:
			return false
		}
	}
	return true
}

func (in *inspector) visit(v strictjson.Value, t *trail, isName bool) {
	text := v.Text()
	in.check(text, t, isName, "")
	inner, form := insideDataURI(text)
	for _, text := range inner {
		in.check(text, t, isName, "data URI")
	}
	if form == blobInside && len(in.out.Blobs) < maxHits {
		in.out.Blobs = append(in.out.Blobs, t.place(in.key, isName))
	}
}

func (in *inspector) check(text string, t *trail, isName bool, within string) {
	if at, _, _ := ucd.Scan(text, 0, ucd.Hidden); at == len(text) && (!in.wide || !scrub.MayHideInSpace(text)) {
		return
	}
	// A name has no use for them: two that look the same would be two names.
	identifier := isName || text == in.key.Name
	if !in.wide || identifier {
		narrow().Scrub(text, &in.result)
	}
	if in.wide && (!identifier || in.result.Refused == 0) {
		if in.of != in.key {
			in.of, in.item = in.key, scrub.Allowance{}
		}
		in.result.Item = &in.item
		wide().Scrub(text, &in.result)
		in.result.Item = nil
	}
	if in.result.Refused == 0 || !in.apart && slices.Contains(in.allowed, in.key) {
		return
	}
	in.out.apart = in.out.apart || in.apart
	if in.out.keys == nil {
		in.out.keys = map[Key]bool{}
	}
	in.out.keys[in.key] = true
	if len(in.out.Hits) == maxHits {
		in.out.More++
		return
	}
	note := in.result.RefusedAt
	h := Hit{Place: t.place(in.key, isName), Code: note.Class.Code(), Start: note.Start, End: note.End, text: text}
	h.Within = within
	in.out.Hits = append(in.out.Hits, h)
}
