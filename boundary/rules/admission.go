// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Admission says what a server has to stand up to before a word of it is seen.
type Admission struct {
	Pins Pins
	// HoldFirst: also the first surface waits for a person; else it is pinned when it
	// has been checked.
	HoldFirst   bool
	Wide        bool // every hidden character is looked for, not only the 151
	HoldShadows bool // what may be taken for another server's is held, not only told
	Timeout     time.Duration
	// DangerouslyAllow are the digests of items whose hidden text a person has seen and
	// accepts, in order and apart by a space.
	DangerouslyAllow string
}

// Pins says what becomes of what differs from the pin.
type Pins uint8

// The ways.
const (
	PinsEnforce Pins = iota // it is held until a person approves it
	PinsAudit               // it is recorded, and passes
	PinsOff                 // nothing is pinned
)

var (
	pinsWords   = []string{"enforce", "audit", "off"}
	pinsValues  = []Pins{PinsEnforce, PinsAudit, PinsOff}
	firstWords  = []string{"approve", "hold"}
	shadowWords = []string{"warn", "hold"}
	heldValues  = []bool{false, true}
)

// maxAdmission bounds how long a check may take.
const maxAdmission = time.Hour

func newAdmission() Admission { return Admission{Wide: true, Timeout: 2 * time.Minute} }

// admission reads what stands at the top or in a server, over what a holds already.
func (c *compiler) admission(p place, a *Admission) {
	c.object(p, members{
		"pins":    func(p place) { a.Pins = choice(&c.reader, p, pinsWords, pinsValues) },
		"first":   func(p place) { a.HoldFirst = choice(&c.reader, p, firstWords, heldValues) },
		"wide":    func(p place) { a.Wide = c.boolean(p) },
		"shadows": func(p place) { a.HoldShadows = choice(&c.reader, p, shadowWords, heldValues) },
		"timeout": func(p place) { a.Timeout = c.duration(p, time.Second, maxAdmission) },
		"dangerously_allow": func(p place) {
			list := c.checkedList(p, maxNames, "the digest of an item, sha256: and 64 lower-case hex digits", isDigest)
			slices.Sort(list)
			a.DangerouslyAllow = strings.Join(list, " ")
		},
	})
	if a.Pins == PinsEnforce {
		return
	}
	if p.kind == isObject {
		for _, name := range []string{"first", "shadows"} {
			if n := p.member(name); n != nil && n.text == "hold" {
				c.report(p.join(name, n), "holds nothing where pins are not enforced")
			}
		}
	}
	a.HoldFirst, a.HoldShadows = false, false // which a server may inherit
}

// IsPinName reports whether s may be the name of a pin: 1 to 256 printable characters of ASCII.
func IsPinName(s string) bool {
	return s != "" && len(s) <= 256 && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

func isDigest(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}

func (d *dumper) admission(a *Admission) {
	word := func(words []string, held bool) string {
		if held {
			return words[1]
		}
		return words[0]
	}
	d.object("admission", func() {
		d.word("pins", pinsWords[a.Pins])
		d.word("first", word(firstWords, a.HoldFirst))
		d.word("wide", strconv.FormatBool(a.Wide))
		d.word("shadows", word(shadowWords, a.HoldShadows))
		d.duration("timeout", a.Timeout)
		d.list("dangerously_allow", strings.Fields(a.DangerouslyAllow))
	})
}
