// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// expansion is how many times the cap veritas-0.1 lets NFKC produce before it cuts
// the rest: what comes later in the list only makes text shorter, and 2,000 bytes
// can become 22,000.
const expansion = 2

// normalise is NFKC, one event for each stretch that changed. spec: scrub/3.7
func normalise(p *pass) {
	s, r := p.text, p.r
	if p.policy.Ellipsis {
		s = strings.TrimSuffix(s, ellipsisMarker) // the marker of a cut stays as it is
	}
	for i := 0; i < len(s); {
		at, prop, w := ucd.Scan(s, i, ucd.NFKCActive)
		if at == len(s) {
			break
		}
		to := at + w
		if prop&(ucd.NFKCJoins|ucd.NFKCActive) == ucd.NFKCActive && !joinsBack(s, to) {
			p.normaliseAlone(prop, at, to)
		} else if prop&ucd.NFKCActive != 0 {
			_, to = r.buf.Segment(ucd.NFKC, s, i)
			p.takeCells(r.buf.Cells)
		}
		i = to
		if p.policy.Profile == Veritas && len(r.ed.out) > expansion*p.policy.MaxBytes {
			r.ed.drop(to, len(p.text), Truncated)
			p.cut = true
			break
		}
	}
	r.buf.Reset()
}

// joinsBack reports whether what stands at s[i] can take part in what normalising
// makes of the character before it.
func joinsBack(s string, i int) bool {
	if i == len(s) || s[i] < utf8.RuneSelf {
		return false
	}
	prop, _ := ucd.Peek(s, i)
	return prop&ucd.NFKCJoins != 0
}

// maxExpansion is the longest NFKC form of one character, in bytes: U+FDFA's.
const maxExpansion = 33

// A normal remembers what NFKC makes of a character that stands alone: in one
// text it is often the same few.
type normal struct {
	char  rune
	n     uint8
	marks bool               // it holds non-starters
	text  [maxExpansion]byte // [:n]
}

// normaliseAlone takes the character s[at:to], which joins with neither of its
// neighbours.
func (p *pass) normaliseAlone(prop ucd.Prop, at, to int) {
	r, s := p.r, p.text
	c, _, _ := ucd.Decode(s[at:to])
	known := &r.normals[c&(rune(len(r.normals))-1)]
	if known.char != c {
		b := &r.buf
		b.Reset()
		b.Decompose(ucd.NFKC, s[at:to], at)
		b.Compose()
		known.char, known.marks = c, hasMarks(b.Cells)
		known.n = uint8(len(b.AppendTo(known.text[:0])))
	}
	p.facts.marks = p.facts.marks || known.marks
	text := known.text[:known.n]
	if string(text) == s[at:to] {
		return
	}
	from := r.ed.copy(at)
	r.ed.out = append(r.ed.out, text...)
	r.ed.noteNormal(prop, at, to, from)
}

func hasMarks(cells []ucd.Cell) bool {
	for i := range cells {
		if cells[i].CCC != 0 {
			return true
		}
	}
	return false
}

// takeCells takes over what a stretch became. It is cut wherever its cells allow
// it, so that an event is as small as can be: between two cells where no source
// byte of what follows lies before one of what precedes. (Canonical ordering
// moves cells, composition makes one of several that others stood between.)
func (p *pass) takeCells(cells []ucd.Cell) {
	p.facts.marks = p.facts.marks || hasMarks(cells)
	lowest := p.lowest(cells)
	for k := 0; k < len(cells); {
		n, end := k+1, cells[k].End
		start := cells[k].Start
		if lowest != nil {
			start = lowest[k]
		}
		for n < len(cells) {
			if cells[n].Start >= end && (lowest == nil || lowest[n] >= end) {
				break
			}
			end = max(end, cells[n].End)
			n++
		}
		p.r.ed.takeGroup(cells[k:n], int(start), int(end))
		k = n
	}
}

// lowest returns for each cell the least source byte from there on; nil where
// that is the cell's own, as it nearly always is.
func (p *pass) lowest(cells []ucd.Cell) []uint32 {
	ordered := true
	for k := 1; k < len(cells) && ordered; k++ {
		ordered = cells[k-1].Start <= cells[k].Start
	}
	if ordered {
		return nil
	}
	r := p.r
	r.low = append(r.low[:0], make([]uint32, len(cells))...)
	low := ^uint32(0)
	for k := len(cells) - 1; k >= 0; k-- {
		low = min(low, cells[k].Start)
		r.low[k] = low
	}
	return r.low
}

// takeGroup takes over what in[start:end] became, if that differs.
func (ed *editor) takeGroup(cells []ucd.Cell, start, end int) {
	if spells(cells, ed.in[start:end]) {
		return
	}
	at := ed.copy(start)
	out := ed.out
	for i := range cells {
		out = utf8.AppendRune(out, cells[i].R)
	}
	ed.out = out
	prop, _ := ucd.Peek(ed.in, start)
	ed.noteNormal(prop, start, end, at)
}

// noteNormal records that in[start:end], whose first character has prop, has become
// out[at:]. A fraction slash is replaced in its turn, and must not hide the loss.
func (ed *editor) noteNormal(prop ucd.Prop, start, end, at int) {
	if prop&ucd.Lossy != 0 {
		ed.noteApart(NFKCLossy, start, end, at)
	} else {
		ed.recordEdit(NFKC, start, end, at)
	}
}

// spells reports whether s is the UTF-8 of cells.
func spells(cells []ucd.Cell, s string) bool {
	for i := range cells {
		r, w, ok := ucd.Decode(s)
		if !ok || r != cells[i].R {
			return false
		}
		s = s[w:]
	}
	return s == ""
}

// maxMarks is the number of non-starters that one base may carry. spec: scrub/3.8
const maxMarks = 8

// thinMarks removes the non-starters of a base that are over the limit, counted
// in the canonical decomposition, so that composed and decomposed spellings of
// one text lose the same. It waits for the pass in which nothing else brings marks
// together. Only removals: what was in NFKC stays in NFKC.
func thinMarks(p *pass) {
	if p.again {
		return
	}
	s := p.text
	for i := 0; i < len(s); {
		at, _, w := ucd.Scan(s, i, ucd.NonStarter|ucd.NFCJoins)
		if at == len(s) {
			break
		}
		end, marks := at, 0
		for end < len(s) {
			n, w := marksAt(s, end)
			if n == 0 {
				break
			}
			marks, end = marks+n, end+w
		}
		if marks > maxMarks-maxBaseMarks {
			p.thinRun(at, end)
		}
		if marks > writtenMarks && !p.r.Has(CombiningFlood) {
			from, to := sourceOf(p.r.Edits, at, end)
			p.r.addNote(CombiningFlood, from, to)
		}
		i = max(end, at+w)
	}
}

// writtenMarks is how many non-starters a language puts on one letter: Hebrew with its points and a
// trope sign has five.
const writtenMarks = 5

// thinRun takes the run of non-starters s[at:end].
func (p *pass) thinRun(at, end int) {
	s := p.text
	marks := p.baseMarks(s[:at])
	for at < end {
		n, w := marksAt(s, at)
		if marks += n; marks > maxMarks {
			p.r.ed.drop(at, end, CombiningFlood)
			return
		}
		at += w
	}
}

// marksAt returns how many non-starters the character at s[i] stands for, if it
// stands for nothing else, and its length in bytes.
func marksAt(s string, i int) (n, w int) {
	prop, w := ucd.Peek(s, i)
	if prop&(ucd.NonStarter|ucd.NFCJoins) == 0 {
		return 0, w
	}
	switch r, _, _ := ucd.Decode(s[i:]); r {
	case 0x0344, 0x0F73, 0x0F75, 0x0F81:
		return 2, w
	}
	if prop&ucd.NonStarter == 0 {
		return 0, w
	}
	return 1, w
}

// maxBaseMarks is the largest number of non-starters that a character begins its
// run with, when its canonical decomposition ends in some.
const maxBaseMarks = 3

// baseMarks returns the number of non-starters at the end of the last character's
// canonical decomposition.
func (p *pass) baseMarks(s string) (n int) {
	if s == "" || s[len(s)-1] < utf8.RuneSelf {
		return 0
	}
	_, w := utf8.DecodeLastRuneInString(s)
	b := &p.r.buf
	b.Reset()
	b.Decompose(ucd.NFC, s[len(s)-w:], 0)
	for n < len(b.Cells) && b.Cells[len(b.Cells)-1-n].CCC != 0 {
		n++
	}
	b.Reset()
	return n
}
