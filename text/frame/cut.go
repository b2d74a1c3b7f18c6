// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"strconv"
	"strings"
)

// Cut says how much of a text is left that was longer than its ceiling. The zero Cut is that of
// a text which is whole.
type Cut struct {
	Kept, Of int // bytes of the text as it was received: those that are left, and all
}

// The parts of the sentence that says so. Everything between them is a number.
const (
	cutStart = "[cut by Pellucid: "
	cutOf    = " of "
	cutEnd   = " bytes]"
	maxCut   = len(cutStart) + len(cutOf) + len(cutEnd) + 2*20
)

// String returns "[cut by Pellucid: 1048573 of 10485760 bytes]", or "" of a text that is whole.
func (c Cut) String() string { return string(c.append(nil)) }

// AppendLine appends a line feed and the sentence, or nothing of a text that is whole.
func (c Cut) AppendLine(dst []byte) []byte {
	if c == (Cut{}) {
		return dst
	}
	return c.append(append(dst, '\n'))
}

func (c Cut) append(dst []byte) []byte {
	if c == (Cut{}) {
		return dst
	}
	dst = append(dst, cutStart...)
	dst = strconv.AppendInt(dst, int64(c.Kept), 10)
	dst = append(dst, cutOf...)
	dst = strconv.AppendInt(dst, int64(c.Of), 10)
	return append(dst, cutEnd...)
}

// parseCut parses the line with which s begins, in its one spelling, and returns its length.
func parseCut(s string) (c Cut, length int, ok bool) {
	s, ok = strings.CutPrefix(s, "\n")
	if !ok {
		return Cut{}, 0, false
	}
	s = s[:min(len(s), maxCut)]
	s = s[:strings.IndexByte(s, ']')+1]
	kept, of, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(s, cutStart), cutEnd), cutOf)
	c.Kept, _ = strconv.Atoi(kept)
	c.Of, _ = strconv.Atoi(of)
	var spelled [maxCut]byte
	if c == (Cut{}) || string(c.append(spelled[:0])) != s {
		return Cut{}, 0, false
	}
	return c, 1 + len(s), true
}
