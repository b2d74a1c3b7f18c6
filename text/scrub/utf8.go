// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

const replacement = "\ufffd"

// mend replaces ill-formed bytes. spec: scrub/3.1
func mend(p *pass) {
	s := p.text
	for i := 0; i < len(s); {
		at, prop, w := ucd.Scan(s, i, ucd.IllFormed)
		if prop&ucd.IllFormed != 0 {
			p.r.ed.replace(at, at+w, replacement, IllFormedUTF8)
		}
		i = at + max(w, 1)
	}
}

// The markers of a cut. The first is what NFKC makes of the second.
const (
	asciiMarker    = "..."
	ellipsisMarker = "\u2026"
)

// ceiling cuts text of more than MaxChars code points. spec: scrub/3.2
func ceiling(p *pass) {
	s, limit := p.text, p.policy.MaxChars
	if len(s) <= limit || ucd.Count(s) <= limit {
		return
	}
	marker := asciiMarker
	if p.policy.Profile == Faithful {
		marker = ellipsisMarker
	}
	at := 0
	for n := limit - len(asciiMarker); n > 0; n-- {
		_, w, _ := ucd.Decode(s[at:])
		at += w
	}
	p.r.ed.replace(backOff(s, at), len(s), marker, Truncated)
}

// cutBytes cuts text of more than MaxBytes bytes. The marker stands at the end
// of the final text only: on ingestion room is left for it. spec: RFC 4.1
func cutBytes(p *pass, final bool) {
	s, limit := p.text, p.policy.MaxBytes
	marker := asciiMarker
	if p.policy.Ellipsis {
		marker = ellipsisMarker
	}
	if !final && len(s) > limit {
		p.r.ed.drop(backOff(s, runeStart(s, limit-len(marker))), len(s), Truncated)
		p.cut = true
		return
	}
	if !final || len(s) <= limit && !p.cut {
		return
	}
	p.cut = false
	at := len(s)
	if room := limit - len(marker); at > room {
		at = backOff(s, runeStart(s, room))
	}
	p.r.ed.replace(at, len(s), marker, Truncated)
}

// runeStart returns i, or where the character begins that s[i] belongs to.
func runeStart(s string, i int) int {
	for n := 0; n < utf8.UTFMax-1 && 0 < i && i < len(s) && !utf8.RuneStart(s[i]); n++ {
		i--
	}
	return i
}

// maxBackOff is how far a cut moves back for the sake of a whole character, in
// bytes. spec: scrub/3.2
const maxBackOff = 32

// backOff returns the last place at or before i where s can be cut so that the
// part before it is in NFKC if s is; i itself if no such place is near.
func backOff(s string, i int) int {
	for at := i; at > 0 && i-at <= maxBackOff; {
		if prop, _ := ucd.Peek(s, at); prop&(ucd.NFKCJoins|ucd.NFCJoins|ucd.Hidden) == 0 {
			return at
		}
		_, w := utf8.DecodeLastRuneInString(s[:at])
		at -= w
	}
	return i
}
