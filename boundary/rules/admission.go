// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
)

// Admission says what a server has to stand up to before a word of it is seen.
type Admission struct {
	Pins policy.Mode // of what differs from its pin: Enforce, Audit or Off
	// HoldFirst: also the first surface waits for a person; else it is pinned when it
	// has been checked.
	HoldFirst bool
	Wide      bool // every hidden character is looked for, not only the 151
	// RejectHidden: hidden text in a definition rejects the server; else its item is withheld.
	RejectHidden bool
	HoldShadows  bool // what may be taken for another server's is held, not only told
	// Descriptions says what becomes of items whose titles, descriptions or instructions read
	// like orders to a model.
	Descriptions Descriptions
	// DangerouslyAllow are the digests of items whose hidden text a person has seen and
	// accepts, in order and apart by a space.
	DangerouslyAllow string
	// Tolerate are the parts of items whose change holds none of them, in order and apart by a space.
	Tolerate string
}

// Descriptions says what is done about what a server says of itself, beside the look for hidden text.
type Descriptions uint8

// The ways. The zero value tells the operator.
const (
	WarnOfDescriptions Descriptions = iota
	HoldDescriptions                // an item that is flagged waits for a reviewer too
	IgnoreDescriptions              // nothing judges them
)

func (d Descriptions) String() string { return describedWords[min(int(d), len(describedWords)-1)] }

var (
	describedWords  = []string{"warn", "hold", "off"}
	describedValues = []Descriptions{WarnOfDescriptions, HoldDescriptions, IgnoreDescriptions}
)

var (
	firstWords  = []string{"approve", "hold"}
	shadowWords = []string{"warn", "hold"}
	hiddenWords = []string{"withhold", "reject"}
	heldValues  = []bool{false, true}
)

// section is what stands at the top or in a server, over what a holds already.
func (a *Admission) section() value {
	return section(a.members).then(func(c *compiler, p place) { c.admission(p, a) })
}

func (a *Admission) members() []member {
	return []member{
		{"pins", live, word(&a.Pins, policy.Enforce, modes.words, modes.values), "what becomes of what differs from its pin: `enforce` holds it until `pellucid pins approve`, `audit` records it, `off` pins nothing"},
		{"first", live, word(&a.HoldFirst, false, firstWords, heldValues), "`hold`: also what was never seen waits for a reviewer"},
		{"wide", live, boolean(&a.Wide, true), "look for every hidden character; `false`: only the 151 of SUSPICIOUS_UNICODE"},
		{"hidden", live, word(&a.RejectHidden, false, hiddenWords, heldValues), "what becomes of hidden text in what a server says of itself: `withhold` withholds the item that holds it until `pellucid pins approve`; `reject` refuses the server"},
		{"shadows", live, word(&a.HoldShadows, false, shadowWords, heldValues), "what becomes of items that may be taken for another server's"},
		{"descriptions", live, word(&a.Descriptions, WarnOfDescriptions, describedWords, describedValues), "what becomes of items whose texts the wording rules or the local model flag ([surface](surface.md#9-wording)): `warn` logs and records them, `hold` has them wait for a reviewer too, `off` judges none"},
		{"tolerate", live, orderedList(&a.Tolerate, "date, count, version, icons, _meta, or enum: and the JSON pointer of an enum", surface.Tolerable), "parts of items whose change alone holds none of them ([surface](surface.md#6-differences))"},
		{"dangerously_allow", live, digests(&a.DangerouslyAllow), "digests of items whose hidden text a reviewer has accepted"},
	}
}

func digests(v *string) value {
	return orderedList(v, "the digest of an item, sha256: and 64 lower-case hex digits", isDigest)
}

// orderedList is a list that is kept in order, with spaces between its elements.
func orderedList(v *string, want string, valid func(string) bool) value {
	var all []string
	x := list(&all, nil, maxNames, want, valid).then(func(*compiler, place) {
		slices.Sort(all)
		*v = strings.Join(all, " ")
	})
	x.write = func(d *dumper, name string) { writeList(d, name, strings.Fields(*v)) }
	return x
}

// admission checks what stands together.
func (c *compiler) admission(p place, a *Admission) {
	if a.Pins == policy.Enforce {
		return
	}
	if p.kind == isObject {
		for _, name := range []string{"first", "shadows", "descriptions"} {
			if n := p.member(name); n != nil && n.text == "hold" {
				c.report(p.join(name, n), "holds nothing where pins are not enforced")
			}
		}
	}
	a.HoldFirst, a.HoldShadows = false, false // which a server may inherit
	if a.Descriptions == HoldDescriptions {
		a.Descriptions = WarnOfDescriptions
	}
}

// IsPinName reports whether s may be the name of a pin: 1 to 256 printable characters of ASCII.
func IsPinName(s string) bool {
	return s != "" && len(s) <= 256 && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

func isDigest(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}
