// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"
)

// noteSpelledOut notes what carries a message past a person and hides no character: it changes nothing.
// spec: scrub/3.16
func (p *pass) noteSpelledOut() {
	s := p.text
	if p.facts.hidden {
		p.noteSelectors()
	}
	if strings.IndexByte(s, "\u2010"[0]) >= 0 {
		if at := strings.Index(s, "\u241b["[1:]); at > 0 { // its first byte is one of many characters
			p.r.addNote(AnsiEscape, at-1, at+len("\u241b[")-1)
		}
		if at := hyphenCode(s); at >= 0 {
			p.r.addNote(Confusable, at, at+len("\u2010"))
		}
	}
	if strings.IndexByte(s, '\\') >= 0 && escapesTags(s) {
		at := tagEscape(s, 0)
		p.r.addNote(Tag, at, at+1)
	}
	p.noteUnseenRole()
}

func nextString(s, x string, from int) int {
	if n := strings.Index(s[from:], x); n >= 0 {
		return from + n
	}
	return -1
}

// manyHyphens is how many hyphens of either kind, that look the same, are a code.
const manyHyphens = 8

// hyphenCode returns where two hyphens that are not ASCII stand in a row, which typography never has, or
// the first of many of both kinds; -1 if not found.
func hyphenCode(s string) int {
	var counts [2]int
	for kind, last := range [...]byte{0x90, 0x91} {
		for i := strings.IndexByte(s, last); i >= 0; i = next(s, last, i, i+1) {
			if i < 2 || s[i-2:i] != "\xe2\x80" {
				continue
			}
			counts[kind]++
			pair := i+3 < len(s) && s[i+1:i+3] == "\xe2\x80" && (s[i+3] == 0x90 || s[i+3] == 0x91)
			if pair || kind == 1 && min(counts[0], counts[1]) >= manyHyphens {
				return i - 2
			}
		}
	}
	return -1
}

// manySelectors is how many selectors of either kind on one symbol are a code.
const manySelectors = 4

// noteSelectors notes a symbol that the text shows as text and as an emoji again and again.
func (p *pass) noteSelectors() {
	s := p.text
	if strings.Count(s, "\ufe0e") < manySelectors || strings.Count(s, "\ufe0f") < manySelectors {
		return
	}
	counts := map[rune]*[2]int{}
	for x, r := range hiddenIn(s) {
		if r != vs15 && r != vs16 || x.at == 0 {
			continue
		}
		base := runeAt(s, runeStart(s, x.at-1))
		if counts[base] == nil {
			counts[base] = new([2]int)
		}
		n := counts[base]
		if n[r-vs15]++; min(n[0], n[1]) >= manySelectors {
			p.r.addNote(VariationSelector, x.at, x.end)
			return
		}
	}
}

// minTagEscapes is how many escapes of tag characters spell a word.
const minTagEscapes = 2

// maxFlagEscapes is how many bytes before a tag the black flag is escaped to which it belongs.
const maxFlagEscapes = 96

// escapesTags reports whether s, as source code, escapes tag characters that are no part of a flag.
func escapesTags(s string) bool {
	n := 0
	for at := tagEscape(s, 0); at >= 0; at = tagEscape(s, at+1) {
		if n++; n >= minTagEscapes && !strings.Contains(strings.ToLower(s[max(0, at-maxFlagEscapes):at]), "1f3f4") {
			return true
		}
	}
	return false
}

// tagEscape returns where the next escape of a tag character stands at or behind s[from], in the form of Python, C and
// Go or in that of JavaScript and Rust; -1 if not found.
func tagEscape(s string, from int) int {
	for _, form := range [...]string{`\U000E00`, `\U000e00`, `\u{E00`, `\u{e00`} {
		if at := nextString(s, form, from); at >= 0 {
			return at
		}
	}
	return -1
}

// roleWords are what a message to a model says that it comes from.
var roleWords = [...]string{"assistant", "system", "user", "human", "developer", "instruction", "instructions"}

// noteUnseenRole notes a role at the beginning of what a page does not show: a comment of HTML or
// Markdown, the title of a reference, an element without ink.
func (p *pass) noteUnseenRole() {
	s := p.text
	if strings.IndexByte(s, '<') < 0 && strings.IndexByte(s, '[') < 0 {
		return
	}
	for at := strings.IndexByte(s, ':'); at >= 0; at = next(s, ':', at, at+1) {
		if at == 0 || !letter(s[at-1]) {
			continue
		}
		for _, word := range roleWords {
			start := at - len(word)
			if start > 0 && strings.EqualFold(s[start:at], word) && unseen(strings.TrimRight(s[max(0, start-256):start], " \t\n")) {
				p.r.addNote(RoleMarker, start, at+1)
				return
			}
		}
	}
}

// unseen reports whether what stands behind before is not shown in a page.
func unseen(before string) bool {
	line := before[strings.LastIndexByte(before, '\n')+1:]
	switch before = strings.ToLower(before); {
	case strings.HasSuffix(before, "<!--"):
		return true
	case strings.HasPrefix(line, "[") && strings.Contains(line, "]: "):
		return strings.IndexByte(`"'(`, line[len(line)-1]) >= 0
	case strings.HasSuffix(before, ">"):
		tag := strings.NewReplacer(" ", "", "'", `"`).Replace(before[strings.LastIndexByte(before, '<')+1:])
		for _, style := range [...]string{`opacity="0"`, "opacity:0", "display:none", `display="none"`, "visibility:hidden", "font-size:0", `fill="none"`} {
			if strings.Contains(tag, style) {
				return true
			}
		}
	}
	return false
}
