// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A SyntaxError says where a vector is not of the format. Reason is constant
// text.
type SyntaxError struct {
	Line   int
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// header lists the names in their order.
var header = []struct {
	name           string
	optional, many bool
	set            func(*Vector, string) (why string)
}{
	{"clause", false, false, func(v *Vector, s string) string {
		if s == "-" {
			return "no clause"
		}
		return list(&v.Clauses, s, Clauses)
	}},
	{"family", false, false, func(v *Vector, s string) string { return oneOf(&v.Family, s, Families) }},
	{"field", false, false, func(v *Vector, s string) string { return oneOf(&v.Field, s, Fields) }},
	{"as", true, false, func(v *Vector, s string) string { v.JSON = true; return unless(s == "json", "as is not json") }},
	{"quotes", true, false, setQuotes},
	{"scope", false, false, func(v *Vector, s string) string { return index(&v.Scope, s, scopeNames) }},
	{"level", false, false, func(v *Vector, s string) string {
		v.Must = s == "MUST"
		return unless(v.Must || s == "SHOULD", "level is neither MUST nor SHOULD")
	}},
	{"expect", false, false, setExpect},
	{"text", true, false, func(v *Vector, s string) string { v.Literal.Exact = true; return text(&v.Literal.Text, s) }},
	{"contains", true, true, func(v *Vector, s string) string { return more(&v.Literal.Contains, s) }},
	{"absent", true, true, func(v *Vector, s string) string { return more(&v.Literal.Absent, s) }},
	{"bytes", true, false, setBytes},
	{"meta", true, false, func(v *Vector, s string) string { return list(&v.Literal.Meta, s, MetaMembers) }},
	{"mixed-text", true, false, func(v *Vector, s string) string { v.Mixed.Exact = true; return text(&v.Mixed.Text, s) }},
	{"mixed-meta", true, false, func(v *Vector, s string) string { return list(&v.Mixed.Meta, s, MetaMembers) }},
	{"again", true, false, func(v *Vector, s string) string { return text(&v.Again, s) }},
	{"comment", false, false, func(v *Vector, s string) string { v.Comment = s; return unless(s != "", "comment is empty") }},
}

// Parse reads one vector; its Name is left empty. The error is a *SyntaxError.
func Parse(src []byte) (Vector, error) {
	var v Vector
	line, why := v.parse(string(src))
	if why == "" {
		line, why = 0, v.check()
	}
	if why != "" {
		return Vector{}, &SyntaxError{line, why}
	}
	return v, nil
}

func (v *Vector) parse(s string) (line int, why string) {
	if len(s) > maxFile {
		return 0, "the file is too long"
	}
	body, ok := strings.CutSuffix(s, "\n")
	if !ok {
		return 0, "the last line has no end"
	}
	lines := strings.Split(body, "\n")
	for i, l := range lines {
		if strings.HasSuffix(l, " ") {
			return i + 1, "the line ends with a space"
		}
	}
	line, why = v.header(lines)
	if why != "" {
		return line, why
	}
	for i, l := range lines[line:] {
		part, why := unescape(l)
		if why == "" && (l == "" && len(lines) > line+1 || len(v.Payload)+len(part) > maxText) {
			why = "the payload has an empty line or is too long"
		}
		if why != "" {
			return line + i + 1, why
		}
		v.Payload += part
	}
	return 0, ""
}

// header reads up to the empty line and returns the number of lines read.
func (v *Vector) header(lines []string) (n int, why string) {
	at, mixed := 0, ""
	for i, l := range lines {
		if l == "" {
			for ; at < len(header); at++ {
				if !header[at].optional {
					return i + 1, "no " + header[at].name
				}
			}
			v.inherit(mixed)
			return i + 1, unless(i+1 < len(lines), "no payload")
		}
		name, value, ok := strings.Cut(l, ": ")
		if !ok { // an empty value: the line must not end with a space
			name, ok = strings.CutSuffix(l, ":")
		}
		if !ok || !printable(value) {
			return i + 1, "not a name, a colon, a space and printable ASCII"
		}
		for at < len(header) && header[at].name != name {
			if !header[at].optional {
				return i + 1, "unknown, repeated or out of order"
			}
			at++
		}
		if at == len(header) {
			return i + 1, "unknown, repeated or out of order"
		}
		if why := header[at].set(v, value); why != "" {
			return i + 1, why
		}
		if strings.HasPrefix(name, "mixed-") {
			mixed += name
		}
		if !header[at].many {
			at++
		}
	}
	return len(lines), "no empty line behind the header"
}

// inherit gives scope mixed what was not said of it alone.
func (v *Vector) inherit(said string) {
	own := v.Mixed
	v.Mixed = v.Literal
	if strings.Contains(said, "mixed-text") {
		v.Mixed.Exact, v.Mixed.Text = true, own.Text
	}
	if strings.Contains(said, "mixed-meta") {
		v.Mixed.Meta = own.Meta
	}
}

// check holds the header lines against one another.
func (v *Vector) check() string {
	w := &v.Literal
	says := w.Exact || len(w.Contains) > 0 || len(w.Absent) > 0 || w.Max > 0
	differs := v.Mixed.Text != w.Text || !slices.Equal(v.Mixed.Meta, w.Meta)
	switch {
	case v.Expected == Reject && (says || len(w.Meta) > 0 || differs || v.Again != ""):
		return "rejected, and yet something is expected of the text"
	case v.Expected != Reject && !says:
		return "nothing is expected of the text"
	case v.Scope != Any && differs:
		return "one scope, and yet two expectations"
	case v.Quotes > 1 && v.Field != "quote":
		return "quotes of another field"
	case !v.JSON && v.Expected != Reject && !utf8.ValidString(v.Payload):
		return "ill-formed UTF-8 in JSON is to be rejected"
	case v.Field == "query" && v.Expected != Accept:
		return "a query is accepted"
	}
	return ""
}

func unless(ok bool, why string) string {
	if ok {
		return ""
	}
	return why
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func oneOf(dst *string, s string, allowed []string) string {
	*dst = s
	return unless(slices.Contains(allowed, s), "not a value that this header may have")
}

func index[T ~uint8](dst *T, s string, names []string) string {
	n := slices.Index(names, s)
	*dst = T(max(n, 0))
	return unless(n >= 0, "not a value that this header may have")
}

// list takes words, each once and in the order of allowed; "-" stands for an empty list.
func list(dst *[]string, s string, allowed []string) string {
	*dst = []string{}
	if s == "-" {
		return ""
	}
	last := -1
	for _, w := range strings.Split(s, " ") {
		n := slices.Index(allowed, w)
		if n <= last {
			return "unknown word, or out of order"
		}
		last = n
		*dst = append(*dst, w)
	}
	return ""
}

func text(dst *string, s string) (why string) {
	*dst, why = unescape(s)
	return why
}

func more(dst *[]string, s string) string {
	t, why := unescape(s)
	if why == "" && t == "" {
		why = "empty text"
	}
	*dst = append(*dst, t)
	return why
}

func setQuotes(v *Vector, s string) string {
	n, err := strconv.Atoi(s)
	v.Quotes = n
	return unless(err == nil && n > 1 && n <= 100 && strconv.Itoa(n) == s, "quotes is no number from 2 to 100")
}

func setExpect(v *Vector, s string) string {
	name, code, coded := strings.Cut(s, " ")
	if why := index(&v.Expected, name, expectedNames); why != "" {
		return why
	}
	v.Code = code
	return unless(coded == (v.Expected != Accept) && (!coded || isName("000-"+code)), "accept alone, or reject or either with a code")
}

func setBytes(v *Vector, s string) string {
	lo, hi, _ := strings.Cut(s, "..")
	a, errA := strconv.Atoi(lo)
	b, errB := strconv.Atoi(hi)
	v.Literal.Min, v.Literal.Max = a, b
	return unless(errA == nil && errB == nil && 0 <= a && a <= b && b > 0, "bytes is not MIN..MAX")
}
