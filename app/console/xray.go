// SPDX-License-Identifier: Apache-2.0

package console

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// An xray is what was found in one text. It is a function of the text alone.
type xray struct {
	text       string
	hidden     int // characters that show nothing
	characters int
	messages   []scrub.Hidden
	profiles   []fate
	found      []found
	alike      []alike
}

// Bounds of lists. What is beyond them is counted and not shown.
const (
	maxMessages = 50
	maxAlike    = 100
)

// A fate is what one profile makes of the text.
type fate struct {
	profile scrub.Profile
	clean   string
	edits   []scrub.Edit
	notes   []scrub.Note
	refused finding.Code
	at, end int // the first cause of that
}

// found is one code, with what each profile does about it.
type found struct {
	code  finding.Code
	at    int // the first place of it
	end   int
	times int
	does  []verb // by profile
}

// A verb is what a profile does about a finding.
type verb uint8

const (
	keeps verb = iota
	notes
	changes
	removes
	refuses
)

// allProfiles are in the order of the page.
var allProfiles = []scrub.Profile{scrub.MCP, scrub.Faithful, scrub.Veritas, scrub.Surface}

// looked returns what there is in a text.
func looked(text string) (*xray, error) {
	x := &xray{text: text, messages: scrub.Reveal(text), characters: ucd.Count(text)}
	for i := 0; i < len(text); {
		at, p, n := ucd.Scan(text, i, ucd.Hidden)
		if p&ucd.Hidden != 0 {
			x.hidden++
		}
		i = at + n
	}
	for _, profile := range allProfiles {
		s, err := scrub.Compile(scrub.Policy{Profile: profile})
		if err != nil {
			return nil, err
		}
		var r scrub.Result
		s.Scrub(text, &r)
		x.profiles = append(x.profiles, fate{profile, r.Clean.String(), r.Edits, r.Notes, r.Refused.Code(), r.RefusedAt.Start, r.RefusedAt.End})
	}
	x.gather()
	x.alike = alikeIn(text)
	return x, nil
}

// gather joins what the profiles found, by code.
func (x *xray) gather() {
	of := map[finding.Code]int{}
	note := func(profile int, code finding.Code, at, end int, v verb) {
		if code == "" {
			return
		}
		i, ok := of[code]
		if !ok {
			i = len(x.found)
			of[code] = i
			x.found = append(x.found, found{code: code, at: at, end: end, does: make([]verb, len(allProfiles))})
		}
		f := &x.found[i]
		if at < f.at {
			f.at, f.end = at, end
		}
		f.does[profile] = max(f.does[profile], v)
	}
	for p, fate := range x.profiles {
		count := map[finding.Code]int{}
		for _, e := range fate.edits {
			v := changes
			if e.OutEnd == e.Out {
				v = removes
			}
			note(p, e.Class.Code(), e.Start, e.End, v)
			count[e.Class.Code()]++
		}
		for _, n := range fate.notes {
			note(p, n.Class.Code(), n.Start, n.End, notes)
			count[n.Class.Code()] += n.Count
		}
		if fate.refused != "" {
			note(p, fate.refused, fate.at, max(fate.at, fate.end), refuses)
		}
		for code, n := range count {
			f := &x.found[of[code]]
			f.times = max(f.times, n)
		}
	}
}

// short is the beginning of a long text, cut between two characters.
func short(s string) string {
	const most = 2048
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "\u2026"
}

// An alike is a character that is taken for an ASCII character, in a word that has ASCII letters too.
type alike struct {
	shown rune
	as    byte
	word  string
	times int
}

func alikeIn(text string) (out []alike) {
	of := map[rune]int{}
	for i := 0; i < len(text); {
		at, _, _ := ucd.Scan(text, i, ucd.Confusable|ucd.NFKCActive)
		if at == len(text) {
			break
		}
		r, n, _ := ucd.Decode(text[at:])
		i = at + n
		as, ok := ucd.ASCIIPrototype(r)
		if !ok {
			if s := ucd.NFKC.String(string(r)); len(s) == 1 && r > 0x7F {
				as, ok = s[0], true
			}
		}
		if !ok || as <= ' ' {
			continue
		}
		word := wordAt(text, at, n)
		if !strings.ContainsFunc(word, func(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }) {
			continue
		}
		if k, known := of[r]; known {
			out[k].times++
			continue
		}
		if len(out) == maxAlike {
			continue
		}
		of[r] = len(out)
		out = append(out, alike{r, as, word, 1})
	}
	return out
}

// wordAt returns what stands around a character up to white space, at most 32 bytes to each side.
func wordAt(text string, at, n int) string {
	from, to := at, at+n
	for from > 0 && at-from < 32 && text[from-1] > ' ' {
		from--
	}
	for to < len(text) && to-at < 32 && text[to] > ' ' {
		to++
	}
	for from < at && text[from]&0xC0 == 0x80 {
		from++
	}
	for to > at+n && to < len(text) && text[to]&0xC0 == 0x80 {
		to--
	}
	return text[from:to]
}

// A point is one row of the list of code points: one that is not plain ASCII, or a stretch of ASCII.
type point struct {
	at, end int
	class   Own
}

// pointsOf returns the rows from row first on, at most most of them, and how many there are.
func pointsOf(text string, first, most int) (rows []point, all int) {
	for i := 0; i < len(text); {
		p := point{at: i}
		if n := ascii(text[i:]); n > 0 {
			p.end, p.class = i+n, "ASCII"
		} else {
			prop, w := ucd.Peek(text, i)
			p.end = i + w
			if all >= first && len(rows) < most {
				p.class = classOfPoint(text[i:], prop)
			}
		}
		if all >= first && len(rows) < most {
			rows = append(rows, p)
		}
		all++
		i = p.end
	}
	return rows, all
}

// ascii returns the number of bytes at the beginning of s that are printable ASCII, tabs and line feeds.
func ascii(s string) int {
	for i := 0; ; i++ {
		i += ucd.PlainASCII(s[i:])
		if i == len(s) || s[i] != '\n' && s[i] != '\t' {
			return i
		}
	}
}
