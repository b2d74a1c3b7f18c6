// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// Own is text of our own: a constant, or one that a function of this file makes. Third-party text is never Own.
type Own string

// Path is an address in the console, made by pathTo.
type Path string

// pathTo returns the address of a path below Base with its query, given as names and values. Values may be
// third-party text: they are percent-encoded, so that the address is ASCII.
func pathTo(path string, query ...string) Path {
	v := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		if query[i+1] != "" {
			v.Add(query[i], query[i+1])
		}
	}
	p := Base + path
	if len(v) > 0 {
		p += "?" + v.Encode()
	}
	return Path(p)
}

// segment encodes one segment of a path.
func segment(s string) string { return url.PathEscape(s) }

// count is a number with commas.
func count(n int64) Own {
	if n < 0 {
		return "\u2013"
	}
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return Own(s)
}

// counted is "1 byte" or "4,812 bytes".
func counted(n int64, thing Own) Own {
	if n == 1 {
		return "1 " + thing
	}
	return count(n) + " " + thing + "s"
}

// size is a number of bytes as a person reads it.
func size(n int64) Own {
	switch {
	case n < 1<<10:
		return counted(n, "byte")
	case n < 1<<20:
		return Own(fmt.Sprintf("%.1f KiB", float64(n)/(1<<10)))
	case n < 1<<30:
		return Own(fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)))
	}
	return Own(fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)))
}

// moment is a time to the second in UTC, "–" for the zero time.
func moment(t time.Time) Own {
	if t.IsZero() {
		return "\u2013"
	}
	return Own(t.UTC().Format("2006-01-02 15:04:05Z"))
}

// minute is a time to the minute in UTC, "–" for the zero time.
func minute(t time.Time) Own {
	if t.IsZero() {
		return "\u2013"
	}
	return Own(terminal.Minute(t))
}

// lasts is a duration to two units: "19 h 40 min", "6 min", "12 s", "41 ms".
func lasts(d time.Duration) Own {
	if d < 0 {
		d = 0
	}
	switch {
	case d < time.Second:
		return Own(fmt.Sprintf("%d ms", d.Milliseconds()))
	case d < time.Minute:
		return Own(fmt.Sprintf("%d s", int(d.Seconds())))
	case d < time.Hour:
		return Own(fmt.Sprintf("%d min", int(d.Minutes())))
	case d < 48*time.Hour:
		return Own(strings.TrimSuffix(fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60), " 0 min"))
	}
	return counted(int64(d.Hours()/24), "day")
}

// codeName is the name of a code of the closed list; another one is "other".
func codeName(c finding.Code) Own {
	if c.Known() {
		return Own(c)
	}
	return "other"
}

// kindName is the name of a kind of the closed list; another one is "unread".
func kindName(k ledger.Kind) Own {
	if k.Known() {
		return Own(k)
	}
	return "unread"
}

// labelWord is a label of a record: letters, digits and ._/:@+- only; another text is "other".
func labelWord(s string) Own { return Own(frame.Label(s)) }

// roleName is the name of a role of the closed list: of a content of a record.
func roleName(r ledger.Role) Own { return labelWord(string(r)) }

// own is a word that this program has made: of a closed list, or of numbers. Should a text from outside come
// here, it is not shown: own words are printable ASCII and short.
func own(s string) Own {
	if len(s) > 256 || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "other"
	}
	return Own(s)
}

// ledgerCode is a code as a record names it.
func ledgerCode(s string) finding.Code { return finding.Code(s) }

// unknown stands for a number that is not known.
const unknown Own = "\u2013"

// things is counted of an int.
func things(n int, thing Own) Own { return counted(int64(n), thing) }

// stateWord is the state of a held item; another one is "other".
func stateWord(s hold.State) Own {
	if s.Known() {
		return Own(s)
	}
	return "other"
}

// severityWord is the severity of a finding.
func severityWord(s string) Own { return labelWord(s) }

// kindWord names a kind of hidden characters.
func kindWord(k scrub.HiddenKind) Own { return Own(k) }

// fraction is a score from 0 to 1.
func fraction(p float64) Own { return Own(strconv.FormatFloat(p, 'f', 3, 64)) }

// bytesBetween is a stretch of a text.
func bytesBetween(start, end int) Own { return Own(fmt.Sprintf("bytes %d to %d", start, end)) }

// spansWord are the first stretches of a finding; "" where they are not known.
func spansWord(list []hold.Span) (out Own) {
	for i, s := range list {
		if i == 1 {
			return out + " \u2026"
		}
		out += Own(fmt.Sprintf("%d\u2013%d", s.Start, s.End))
	}
	return out
}

// rangeOf is "1 to 50 of 61 groups".
func rangeOf(skip, n, total int, thing Own) Own {
	if n == 0 {
		return ""
	}
	return Own(fmt.Sprintf("%d to %d of ", skip+1, skip+n)) + counted(int64(total), thing)
}

// ribbonAt is a mark on a strip that is 400 wide.
func ribbonAt(start, end, whole int, class Own) ribbonMark {
	at := 400 * float64(start) / float64(max(whole, 1))
	width := max(3, 400*float64(end-start)/float64(max(whole, 1)))
	return ribbonMark{Own(fmt.Sprintf("%.1f", min(at, 397))), Own(fmt.Sprintf("%.1f", min(width, 400))), class}
}

// queuePath is the address of a list with its query.
func queuePath(path string, v url.Values) Path {
	if len(v) == 0 {
		return Path(Base + path)
	}
	return Path(Base + path + "?" + v.Encode())
}

// maxListed bounds the places that segmentList names.
const maxListed = 20

// segmentList names segments by their places.
func segmentList(places []int) Own {
	var out strings.Builder
	for i, n := range places {
		if i == maxListed {
			return Own(out.String()) + " \u2026"
		}
		if i > 0 {
			out.WriteByte(' ')
		}
		fmt.Fprintf(&out, "s%d", n)
	}
	return Own(out.String())
}
