// SPDX-License-Identifier: Apache-2.0

package store

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	maxWord  = 128 // bytes of a word; the rest of it is ignored
	maxWords = 128 // words of a query
)

// words returns the words of s in order: runs of letters and digits, without
// case, accents and compatibility forms; of scripts that are written without
// spaces, pairs of neighbouring letters. The index holds what words
// returns, so that no engine's own idea of a word, nor its query syntax, ever
// meets text that a user wrote.
func words(s string) []string {
	if out, ok := asciiWords(s); ok {
		return out
	}
	var out []string
	var word []byte
	var last rune // of a script without spaces, 0 if none
	paired := false
	flush := func() {
		if last != 0 && !paired {
			out = append(out, string(last))
		}
		last, paired = 0, false
		if len(word) > 0 {
			out = append(out, string(word))
			word = word[:0]
		}
	}
	for _, r := range norm.NFKD.String(strings.ToValidUTF8(s, " ")) {
		r = unicode.ToLower(r)
		switch {
		case unicode.Is(unicode.Mn, r):
			// An accent, or a vowel sign that has been written apart.
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Mc, r):
			flush()
		case unspaced(r):
			if len(word) > 0 {
				flush()
			}
			if last != 0 {
				out = append(out, string([]rune{last, r}))
				paired = true
			}
			last = r
		default:
			if last != 0 {
				flush()
			}
			if len(word)+utf8.RuneLen(r) <= maxWord {
				word = utf8.AppendRune(word, r)
			}
		}
	}
	flush()
	return out
}

// asciiWords is words for what most claims are; it reports false for the others.
func asciiWords(s string) ([]string, bool) {
	n := 0
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return nil, false
		}
		if s[i] == ' ' {
			n++
		}
	}
	s = strings.ToLower(s)
	out := make([]string, 0, min(n+1, len(s)))
	for i := 0; i < len(s); i++ {
		from := i
		for i < len(s) && (s[i] >= 'a' && s[i] <= 'z' || s[i] >= '0' && s[i] <= '9') {
			i++
		}
		if i > from {
			out = append(out, s[from:min(i, from+maxWord)])
		}
	}
	return out, true
}

func unspaced(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// A facet is a token that stands for a property of a claim. It begins with what
// no word contains, so no text can ask for one.
func facet(kind, value string) string {
	sum := sha256.Sum256([]byte(value))
	return "_" + kind + hex.EncodeToString(sum[:12])
}

// tokens returns the distinct tokens that a claim always has: its words, its
// group, its topic and the topics above it. The domains of its attestations join
// them as they come.
func tokens(text, group, topic string) []string {
	out := words(text)
	if group != "" {
		out = append(out, facet("g", group))
	}
	for i := range len(topic) {
		if topic[i] == ':' {
			out = append(out, facet("t", topic[:i]))
		}
	}
	if topic != "" {
		out = append(out, facet("t", topic))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
