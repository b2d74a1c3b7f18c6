// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"cmp"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Spans are pieces of segments: "SEGMENT:START-END" in ascending order, with commas, where no
// two overlap. It is comparable: equal lists are equal strings.
type Spans string

// maxSpans bounds a list.
const maxSpans = 4096

// SpansOf is the list of the spans given; those that touch are one.
func SpansOf(list ...Span) Spans {
	list = slices.Clone(list)
	slices.SortFunc(list, func(x, y Span) int {
		return cmp.Or(cmp.Compare(x.Segment, y.Segment), cmp.Compare(x.Start, y.Start), cmp.Compare(x.End, y.End))
	})
	var merged []Span
	for _, s := range list {
		if n := len(merged); n > 0 && merged[n-1].Segment == s.Segment && s.Start <= merged[n-1].End {
			merged[n-1].End = max(merged[n-1].End, s.End)
			continue
		}
		merged = append(merged, s)
	}
	var b []byte
	for i, s := range merged {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strconv.AppendInt(b, int64(s.Segment), 10), ':')
		b = append(strconv.AppendInt(b, int64(s.Start), 10), '-')
		b = strconv.AppendInt(b, int64(s.End), 10)
	}
	return Spans(b)
}

// List is the spans; an error if s is not what SpansOf writes.
func (s Spans) List() ([]Span, error) {
	if s == "" {
		return nil, nil
	}
	var out []Span
	for part := range strings.SplitSeq(string(s), ",") {
		segment, rest, _ := strings.Cut(part, ":")
		start, end, _ := strings.Cut(rest, "-")
		var n [3]int
		for i, digits := range []string{segment, start, end} {
			var err error
			if n[i], err = strconv.Atoi(digits); err != nil || n[i] < 0 {
				return nil, errSpans
			}
		}
		if out = append(out, Span{n[0], n[1], n[2]}); n[1] >= n[2] || len(out) > maxSpans {
			return nil, errSpans
		}
	}
	if SpansOf(out...) != s {
		return nil, errSpans
	}
	return out, nil
}

var errSpans = errors.New("counterfactual: read spans: not the one spelling")

// bySegment is the spans of each segment; nil if there are none.
func (s Spans) bySegment() map[int][]Span {
	list, err := s.List()
	if err != nil || len(list) == 0 {
		return nil
	}
	out := map[int][]Span{}
	for _, x := range list {
		out[x.Segment] = append(out[x.Segment], x)
	}
	return out
}

// cut is a text with a placeholder for each of the spans.
func cut(text string, spans []Span) string {
	if len(spans) == 0 {
		return text
	}
	var b strings.Builder
	at := 0
	for _, s := range spans {
		b.WriteString(text[at:s.Start])
		b.WriteString(spanPlaceholder)
		at = s.End
	}
	b.WriteString(text[at:])
	return b.String()
}

// maxUnit bounds a unit, in bytes: a longer sentence is several.
const maxUnit = 4 << 10

// unitsOf yields the pieces of a text that are withheld together: the scalar values of a JSON
// text, and of any other text its sentences. What parts them belongs to no unit of JSON.
func unitsOf(text string) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		if t := strings.TrimLeft(text, " \t\r\n"); t != "" && (t[0] == '{' || t[0] == '[') {
			var doc strictjson.Doc
			if doc.Reset([]byte(text), strictjson.Limits{}) == nil {
				leaves(doc.Root(), func(from, to int) bool { return sentencesOf(text, from, to, yield) })
				return
			}
		}
		sentencesOf(text, 0, len(text), yield)
	}
}

// leaves yields the place of every scalar under v, of a string that of what stands between
// the quotation marks.
func leaves(v strictjson.Value, yield func(from, to int) bool) bool {
	switch v.Kind() {
	case '{':
		for _, val := range v.Members() {
			if !leaves(val, yield) {
				return false
			}
		}
	case '[':
		for e := range v.Elements() {
			if !leaves(e, yield) {
				return false
			}
		}
	default:
		from, to := v.Offset(), v.Offset()+len(v.Raw())
		if v.Kind() == '"' {
			from, to = from+1, to-1
		}
		return from >= to || yield(from, to)
	}
	return true
}

// clauses yields the pieces of a text that may say something by themselves, so that they make up
// the text: sentences, of any script, their parts between marks, and what stands between the
// tags of a markup. Without them a rival would stand in the same piece as the value.
func clauses(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for s := range sentences(text) {
			start := 0
			for i, r := range s {
				end := 0
				switch n := utf8.RuneLen(r); {
				case r == '<' && i > start:
					end = i
				case strings.ContainsRune("\u3002\uff01\uff1f\uff1b\u3001\uff0c\u060c\u061b\u061f\u0964\u0965>|\t", r):
					end = i + n
				case strings.ContainsRune(",;:", r) && i+n < len(s) && s[i+n] == ' ':
					end = i + n
				}
				if end > start {
					if !yield(s[start:end]) {
						return
					}
					start = end
				}
			}
			if start < len(s) && !yield(s[start:]) {
				return
			}
		}
	}
}

// sentencesOf yields the clauses of text[from:to], none longer than maxUnit, without the
// white space around them. In a JSON string a line feed is an escape.
func sentencesOf(text string, from, to int, yield func(Span) bool) bool {
	flat := strings.ReplaceAll(text[from:to], `\n`, " \n") // of the same length
	at := 0
	for s := range clauses(flat) {
		end := at + len(s)
		for start := at; start < end; {
			stop := end
			if stop-start > maxUnit {
				stop = start + maxUnit
				if i := strings.LastIndexAny(flat[start:stop], " \t\n\r"); i > 0 {
					stop = start + i + 1
				} else {
					for stop > start+1 && flat[stop]&0xc0 == 0x80 {
						stop--
					}
				}
			}
			piece := flat[start:stop]
			lead := len(piece) - len(strings.TrimLeft(piece, " \t\r\n"))
			body := strings.TrimSpace(piece)
			if body != "" && !yield(Span{Start: from + start + lead, End: from + start + lead + len(body)}) {
				return false
			}
			start = stop
		}
		at = end
	}
	return true
}

// decoded is a unit of a JSON text without its escapes; any other text is itself.
func decoded(unit string) string {
	if !strings.Contains(unit, `\`) {
		return unit
	}
	var doc strictjson.Doc
	if doc.Reset([]byte(`"`+unit+`"`), strictjson.Limits{}) != nil {
		return unit
	}
	return doc.Root().Text()
}
