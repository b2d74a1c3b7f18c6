// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"strconv"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// bytesAt is a range of bytes.
func bytesAt(at, end int) Own {
	if end <= at+1 {
		return count(int64(at))
	}
	return count(int64(at)) + "\u2013" + count(int64(end))
}

// plainNumber is a number for a form.
func plainNumber(n int) Own { return Own(strconv.Itoa(n)) }

// profileName is the name of a profile, of a closed list.
func profileName(p scrub.Profile) Own { return Own(p.String()) }

// kindOf is the name of a kind of hidden message, of a closed list.
func kindOf(k scrub.HiddenKind) Own { return Own(k) }

// optionalCode is codeName, "" for no code.
func optionalCode(c finding.Code) Own {
	if c == "" {
		return ""
	}
	return codeName(c)
}

// pointName is U+ and the number of a code point.
func pointName(r rune) Own { return Own(fmt.Sprintf("U+%04X", r)) }

// pointNames are the numbers of the first and the last code point of a stretch, or its bytes where it is ill-formed.
func pointNames(s string) Own {
	r, n, ok := ucd.Decode(s)
	if !ok {
		return Own(fmt.Sprintf("% X", s))
	}
	if n == len(s) {
		return pointName(r)
	}
	return pointName(r) + " \u2026 " + pointName(rune(s[len(s)-1]))
}

// classOfPoint says what kind of code point s begins with: a hidden class, a script, or a kind of ours.
func classOfPoint(s string, p ucd.Prop) Own {
	r, _, ok := ucd.Decode(s)
	switch {
	case !ok:
		return "ill-formed"
	case p&ucd.Hidden != 0:
		return Own(ucd.ClassOf(r).String()) + ", hidden"
	case p&ucd.Flagged != 0:
		return "private, unassigned or blank"
	}
	return Own(ucd.ScriptOf(r).String())
}
