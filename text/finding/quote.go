// SPDX-License-Identifier: Apache-2.0

package finding

import (
	"strconv"
	"unicode/utf8"
)

// QuoteLimit is the number of bytes of its argument that Quote shows.
const QuoteLimit = 64

// Quote renders third-party text for an operator: a double-quoted Go string, ASCII
// only, every other code point and every control escaped (as by %+q). Of s it
// shows at most QuoteLimit bytes and never a part of a character; what is left
// out stands behind the quote as a number: "abc"...(+9 bytes). It is the one door
// by which such text may reach a log line, an error or a terminal.
func Quote(s string) string {
	if len(s) <= QuoteLimit {
		return strconv.QuoteToASCII(s)
	}
	cut := QuoteLimit
	// At most three bytes back; more would be ill-formed text, cut anywhere.
	for cut > QuoteLimit-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	if !utf8.RuneStart(s[cut]) {
		cut = QuoteLimit
	}
	return strconv.QuoteToASCII(s[:cut]) + "...(+" + strconv.Itoa(len(s)-cut) + " bytes)"
}
