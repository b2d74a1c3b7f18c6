// SPDX-License-Identifier: Apache-2.0

package surface

import "strings"

// maxReached is the longest URI, in bytes, that is compared with templates.
const maxReached = 8 << 10

// Beyond reports whether a URI may be one of the held templates' (RFC 6570) and is of
// no open one. Of the former it is if it could be by any reading: in other case, or
// escaped otherwise, and whatever stands for a variable. Of the latter only if it is
// by the letter, and at least as much of it is fixed: else a narrow template that is
// held would be within reach by a wide one. It takes linear time for each template.
func Beyond(uri string, held, open []string) bool {
	fixed := -1
	plain := ""
	for i, t := range held {
		if len(uri) > maxReached {
			return true
		}
		if i == 0 {
			plain = folded(uri)
		}
		if parts, _ := pieces(folded(t)); fits(parts, plain) {
			fixed = max(fixed, fixedBytes(t))
		}
	}
	if fixed < 0 {
		return false
	}
	for _, t := range open {
		if fixedBytes(t) >= fixed && spells(t, uri) {
			return false
		}
	}
	return true
}

// A piece of a template is an expression and the literal behind it. The first piece
// has no expression.
type piece struct {
	operator byte // of the expression; 0: none, which stands for what is not reserved
	literal  string
}

// pieces splits a template. Behind a brace that is never closed anything may follow,
// and whole is false.
func pieces(template string) (list []piece, whole bool) {
	literal, rest, more := strings.Cut(template, "{")
	list = []piece{{literal: literal}}
	for more {
		expression, after, closed := strings.Cut(rest, "}")
		if !closed {
			return append(list, piece{operator: '+'}), false
		}
		p := piece{}
		if expression != "" && strings.IndexByte("+#./;?&=,!@|", expression[0]) >= 0 {
			p.operator = expression[0]
		}
		p.literal, rest, more = strings.Cut(after, "{")
		list = append(list, p)
	}
	return list, true
}

// fits reports whether uri can be made of a template, whatever its expressions stand
// for. The first place for each literal leaves the most room for the others.
func fits(list []piece, uri string) bool {
	rest, ok := strings.CutPrefix(uri, list[0].literal)
	if !ok || len(list) == 1 {
		return ok && rest == ""
	}
	last := len(list) - 1
	for _, p := range list[1:last] {
		i := strings.Index(rest, p.literal)
		if i < 0 {
			return false
		}
		rest = rest[i+len(p.literal):]
	}
	return strings.HasSuffix(rest, list[last].literal)
}

// spells reports whether uri is made of the template by the letter: an expression
// without an operator stands for what is not reserved.
func spells(template, uri string) bool {
	list, whole := pieces(template)
	rest, ok := strings.CutPrefix(uri, list[0].literal)
	if !whole || !ok || len(list) == 1 {
		return whole && ok && rest == ""
	}
	for i, p := range list[1:] {
		end := strings.Index(rest, p.literal)
		if i == len(list)-2 { // the last one
			end = len(rest) - len(p.literal)
			if end < 0 || rest[end:] != p.literal {
				return false
			}
		}
		if end < 0 || p.operator == 0 && strings.ContainsAny(rest[:end], ":/?#[]@!$&'()*+;=") {
			return false
		}
		rest = rest[end+len(p.literal):]
	}
	return true
}

// fixedBytes is how much of a template is no expression.
func fixedBytes(template string) (n int) {
	list, _ := pieces(template)
	for _, p := range list {
		n += len(p.literal)
	}
	return n
}

// folded is s in lower case with its escapes decoded, as often as they may be by whoever
// reads it: two URIs that somebody may take for one another are the same.
func folded(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		b = append(b, c)
		// A decoded byte may end another escape: %2561 is %61 is a.
		for len(b) >= 3 && b[len(b)-3] == '%' {
			hi, lo := hexDigit(b[len(b)-2]), hexDigit(b[len(b)-1])
			if hi < 0 || lo < 0 {
				break
			}
			b = append(b[:len(b)-3], byte(hi<<4|lo))
		}
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
