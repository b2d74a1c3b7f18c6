// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// canonical is a value in the one spelling by which two answers are compared:
// numbers, dates, times, phone numbers, e-mail addresses, URLs and IBANs have one each, and any other
// text is compared by NFKC, without regard to ASCII case and white space. It
// recognises a value by its form; what has none of these is text.
func canonical(s string) string {
	s = cutValue(s)
	t := ordinaryDigits(strings.TrimSpace(s))
	for _, form := range []func(string) (string, bool){canonPhone, canonNumber, canonDate, canonTime, canonEmail, canonIBAN, canonURL} {
		if c, ok := form(t); ok {
			return c
		}
	}
	return squeeze(t)
}

func cutValue(s string) string {
	if len(s) <= 16*maxValue {
		return s
	}
	s = s[:16*maxValue]
	for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

// squeeze is s in NFKC and ASCII lower case, each run of white space one space.
func squeeze(s string) string {
	if ucd.PlainASCII(s) != len(s) {
		s = strings.Map(func(r rune) rune {
			if r > 0x7f && ucd.ClassOf(r) != ucd.NotHidden {
				return -1 // a reader does not see it, and a tool does not take it for part of a value
			}
			return r
		}, string(ucd.Append(nil, ucd.NFKC, s)))
	}
	out := make([]byte, 0, len(s))
	space := false
	for i := range len(s) {
		c := s[i]
		switch {
		case c == ' ' || '\t' <= c && c <= '\r':
			space = len(out) > 0
			continue
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		}
		if space {
			out = append(out, ' ')
			space = false
		}
		out = append(out, c)
	}
	return string(out)
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// zeros are the digits 0 of scripts in which numbers are written with digits of their own; the
// others of each follow.
var zeros = []rune{0x0660, 0x06f0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0b66, 0x0be6, 0x0c66, 0x0ce6, 0x0d66, 0x0e50, 0x0ed0, 0x0f20, 0x1040, 0x17e0, 0xff10}

// ordinaryDigits writes the digits of other scripts as 0 to 9.
func ordinaryDigits(s string) string {
	if ucd.PlainASCII(s) == len(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		for _, zero := range zeros {
			if r < zero {
				break // they are in their order
			}
			if r < zero+10 {
				return '0' + r - zero
			}
		}
		return r
	}, s)
}

// beginsWithDigit reports whether a word begins with a digit of any of these scripts.
func beginsWithDigit(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return '0' <= r && r <= '9' || r >= zeros[0] && digits(ordinaryDigits(s[:n]))
}

// canonNumber takes a decimal number, with an exponent as JSON writes it, with a currency's sign,
// with commas between thousands, or as in India (1,00,000), or with k for thousands (12k).
func canonNumber(s string) (string, bool) {
	for _, sign := range []string{"$", "\u20ac", "\u00a3", "\u00a5"} {
		s = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(s, sign), sign))
	}
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(strings.TrimPrefix(s, "-"), "+")
	if len(s) == 0 || len(s) > 64 {
		return "", false
	}
	if strings.ContainsAny(s, "eE") {
		// JSON's exponents: an exact spelling would be long, a float64 is what peers read.
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || s[0] < '0' || s[0] > '9' || strings.ContainsAny(s, "xXpP_") {
			return "", false
		}
		if s = strconv.FormatFloat(f, 'f', -1, 64); len(s) > 400 {
			return "", false
		}
	}
	thousands := strings.HasSuffix(s, "k") || strings.HasSuffix(s, "K")
	if thousands {
		s = s[:len(s)-1]
	}
	whole, fraction, point := strings.Cut(s, ".")
	if strings.Contains(whole, ",") {
		parts := strings.Split(whole, ",")
		if !grouped(parts, 3) && !grouped(parts, 2) {
			return "", false
		}
		whole = strings.Join(parts, "")
	}
	if thousands && digits(whole) && (!point || digits(fraction)) {
		fraction += strings.Repeat("0", max(0, 3-len(fraction)))
		whole, fraction, point = whole+fraction[:3], fraction[3:], len(fraction) > 3
	}
	if !digits(whole) || point && !digits(fraction) {
		return "", false
	}
	whole = strings.TrimLeft(whole, "0")
	fraction = strings.TrimRight(fraction, "0")
	if whole == "" {
		whole = "0"
	}
	if fraction != "" {
		whole += "." + fraction
	}
	if neg && whole != "0" {
		whole = "-" + whole
	}
	return "n:" + whole, true
}

// grouped reports whether a number stands in groups of so many digits, with three in the last one.
func grouped(parts []string, size int) bool {
	last := len(parts) - 1
	for i, p := range parts {
		if !digits(p) || i == last && len(p) != 3 || 0 < i && i < last && len(p) != size || i == 0 && len(p) > size {
			return false
		}
	}
	return true
}

// canonEmail takes one address, with or without mailto:, or in angle brackets behind a name.
func canonEmail(s string) (string, bool) {
	if i := strings.LastIndexByte(s, '<'); i >= 0 && strings.HasSuffix(s, ">") {
		s = s[i+1 : len(s)-1] // Ann <ann@example.com>
	}
	s = strings.TrimPrefix(s, "mailto:")
	name, domain, ok := strings.Cut(s, "@")
	if !ok || name == "" || !strings.Contains(domain, ".") || strings.ContainsAny(s, " \t\n,;:/<>\"") || strings.Contains(domain, "@") {
		return "", false
	}
	return "e:" + squeeze(s), true
}

// canonIBAN takes two letters, two digits and 11 to 30 letters or digits, with
// spaces or hyphens between groups. Its check digits are not checked: an attacker's
// account is no less one.
func canonIBAN(s string) (string, bool) {
	s = strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' || r == 0xA0 {
			return -1
		}
		return r
	}, s)
	if len(s) < 15 || len(s) > 34 || !digits(s[2:4]) {
		return "", false
	}
	b := []byte(s)
	many := 0
	for i, c := range b {
		switch {
		case 'a' <= c && c <= 'z':
			b[i] = c - 'a' + 'A'
		case 'A' <= c && c <= 'Z':
		case '0' <= c && c <= '9':
			many++
		default:
			return "", false
		}
	}
	if b[0] < 'A' || b[1] < 'A' || many < 8 {
		return "", false
	}
	return "i:" + string(b), true
}

// canonURL takes an http or https URL, or a bare host name that begins with www.
// The scheme, a default port and a single slash at the end make no difference.
func canonURL(s string) (string, bool) {
	s = strings.ReplaceAll(s, `\`, "/") // as browsers read it
	low := squeeze(s)
	rest, ok := strings.CutPrefix(low, "https://")
	if !ok {
		if rest, ok = strings.CutPrefix(low, "http://"); !ok && !strings.HasPrefix(low, "www.") {
			return "", false
		}
	}
	if strings.ContainsAny(rest, " <>\"") || rest == "" {
		return "", false
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host := strings.TrimSuffix(strings.TrimSuffix(rest[:end], ":443"), ":80")
	// The path keeps its case.
	tail := s[len(s)-min(len(s), len(rest)-end):]
	if len(low) != len(s) {
		tail = rest[end:]
	}
	return "u:" + strings.TrimSuffix(host, ".") + strings.TrimSuffix(unescape(tail), "/"), true
}

// unescape undoes percent escapes of letters, digits and -._~, which mean the same
// either way.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				c := byte(n)
				if 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
					out = append(out, c)
					i += 2
					continue
				}
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

// Atoms are what a reader of a text may act on: URLs, e-mail addresses, phone numbers, IBANs,
// amounts of money and commands, each once, in their order.
func Atoms(text string) []Proposal {
	var out []Proposal
	seen := map[string]bool{}
	add := func(kind, value string) {
		if a := (Proposal{kind: proposedAtom, Tool: kind, Critical: []Argument{{kind, value}}}); !seen[kind+value] && len(out) < maxProposals {
			seen[kind+value] = true
			out = append(out, a)
		}
	}
	text = cutValue(text)
	fields := strings.Fields(text)
	for i, f := range fields {
		for t := range tokens(f) {
			c := canonical(t)
			switch formOf(c) {
			case FormURL:
				add("url", c)
			case FormMail:
				add("email", c)
			case FormIBAN:
				add("iban", c)
			}
		}
		if c, ok := groupedPhone(fields[i:]); ok {
			add("phone", c)
		} else if c, ok := groupedIBAN(fields[i:]); ok {
			add("iban", c)
		} else if c, ok := amount(fields, i); ok {
			add("amount", c)
		}
	}
	for line := range strings.Lines(text) {
		if c, ok := command(line); ok {
			add("command", c)
		}
	}
	return out
}

// bareWord is a word without the marks of the sentence around it.
func bareWord(s string) string {
	const marks = "()[]{}<>\"'`*,;:!?"
	return strings.TrimRight(strings.TrimLeft(s, marks), marks+".")
}

// tokens yields what may be a URL, a mail address, an account, a number or a date in a word of
// a text: the word without the marks around it, and what stands in it between marks, beside
// letters of another script, or behind a name.
func tokens(word string) iter.Seq[string] {
	return func(yield func(string) bool) {
		bare := bareWord(word)
		if !mayHaveForm(word) || !yield(bare) {
			return
		}
		if _, ok := canonNumber(bare); ok {
			return // 1,500 is one number
		}
		for run := range strings.FieldsFuncSeq(word, func(r rune) bool { return r >= 0x80 || strings.ContainsRune("\"'`<>()[]{}|;,*", r) }) {
			for _, t := range []string{run, addressIn(run), urlIn(run)} {
				if t != "" && t != word && !yield(bareWord(t)) {
					return
				}
			}
			if strings.Contains(run, "://") {
				continue
			}
			for part := range strings.FieldsFuncSeq(run, func(r rune) bool { return r == '=' || r == ':' }) {
				if part != run && !yield(bareWord(part)) {
					return
				}
			}
			for part := range strings.SplitSeq(run, "/") { // ann@example.com/bob@example.com
				if t := addressIn(part); t != "" && t != run && !yield(t) {
					return
				}
			}
		}
	}
}

// addressIn is the first mail address in a run of ASCII; "" if there is none.
func addressIn(s string) string {
	at := strings.IndexByte(s, '@')
	if at < 1 {
		return ""
	}
	start, end := at, at+1
	for start > 0 && (letter(s[start-1]) != 0 || strings.IndexByte("._%+-", s[start-1]) >= 0) {
		start--
	}
	for end < len(s) && (letter(s[end]) != 0 || s[end] == '.' || s[end] == '-') {
		end++
	}
	return strings.TrimRight(s[start:end], ".-")
}

// urlIn is a URL that something stands before; "" if there is none.
func urlIn(s string) string {
	for _, scheme := range []string{"https:", "http:", "www."} {
		if i := strings.Index(strings.ToLower(s), scheme); i > 0 {
			return s[i:]
		}
	}
	return ""
}

// canonPhone takes a phone number with the code of its country.
func canonPhone(s string) (string, bool) {
	if !strings.HasPrefix(s, "+") || len(s) > 32 {
		return "", false
	}
	n := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" -/().", r) {
			return -1
		}
		return r
	}, s[1:])
	return "p:" + n, digits(n) && 8 <= len(n) && len(n) <= 15
}

// groupedPhone takes a phone number in groups, the longest with which the fields begin.
func groupedPhone(f []string) (out string, ok bool) {
	if !strings.HasPrefix(bareWord(f[0]), "+") {
		return "", false
	}
	for n := min(len(f), 7); n > 0 && !ok; n-- {
		out, ok = canonPhone(bareWord(strings.Join(f[:n], " ")))
	}
	return out, ok
}

// groupedIBAN takes an IBAN in groups of four.
func groupedIBAN(f []string) (string, bool) {
	if len(f[0]) != 4 || !digits(f[0][2:]) {
		return "", false
	}
	var b strings.Builder
	for _, g := range f[:min(len(f), 9)] {
		g = strings.TrimRight(g, ".,;:!?)")
		if len(g) > 4 || g == "" {
			break
		}
		b.WriteString(g)
		if len(g) < 4 {
			break
		}
	}
	return canonIBAN(b.String())
}

// amount takes a number with a currency's sign or code before or behind it.
func amount(f []string, i int) (string, bool) {
	t := strings.TrimRight(strings.Trim(f[i], "()[]\"'`*,;:!?"), ".")
	sign := strings.ContainsAny(t, "$\u20ac\u00a3\u00a5")
	c, ok := canonNumber(t)
	if !ok {
		return "", false
	}
	for _, j := range []int{i - 1, i + 1} {
		if j >= 0 && j < len(f) {
			switch strings.Trim(f[j], ".,;:!?()*") {
			case "USD", "EUR", "GBP", "JPY", "CHF", "dollars", "euros", "pounds", "$", "\u20ac", "\u00a3":
				sign = true
			}
		}
	}
	return c, sign
}

// command takes a line that a shell would be given.
func command(line string) (string, bool) {
	s := strings.TrimSpace(line)
	s = strings.TrimSpace(strings.TrimPrefix(strings.Trim(s, "`"), "$ "))
	first, _, _ := strings.Cut(s, " ")
	switch first {
	case "curl", "wget", "rm", "sudo", "bash", "sh", "chmod", "ssh", "scp", "nc", "pip", "npm", "npx", "docker", "kubectl", "powershell", "eval":
		return squeeze(s), strings.Contains(s, " ")
	}
	return "", false
}
