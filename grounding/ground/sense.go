// SPDX-License-Identifier: Apache-2.0

package ground

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// answers reports whether a claim may be what a question is about: it has the same sense,
// or the question names no number and is a search by a few words of the claim.
func answers(question, claim string) bool {
	if len(numbersOf(question)) == 0 && 2*len(strings.Fields(question)) < len(strings.Fields(claim)) {
		return negationsOf(question) == negationsOf(claim)
	}
	return sameSense(question, claim)
}

// sameSense reports whether two texts that share words may say the same: they have the
// same numbers, and negate equally often. It does not see a contrary that is said in
// other words. spec: grounding/3
func sameSense(a, b string) bool {
	return negationsOf(a) == negationsOf(b) && slices.Equal(numbersOf(a), numbersOf(b))
}

//go:embed negations.txt
var negationList string

// negations are the words of negationList: whole ones, and parts that are looked for
// anywhere.
var negations = sync.OnceValues(func() (whole map[string]bool, parts []string) {
	whole = map[string]bool{}
	for line := range strings.Lines(negationList) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		for _, w := range words[min(1, len(words)):] {
			if part, ok := strings.CutPrefix(w, "*"); ok {
				parts = append(parts, plain(strings.TrimSuffix(part, "*")))
			} else {
				whole[plain(w)] = true
			}
		}
	}
	return whole, parts
})

// plain is s in lower case and without accents, as the index of words has it.
func plain(s string) string {
	var b ucd.Buffer
	b.Decompose(ucd.NFC, strings.ToValidUTF8(s, " "), 0)
	out := make([]rune, 0, len(b.Cells))
	for _, c := range b.Cells {
		if !unicode.Is(unicode.Mn, c.R) || c.R == '\u3099' || c.R == '\u309a' { // which make another kana
			out = append(out, unicode.ToLower(c.R))
		}
	}
	return string(out)
}

// negationsOf counts the words of a text that negate. "isn't" is one word.
func negationsOf(text string) (n int) {
	whole, parts := negations()
	text = plain(apostrophes.Replace(text))
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.Is(unicode.Mc, r) }) {
		if whole[word] {
			n++
			continue
		}
		for _, p := range parts {
			n += strings.Count(word, p)
		}
	}
	return n
}

var apostrophes = strings.NewReplacer("'", "", "\u2019", "")

// numbersOf returns the numbers of a text, in order of their spelling, which is the same
// for 1,000 and 1000, for 1.50 and 1.5, and for the digits of every script. A power has
// a sign of its own: 10\u2076 is 10^6, and not 106.
func numbersOf(text string) (out []string) {
	rs := []rune(text)
	for i := 0; i < len(rs); {
		if digit(rs[i]) < 0 {
			i++
			continue
		}
		sign := ""
		if i > 0 && (rs[i-1] == '-' || rs[i-1] == '\u2212') && (i == 1 || !unicode.IsLetter(rs[i-2]) && digit(rs[i-2]) < 0) {
			sign = "-"
		}
		var n string
		n, i = number(rs, i)
		out = append(out, sign+n)
	}
	slices.Sort(out)
	return out
}

// number reads a number that begins at i, and returns where it ends.
func number(rs []rune, i int) (string, int) {
	var whole, fraction strings.Builder
	run := func(b *strings.Builder) (n int) {
		for ; i < len(rs) && digit(rs[i]) >= 0; i++ {
			b.WriteByte(byte('0' + digit(rs[i])))
			n++
		}
		return n
	}
	first := run(&whole)
	for groups := rune(0); i < len(rs); { // 1,000,000
		sep := rs[i]
		if first > 3 || !strings.ContainsRune(",'\u00a0\u202f\u2019\u066c", sep) || groups != 0 && sep != groups || digitsAt(rs, i+1) != 3 {
			break
		}
		groups = sep
		i++
		run(&whole)
	}
	if i < len(rs) && strings.ContainsRune(".,\u066b", rs[i]) && digitsAt(rs, i+1) > 0 {
		i++
		run(&fraction)
	}
	out := strings.TrimLeft(whole.String(), "0")
	if out == "" {
		out = "0"
	}
	if f := strings.TrimRight(fraction.String(), "0"); f != "" {
		out += "." + f
	}
	for power := "^"; i < len(rs); i++ {
		d := strings.IndexRune(superscripts, rs[i])
		if d < 0 {
			break
		}
		out += power + string("0123456789"[len([]rune(superscripts[:d]))])
		power = ""
	}
	return out, i
}

const superscripts = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"

// digitsAt counts the digits from i on.
func digitsAt(rs []rune, i int) (n int) {
	for i+n < len(rs) && digit(rs[i+n]) >= 0 {
		n++
	}
	return n
}

// digit is the value of a decimal digit of any script, -1 for what is not one.
func digit(r rune) int {
	switch {
	case '0' <= r && r <= '9':
		return int(r - '0')
	case r < 0x80 || !unicode.IsDigit(r):
		return -1
	}
	for _, t := range unicode.Nd.R16 { // its ranges are of whole sets of ten
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return int(r-rune(t.Lo)) % 10
		}
	}
	for _, t := range unicode.Nd.R32 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return int(r-rune(t.Lo)) % 10
		}
	}
	return -1
}
