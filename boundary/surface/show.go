// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

const (
	shownContext = 40  // bytes of what both sides share, on either side
	shownBytes   = 600 // bytes of what differs
)

// Show returns both sides for a person: the part that differs with a little of what
// surrounds it, hidden characters spelled out. Where the two would still look the
// same, everything that is not ASCII is spelled out. What is left out of a long text
// is told as a number. It is not for a model.
func (f Field) Show() (old, new string) {
	a, b := f.excerpts()
	ascii := f.Difference == Changed && lookAlike(a, b)
	return visible(a, ascii), visible(b, ascii)
}

// ShowAll is Show with nothing left out, for whoever has to decide.
func (f Field) ShowAll() (old, new string) {
	a, b := f.excerpts()
	ascii := f.Difference == Changed && lookAlike(a, b)
	return visible(f.old, ascii), visible(f.new, ascii)
}

// Raw returns both sides as they are: third-party text, for a page that marks what is hidden in it.
func (f Field) Raw() (old, new string) { return f.old, f.new }

// excerpts are both sides around what differs.
func (f Field) excerpts() (old, new string) {
	shorter := min(len(f.old), len(f.new))
	from, shared := 0, 0
	for from < shorter && f.old[from] == f.new[from] {
		from++
	}
	for shared < shorter-from && f.old[len(f.old)-1-shared] == f.new[len(f.new)-1-shared] {
		shared++
	}
	return excerpt(f.old, from, len(f.old)-shared), excerpt(f.new, from, len(f.new)-shared)
}

// excerpt is s[from:to] with its surroundings, cut where it is long, at whole characters.
func excerpt(s string, from, to int) string {
	start, end := max(0, from-shownContext), min(len(s), to+shownContext)
	if end-start > shownBytes {
		end = start + shownBytes
	}
	for start > 0 && !utf8.RuneStart(s[start]) {
		start--
	}
	for end < len(s) && !utf8.RuneStart(s[end]) {
		end++
	}
	out := s[start:end]
	if start > 0 {
		out = "..." + out
	}
	switch {
	case end < to:
		out += "...(+" + strconv.Itoa(to-end) + " bytes)"
	case end < len(s):
		out += "..."
	}
	return out
}

// visible is s on one line.
func visible(s string, ascii bool) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(scrub.Visible(s, ascii))
}

// lookAlike reports whether two texts may be taken for one another.
func lookAlike(a, b string) bool {
	ka, kb := looks(a), looks(b)
	return ka[0] == kb[0] || ka[1] == kb[1]
}

// looks returns what a text looks like, in two readings: "I" and "l" are one by
// UTS #39, "I" and "i" by case. Texts that share either are look-alikes.
func looks(s string) [2]string {
	s = ucd.NFKC.String(s)
	s = strings.Map(func(r rune) rune {
		if ucd.Of(r)&ucd.Hidden != 0 {
			return -1
		}
		return r
	}, s)
	return [2]string{
		strings.ToLower(string(ucd.AppendSkeleton(nil, s))),
		string(ucd.AppendSkeleton(nil, strings.ToLower(s))),
	}
}
