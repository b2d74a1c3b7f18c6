// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A place is a value of the file and the path to it.
type place struct {
	*node
	path string
}

func (p place) join(name string, n *node) place {
	if p.path != "" {
		name = p.path + "." + name
	}
	return place{n, name}
}

// at is the place of a member, whose node is nil if the object has none.
func (p place) at(name string) place { return p.join(name, p.member(name)) }

// member is the value of an object's member, nil if it has none.
func (p place) member(name string) *node {
	for i, n := range p.names {
		if n.text == name {
			return p.elements[i]
		}
	}
	return nil
}

// A reader collects the problems of one file while it is read. Every method that
// returns a value returns the zero value where it reports a problem.
type reader struct{ problems Problems }

// report notes a problem at p, of which nothing is shown.
func (r *reader) report(p place, format string, args ...any) {
	r.problems = append(r.problems, Problem{line: p.line, column: p.col, path: p.path, setting: p.setting, Fault: fmt.Sprintf(format, args...)})
}

// show notes a problem at p with the value that stands there, which is one of a
// kind that no secret is of.
func (r *reader) show(p place, format string, args ...any) {
	r.report(p, format, args...)
	r.problems[len(r.problems)-1].excerpt = finding.Quote(p.text)
}

func (r *reader) wrongKind(p place, want string) { r.report(p, "want %s, not %s", want, p.kind) }

// names reads an object of at most most members whose names the author chose and
// valid holds for.
func (r *reader) names(p place, most int, valid func(string) bool, read func(name string, at, val place)) map[string]bool {
	if p.kind != isObject {
		r.wrongKind(p, string(isObject))
		return nil
	}
	seen := map[string]bool{}
	for i, n := range p.node.names {
		at := p.join(pathName(n.text), n)
		switch {
		case seen[n.text]:
			r.report(at, "stands here a second time")
		case len(seen) == most:
			r.report(at, "more than %d", most)
			return seen
		case valid != nil && !valid(n.text):
			r.report(at, "not a name that can stand here")
		default:
			read(n.text, at, place{p.elements[i], at.path})
		}
		seen[n.text] = true
	}
	return seen
}

// list reads a list of at most most elements.
func (r *reader) list(p place, most int, read func(place)) {
	if p.kind != isList {
		r.wrongKind(p, string(isList))
		return
	}
	for i, e := range p.elements {
		at := place{e, p.path + "[" + strconv.Itoa(i) + "]"}
		if i == most {
			r.report(at, "more than %d", most)
			return
		}
		read(at)
	}
}

// text reads a string of 1 to most bytes without a NUL.
func (r *reader) text(p place, most int) string {
	switch {
	case p.kind == isNumber || p.kind == isBool:
		r.report(p, "want a string, not %s: put it in quotes", p.kind)
	case p.kind != isText:
		r.wrongKind(p, string(isText))
	case p.node.text == "":
		r.report(p, "is empty")
	case len(p.node.text) > most:
		r.report(p, "longer than %d bytes", most)
	case strings.ContainsRune(p.node.text, 0):
		r.report(p, "holds a NUL")
	default:
		return p.node.text
	}
	return ""
}

// checked reads a string that valid holds for; it is shown if not.
func (r *reader) checked(p place, want string, valid func(string) bool) string {
	s := r.text(p, 4096)
	if s != "" && !valid(s) {
		r.show(p, "want %s", want)
		return ""
	}
	return s
}

// checkedList reads a list of different strings that valid holds for.
func (r *reader) checkedList(p place, most int, want string, valid func(string) bool) []string {
	out := []string{} // an empty list is not none
	r.list(p, most, func(p place) {
		switch s := r.checked(p, want, valid); {
		case s == "":
		case slices.Contains(out, s):
			r.show(p, "stands here a second time")
		default:
			out = append(out, s)
		}
	})
	return out
}

// choice reads one of a few words.
func choice[T any](r *reader, p place, words []string, values []T) (v T) {
	want := orList(words)
	if i := slices.Index(words, r.checked(p, want, func(s string) bool { return slices.Contains(words, s) })); i >= 0 {
		return values[i]
	}
	return v
}

func orList(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	return words[0]
}

func (r *reader) boolean(p place) bool {
	if p.kind != isBool && p.kind != isText && p.kind != isNumber {
		r.wrongKind(p, "true or false")
	} else if p.kind != isBool || p.node.text != "true" && p.node.text != "false" {
		r.show(p, "want true or false")
	}
	return p.node.text == "true"
}

// integer reads a decimal integer from least to most.
func (r *reader) integer(p place, least, most int) int {
	if p.kind != isNumber {
		r.wrongKind(p, "a number")
		return 0
	}
	n, err := strconv.Atoi(p.node.text)
	if err != nil || n < least || n > most || strconv.Itoa(n) != p.node.text {
		r.show(p, "want an integer from %d to %d", least, most)
		return 0
	}
	return n
}

// number reads a decimal number from 0 to most.
func (r *reader) number(p place, most float64) float64 {
	if p.kind != isNumber {
		r.wrongKind(p, "a number")
		return 0
	}
	f, err := strconv.ParseFloat(p.node.text, 64)
	if err != nil || strings.Trim(p.node.text, "0123456789.") != "" || f > most {
		r.show(p, "want a number from 0 to %s", strconv.FormatFloat(most, 'f', -1, 64))
		return 0
	}
	return f
}

// duration reads what time.ParseDuration does, from least to most.
func (r *reader) duration(p place, least, most time.Duration) time.Duration {
	if p.kind != isText && p.kind != isNumber {
		r.wrongKind(p, "a duration, such as 90s or 10m")
		return 0
	}
	d, err := time.ParseDuration(p.node.text)
	if err != nil || p.kind != isText || d < least || d > most {
		r.show(p, "want a duration from %s to %s, such as 90s or 10m", spell(least), spell(most))
		return 0
	}
	return d
}

// spell is d without the zero minutes and seconds that String adds.
func spell(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// Units of size, the largest first.
var units = []struct {
	name string
	size int
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// size reads a number of bytes, with or without a unit.
func (r *reader) size(p place, least, most int) int {
	if p.kind != isText && p.kind != isNumber {
		r.wrongKind(p, "a size, such as 32MiB")
		return 0
	}
	digits, unit := p.node.text, 1
	for _, u := range units {
		if s, ok := strings.CutSuffix(p.node.text, u.name); ok {
			digits, unit = s, u.size
		}
	}
	n, err := strconv.Atoi(digits)
	if err != nil || strconv.Itoa(n) != digits || n > most/unit || n*unit < least {
		r.show(p, "want a size from %s to %s, such as 32MiB or 65536", spellSize(least), spellSize(most))
		return 0
	}
	return n * unit
}

func spellSize(n int) string {
	for _, u := range units {
		if n != 0 && n%u.size == 0 {
			return strconv.Itoa(n/u.size) + u.name
		}
	}
	return strconv.Itoa(n)
}

// nearest says which member may have been meant.
func nearest(name string, table []member) string {
	best, least := "", 3
	for _, m := range table {
		if len(name) > 64 {
			break
		}
		if d := distance(name, m.name); d < least || d == least && m.name < best {
			best, least = m.name, d
		}
	}
	for _, m := range table { // client_cert for cert
		if best == "" && len(name) <= 64 && (strings.HasSuffix(name, "_"+m.name) || strings.HasPrefix(name, m.name+"_")) {
			best = m.name
		}
	}
	if best == "" {
		return ""
	}
	return ": is " + best + " meant?"
}

// distance is that of Levenshtein, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
