// SPDX-License-Identifier: Apache-2.0

package classify

import "unicode/utf8"

// overlap is how many code points two chunks of a text have in common, so that what
// crosses the border of one stands whole in the other: about three sentences.
const overlap = 400

// chunks cuts a text into pieces of at most most code points, each but the first
// beginning with the last code points of the one before. 0 stands for no limit.
// Bytes that are no UTF-8 count as one code point each. What the pieces hold
// together is the text, whole.
func chunks(s string, most int) []string {
	if most <= 0 || len(s) <= most || utf8.RuneCountInString(s) <= most {
		return []string{s}
	}
	shared := min(overlap, most/4)
	var out []string
	for {
		end := after(s, most)
		out = append(out, s[:end])
		if end == len(s) {
			return out
		}
		s = s[after(s, most-shared):]
	}
}

// after is where the first n code points of s end.
func after(s string, n int) int {
	i := 0
	for ; n > 0 && i < len(s); n-- {
		_, w := utf8.DecodeRuneInString(s[i:])
		i += w
	}
	return i
}

// A chunk is a piece of a segment.
type chunk struct {
	segment int
	text    string
	chars   int
	score   Score
	known   bool
	why     Reason // not known because
	same    *chunk // of equal text, which is asked about instead; nil: none
}

// batches groups what is to be asked into calls within the limits.
func batches(list []*chunk, l Limits) (out [][]*chunk) {
	var batch []*chunk
	total := 0
	for _, c := range list {
		if len(batch) == max(1, l.Texts) || len(batch) > 0 && l.Total > 0 && total+c.chars > l.Total {
			out, batch, total = append(out, batch), nil, 0
		}
		batch = append(batch, c)
		total += c.chars
	}
	if batch != nil {
		out = append(out, batch)
	}
	return out
}
