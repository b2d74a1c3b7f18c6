// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// confusables is RFC 4.3 on NFKC text: only characters that are not ASCII, only
// those whose prototype is exactly one ASCII character.
func confusables(p *pass) {
	s := p.text
	var field *wordScripts
	if p.policy.Scope == Mixed {
		field = surveyScripts(s)
	}
	for i := 0; i < len(s); {
		at, prop, w := ucd.Scan(s, i, ucd.Confusable)
		if at == len(s) {
			break
		}
		i = at + w
		if prop&ucd.Confusable == 0 {
			continue
		}
		r, _, _ := ucd.Decode(s[at:])
		c, _ := ucd.ASCIIPrototype(r)
		if field != nil && (strings.IndexByte(neverSynthesised, c) >= 0 || !field.pretends(s, at)) {
			p.noteConfusable(at, i)
			continue
		}
		switch p.policy.Confusables {
		case Replace:
			p.r.ed.replace(at, i, asciiStrings[c:c+1], Confusable)
		case Reject:
			start, end := sourceOf(p.r.Edits, at, i)
			p.r.refuse(Confusable, Confusable, start, end)
			p.noteConfusable(at, i)
		case Flag:
			p.noteConfusable(at, i)
		}
	}
}

func (p *pass) noteConfusable(start, end int) {
	if p.first {
		from, to := sourceOf(p.r.Edits, start, end)
		p.r.addNote(Confusable, from, to)
	}
}

// neverSynthesised is syntax that a replacement in mixed scope must not make.
const neverSynthesised = "<>[](){}\\|/&*_#$~^`"

// asciiStrings holds every ASCII character as a string that needs no memory.
var asciiStrings = func() string {
	var b [128]byte
	for i := range b {
		b[i] = byte(i)
	}
	return string(b[:])
}()

// wordScripts answers, for one field, whether a confusable character pretends.
type wordScripts struct {
	genuine ucd.ScriptSet // scripts of which the field has a letter that is not confusable

	start, end int  // the word that was last asked for
	verdict    bool // … and the answer
}

// surveyScripts gathers the scripts that the field gives other evidence of.
func surveyScripts(s string) *wordScripts {
	f := &wordScripts{}
	for i := 0; i < len(s); {
		r, w, _ := ucd.Decode(s[i:])
		if r >= 0x80 && ucd.Of(r)&ucd.Confusable == 0 {
			f.genuine = f.genuine.Or(ucd.SetOf(ucd.PinnedScript(r)))
		}
		i += w
	}
	return f
}

// pretends reports whether the character at s[at] stands in a word that mixes
// scripts, is a restricted character itself, or stands in a word of confusables
// whose script nothing else in the field is written in.
func (f *wordScripts) pretends(s string, at int) bool {
	r, _, _ := ucd.Decode(s[at:])
	if restricted(r) {
		return true
	}
	if at < f.start || at >= f.end {
		f.start, f.end = wordAround(s, at)
		f.verdict = f.mixes(s[f.start:f.end])
	}
	return f.verdict
}

// restricted stands in for UTS #39's Identifier_Status where it matters here:
// Latin letters beyond the orthographies of Latin-1 and Extended-A (phonetic,
// historic), which are what i\u0261nore is written with.
func restricted(r rune) bool {
	return r >= 0x0250 && ucd.PinnedScript(r) == ucd.ScriptLatin || ucd.PinnedScript(r) == ucd.ScriptCommon && ucd.Of(r)&ucd.Confusable != 0 && r >= 0x1D000
}

// wordAround returns the run of characters around s[at] that no space and no ASCII
// punctuation parts.
func wordAround(s string, at int) (start, end int) {
	for start = at; start > 0 && !parts(s[start-1]); {
		start--
	}
	for end = at; end < len(s) && !parts(s[end]); {
		end++
	}
	return start, end
}

func parts(c byte) bool { return c < 0x80 && !letter(c) && (c < '0' || c > '9') && c != '_' }

// mixes reports whether no one script explains the word, or only a script that
// has no other witness in the field.
func (f *wordScripts) mixes(w string) bool {
	var all ucd.ScriptSet
	first, latin, genuine := true, false, false
	for i := 0; i < len(w); {
		r, n, _ := ucd.Decode(w[i:])
		i += n
		script := ucd.PinnedScript(r)
		if script == ucd.ScriptCommon || script == ucd.ScriptInherited {
			continue
		}
		latin = latin || r < 0x80
		genuine = genuine || ucd.Of(r)&ucd.Confusable == 0
		set := augment(ucd.PinnedExtensions(r))
		if first {
			all, first = set, false
		} else {
			all = all.And(set)
		}
	}
	if first {
		return false
	}
	if all.Len() == 0 {
		return true
	}
	return !genuine && !latin && all.And(f.genuine).Len() == 0
}

// augment adds to the scripts of a character those writing systems that use
// several: UTS #39, section 5.1. Japanese, Korean and Chinese with Bopomofo stand
// as the script that names each.
func augment(s ucd.ScriptSet) ucd.ScriptSet {
	han, hira, kata := s.Has(ucd.ScriptHan), s.Has(ucd.ScriptHiragana), s.Has(ucd.ScriptKatakana)
	if han || hira || kata {
		s = s.Or(ucd.SetOf(ucd.ScriptHiragana, ucd.ScriptKatakana))
	}
	if han {
		s = s.Or(ucd.SetOf(ucd.ScriptHangul, ucd.ScriptBopomofo))
	}
	return s
}
