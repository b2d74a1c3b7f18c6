// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A host lays the texts of a message one behind the other before a model, with nothing or a line end
// between them. A control token can be spread over several. Which of the texts a host shows, and
// so which are neighbours, differs: a track is one such choice. spec: inspect/4
type tracks uint8

// The tracks. A text is in every track whose host would show it.
const (
	onlyTexts tracks = 1 << iota // texts of blocks, contents and messages, blobs among them
	typed                        // and titles, descriptions and what else the protocol calls text
	named                        // and names
	all                          // and values of data, but not names
	numTracks = 4
)

// ofText is where a field of text is shown.
func ofText(f *mcpmsg.Field) tracks {
	if f.Name == "text" {
		return onlyTexts | typed | named | all
	}
	return typed | named | all
}

// A piece is a text that a model may read, in the order of the message.
type piece struct {
	value  strictjson.Value // the string
	unit   strictjson.Value // the block or entry around it; absent: none
	text   string           // clean; of a blob its beginning and its end
	with   *scrub.Scrubber  // by which it was cleaned
	in     tracks
	kind   pieceKind
	block  bool // unit is a block
	first  bool // its frame has the notice
	gone   bool // it is not delivered
	cut    frame.Cut
	field  string // the first step of its path
	place  string // of its block
	digest int    // where its digest is among the walker's, or -1
	answer int    // where its text is among the walker's answers, or -1
}

type pieceKind uint8

const (
	pieceText   pieceKind = iota
	pieceFramed           // in a fence
	pieceName             // never rewritten
	pieceBlob
)

// Bounds of what is kept of a message to look at together.
const (
	maxPieces = 1024 // texts
	// A token has no more characters than this in one text, and is spread over no more texts.
	reach = 512
	links = 80
	// maxRounds bounds how often what is left of split tokens is looked at.
	maxRounds = 16
)

// addText adds a clean text to the sequence.
func (w *walker) addText(v strictjson.Value, in tracks, kind pieceKind, with *scrub.Scrubber) {
	w.addPiece(piece{value: v, text: w.res.Clean.String(), in: in, kind: kind, with: with, first: kind == pieceFramed && w.first, cut: w.cut})
}

func (w *walker) addPiece(p piece) {
	if p.text == "" && p.kind != pieceFramed {
		return
	}
	p.unit, p.block, p.digest, p.answer = w.unit.value, w.unit.block, -1, -1
	if len(w.path) > 0 {
		p.field = w.path[0].name
	}
	if w.unit.block && w.frames && w.unit.place == "" {
		path := w.path
		w.path = path[:w.unit.depth]
		w.unit.place = w.spell(true)
		w.path = path
	}
	p.place = w.unit.place
	if p.kind == pieceFramed || p.kind == pieceText && w.digests {
		p.digest = w.lastDigest()
	}
	if w.llm != nil && p.in&onlyTexts != 0 && w.owns() {
		p.answer = len(w.answer)
		w.answer = append(w.answer, p.text)
		if p.cut != (frame.Cut{}) {
			w.answerCut = p.cut
		}
	}
	w.pieces = append(w.pieces, p)
	w.told++
	if len(w.pieces) >= maxPieces {
		w.settle()
		w.keepLast()
	}
}

// owns reports whether the walker stands in a block of the result, not of one
// within a block.
func (w *walker) owns() bool {
	lists := 0
	for _, s := range w.path {
		if s.name == "content" {
			lists++
		}
	}
	return lists == 1 && w.path[0].name == "content"
}

// takeBack forgets what was told since the count of told texts was n: it is not delivered.
func (w *walker) takeBack(n int) {
	left := max(0, len(w.pieces)-(w.told-n))
	for i := range w.pieces[left:] {
		w.noticed = w.noticed && !w.pieces[left+i].first
	}
	w.pieces, w.told = w.pieces[:left], n
}

// keepLast keeps of each track the texts at its end that could hold the beginning of a token.
func (w *walker) keepLast() {
	var count, size [numTracks]int
	first := len(w.pieces)
	for i := len(w.pieces) - 1; i >= 0; i-- {
		p, wanted := &w.pieces[i], false
		for t := range numTracks {
			if p.text != "" && p.in&(1<<t) != 0 && count[t] < links && size[t] < reach {
				count[t], size[t], wanted = count[t]+1, size[t]+len(p.text), true
			}
		}
		if wanted {
			first--
			w.pieces[first] = *p
		}
	}
	n := copy(w.pieces, w.pieces[first:])
	clear(w.pieces[n:])
	w.pieces = w.pieces[:n]
}

// settle finds the tokens that are spread over the texts of any track, and removes them. What
// is left may make others, so that it looks until it finds none.
func (w *walker) settle() {
	if len(w.pieces) < 2 {
		return
	}
	defer func(path []step) { w.path = path }(w.path)
	defer w.noticeAgain()
	for range maxRounds {
		found := false
		var size [numTracks]int
		for t := range numTracks {
			w.track = w.track[:0]
			for i := range w.pieces {
				if w.pieces[i].in&(1<<t) != 0 && w.pieces[i].text != "" {
					w.track = append(w.track, i)
				}
			}
			size[t] = len(w.track)
			// Each track holds the one before, but the last holds no names.
			if size[t] < 2 || t > 0 && size[t] == size[min(t-1, 1)] {
				continue
			}
			if cuts := w.spread(w.track); len(cuts) > 0 {
				w.cutAll(cuts)
				found = true
			}
		}
		if !found {
			return
		}
	}
	w.refused = finding.SplitAcrossBlocks
}

// A cut is what must be replaced in one piece.
type cut struct {
	piece int
	spans []scrub.Span // of its text
}

// defuses reports whether nothing of the text of p is lost: a token of it is one because of its
// neighbours.
func (c *cut) defuses(p *piece) bool {
	lost := slices.ContainsFunc(c.spans, func(s scrub.Span) bool { return s.With == "" })
	return !lost && (p.kind == pieceText || p.kind == pieceFramed)
}

// noticeAgain frames the first text anew that is still delivered, if the block was given up
// whose frame had the notice.
func (w *walker) noticeAgain() {
	if w.noticed {
		return
	}
	for i := range w.pieces {
		p := &w.pieces[i]
		if p.kind != pieceFramed || p.gone {
			continue
		}
		p.with.ScrubAgain(p.text, nil, &w.res)
		w.cut = p.cut
		fence, _ := w.frame(w.res.Clean, w.form())
		w.replaceText(p.value, fence)
		p.first = true
		return
	}
}

// spread returns what is to be removed of the pieces of a track.
func (w *walker) spread(track []int) []cut {
	type part struct{ piece, from int }
	var parts []string
	var of []part
	for _, i := range track {
		text := w.pieces[i].text
		if len(text) <= 2*reach {
			parts, of = append(parts, text), append(of, part{i, 0})
			continue
		}
		first, last := head(text, reach), end(text, reach)
		// A comma is in no token.
		parts = append(parts, first, ",", last)
		of = append(of, part{i, 0}, part{-1, 0}, part{i, len(text) - len(last)})
	}
	var cuts []cut
	for _, s := range w.text.Joined(parts) {
		p := of[s.Part]
		if p.piece < 0 {
			continue
		}
		s.Start, s.End = s.Start+p.from, s.End+p.from
		if n := len(cuts); n == 0 || cuts[n-1].piece != p.piece {
			cuts = append(cuts, cut{piece: p.piece})
		}
		c := &cuts[len(cuts)-1]
		c.spans = append(c.spans, s)
	}
	return cuts
}

// cutAll removes the parts of tokens, of all texts that may be rewritten. Where a token stands in
// names alone, what holds them is given up.
func (w *walker) cutAll(cuts []cut) {
	free := false
	for _, c := range cuts {
		p := &w.pieces[c.piece]
		free = free || p.kind != pieceName || p.block
	}
	for _, c := range cuts {
		p := &w.pieces[c.piece]
		if p.text == "" {
			continue // it went with its unit
		}
		w.path = []step{{name: p.field}}
		switch {
		case p.block && !c.defuses(p), p.kind == pieceName && !free && p.unit.Exists():
			w.giveUpUnit(p)
		case p.kind == pieceName && free:
		case p.kind == pieceBlob:
			w.replace(p.value, "")
			w.addFinding(finding.SplitAcrossBlocks, 1, nil)
			p.text = ""
		case p.kind == pieceName:
			w.refused = finding.SplitAcrossBlocks
			p.text = ""
		default:
			w.cutText(p, c.spans)
		}
	}
}

// giveUpUnit gives up the block or entry that holds a part of a token.
func (w *walker) giveUpUnit(p *piece) {
	unit := p.unit
	if p.block {
		w.edits.Replace(unit, w.placeholder())
		w.forget(p.place)
	} else {
		w.edits.Remove(unit)
	}
	w.giveUp(finding.SplitAcrossBlocks)
	for i := range w.pieces {
		if q := &w.pieces[i]; q.unit == unit {
			q.text, q.gone = "", true
			w.noticed = w.noticed && !q.first
			if q.answer >= 0 {
				w.answer[q.answer] = ""
			}
		}
	}
}

// cutText replaces parts of a text, and cleans what that leaves.
func (w *walker) cutText(p *piece, spans []scrub.Span) {
	p.with.ScrubAgain(p.text, spans, &w.res)
	p.text, w.cut = w.res.Clean.String(), p.cut
	if p.answer >= 0 {
		w.answer[p.answer] = p.text
	}
	w.addFinding(finding.SplitAcrossBlocks, 1, nil)
	text := w.unframed()
	digest := frame.DigestOf(text)
	if p.kind == pieceFramed {
		var sealed frame.Sealed
		text, sealed = w.frame(w.res.Clean, w.formOf(p.first, p.cut))
		w.noteLookalikes(sealed)
		digest = sealed.Digest
	}
	w.replace(p.value, text)
	if p.digest >= 0 && !w.setDigest(p.digest, digest) {
		w.refused = finding.SplitAcrossBlocks
	}
}

// head is the beginning of s, in whole characters.
func head(s string, n int) string {
	for n = min(n, len(s)); n > 0 && n < len(s) && !utf8.RuneStart(s[n]); n-- {
	}
	return s[:n]
}

// end is the end of s, from the beginning of a character on.
func end(s string, n int) string {
	i := max(0, len(s)-n)
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return s[i:]
}

// ends are the beginning and the end of a text of which the middle is not kept.
func ends(s string) string {
	if len(s) <= 2*reach {
		return strings.Clone(s)
	}
	return head(s, reach) + "," + end(s, reach)
}
