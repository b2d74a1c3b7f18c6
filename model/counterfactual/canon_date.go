// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"slices"
	"strconv"
	"strings"
	"sync"
)

// canonDate takes year-month-day with -, / or ., day.month.year with dots, and days
// with the name of a month, each with or without a time behind it. Day and month
// with slashes are no date: nobody can tell which is which.
func canonDate(s string) (string, bool) {
	if len(s) < 8 || len(s) > 64 {
		return "", false
	}
	day, clock := s, ""
	if i := strings.IndexAny(s, "T "); i >= 8 && i <= 10 && s[0] >= '0' && s[0] <= '9' {
		day, clock = s[:i], strings.TrimSpace(s[i+1:])
	}
	y, m, d, ok := parseDay(day)
	if !ok {
		if y, m, d, ok = parseNamedDay(s); !ok {
			return "", false
		}
		clock = ""
	}
	clock, ok = canonClock(clock)
	if !ok || m < 1 || m > 12 || d < 1 || d > 31 {
		return "", false
	}
	pad := func(n, w int) string { t := strconv.Itoa(n); return strings.Repeat("0", max(0, w-len(t))) + t }
	return "d:" + pad(y, 4) + "-" + pad(m, 2) + "-" + pad(d, 2) + clock, true
}

func parseDay(s string) (y, m, d int, ok bool) {
	for _, sep := range []string{"-", "/", "."} {
		p := strings.Split(s, sep)
		if len(p) != 3 || !digits(p[0]) || !digits(p[1]) || !digits(p[2]) {
			continue
		}
		if sep == "." && len(p[2]) == 4 {
			p[0], p[2] = p[2], p[0]
		}
		if len(p[0]) != 4 || len(p[1]) > 2 || len(p[2]) > 2 {
			return 0, 0, 0, false
		}
		y, _ = strconv.Atoi(p[0])
		m, _ = strconv.Atoi(p[1])
		d, _ = strconv.Atoi(p[2])
		return y, m, d, true
	}
	return 0, 0, 0, false
}

// monthNames are the names of the months as dates have them, in small letters as squeeze leaves
// them: of English, Spanish, French, Portuguese, German, Italian, Dutch, Russian, Turkish,
// Indonesian, Polish, Hindi, Bengali, Arabic and Urdu. No name is that of two months.
var monthNames = [12]string{
	"jan january jan. enero janvier janeiro januar gennaio januari \u044f\u043d\u0432\u0430\u0440\u044f ocak stycznia \u091c\u0928\u0935\u0930\u0940 \u099c\u09be\u09a8\u09c1\u09af\u09bc\u09be\u09b0\u09bf \u064a\u0646\u0627\u064a\u0631 \u062c\u0646\u0648\u0631\u06cc",
	"feb february feb. febrero f\u00e9vrier fevereiro februar febbraio februari \u0444\u0435\u0432\u0440\u0430\u043b\u044f \u015fubat lutego \u092b\u0930\u0935\u0930\u0940 \u09ab\u09c7\u09ac\u09cd\u09b0\u09c1\u09af\u09bc\u09be\u09b0\u09bf \u0641\u0628\u0631\u0627\u064a\u0631 \u0641\u0631\u0648\u0631\u06cc",
	"mar march mar. marzo mars mar\u00e7o m\u00e4rz maart \u043c\u0430\u0440\u0442\u0430 mart maret marca \u092e\u093e\u0930\u094d\u091a \u09ae\u09be\u09b0\u09cd\u099a \u0645\u0627\u0631\u0633 \u0645\u0627\u0631\u0686",
	"apr april apr. abril avril aprile \u0430\u043f\u0440\u0435\u043b\u044f nisan kwietnia \u0905\u092a\u094d\u0930\u0948\u0932 \u098f\u09aa\u09cd\u09b0\u09bf\u09b2 \u0623\u0628\u0631\u064a\u0644 \u0627\u067e\u0631\u06cc\u0644",
	"may mayo mai maio maggio mei \u043c\u0430\u044f may\u0131s maja \u092e\u0908 \u09ae\u09c7 \u0645\u0627\u064a\u0648 \u0645\u0626\u06cc",
	"jun june jun. junio juin junho juni giugno \u0438\u044e\u043d\u044f haziran czerwca \u091c\u0942\u0928 \u099c\u09c1\u09a8 \u064a\u0648\u0646\u064a\u0648 \u062c\u0648\u0646",
	"jul july jul. julio juillet julho juli luglio \u0438\u044e\u043b\u044f temmuz lipca \u091c\u0941\u0932\u093e\u0908 \u099c\u09c1\u09b2\u09be\u0987 \u064a\u0648\u0644\u064a\u0648 \u062c\u0648\u0644\u0627\u0626\u06cc",
	"aug august aug. agosto ao\u00fbt augustus agustus \u0430\u0432\u0433\u0443\u0441\u0442\u0430 a\u011fustos sierpnia \u0905\u0917\u0938\u094d\u0924 \u0986\u0997\u09b8\u09cd\u099f \u0623\u063a\u0633\u0637\u0633 \u0627\u06af\u0633\u062a",
	"sep sept september sep. sept. septiembre septembre setembro settembre \u0441\u0435\u043d\u0442\u044f\u0431\u0440\u044f eyl\u00fcl wrze\u015bnia \u0938\u093f\u0924\u0902\u092c\u0930 \u09b8\u09c7\u09aa\u09cd\u099f\u09c7\u09ae\u09cd\u09ac\u09b0 \u0633\u0628\u062a\u0645\u0628\u0631 \u0633\u062a\u0645\u0628\u0631",
	"oct october oct. octubre octobre outubro oktober ottobre \u043e\u043a\u0442\u044f\u0431\u0440\u044f ekim pa\u017adziernika \u0905\u0915\u094d\u091f\u0942\u092c\u0930 \u0985\u0995\u09cd\u099f\u09cb\u09ac\u09b0 \u0623\u0643\u062a\u0648\u0628\u0631 \u0627\u06a9\u062a\u0648\u0628\u0631",
	"nov november nov. noviembre novembre novembro \u043d\u043e\u044f\u0431\u0440\u044f kas\u0131m listopada \u0928\u0935\u0902\u092c\u0930 \u09a8\u09ad\u09c7\u09ae\u09cd\u09ac\u09b0 \u0646\u0648\u0641\u0645\u0628\u0631 \u0646\u0648\u0645\u0628\u0631",
	"dec december dec. diciembre d\u00e9cembre dezembro dezember dicembre desember \u0434\u0435\u043a\u0430\u0431\u0440\u044f aral\u0131k grudnia \u0926\u093f\u0938\u0902\u092c\u0930 \u09a1\u09bf\u09b8\u09c7\u09ae\u09cd\u09ac\u09b0 \u062f\u064a\u0633\u0645\u0628\u0631 \u062f\u0633\u0645\u0628\u0631",
}

// months are the numbers of the months, by their names.
var months = sync.OnceValue(func() map[string]int {
	out := map[string]int{}
	for i, names := range monthNames {
		for _, name := range strings.Fields(names) {
			out[squeeze(name)] = i + 1
		}
	}
	return out
})

// dateWords stand between the day, the month and the year of a date: 5 de marzo de 2026.
var dateWords = []string{"de", "del", "di", "of"}

// dateFields is how many words a date in words has, if it begins with the first of these fields.
func dateFields(fields []string) int {
	n := 3
	for i := 1; i < len(fields) && i < 4; i += 2 {
		if slices.Contains(dateWords, fields[i]) {
			n++
		}
	}
	return min(n, len(fields))
}

// parseNamedDay takes "5 January 2024", "January 5th, 2024", "5 de marzo de 2026", and years, months
// and days with their signs in Chinese, Japanese and Korean.
func parseNamedDay(s string) (y, m, d int, ok bool) {
	s = squeeze(s)
	if y, m, d, ok = parseSignedDay(s); ok {
		return y, m, d, true
	}
	f := strings.Fields(strings.ReplaceAll(s, ",", " "))
	f = slices.DeleteFunc(f, func(w string) bool { return slices.Contains(dateWords, w) })
	if len(f) != 3 {
		return 0, 0, 0, false
	}
	if !digits(f[0][:1]) {
		f[0], f[1] = f[1], f[0]
	}
	for _, suffix := range []string{"st", "nd", "rd", "th", "er", "\u00ba", ".", "o"} {
		f[0] = strings.TrimSuffix(f[0], suffix)
	}
	m, ok = months()[f[1]]
	if !ok || !digits(f[0]) || len(f[0]) > 2 || !digits(f[2]) || len(f[2]) != 4 {
		return 0, 0, 0, false
	}
	d, _ = strconv.Atoi(f[0])
	y, _ = strconv.Atoi(f[2])
	return y, m, d, true
}

// daySigns stand behind the year, the month and the day, in Chinese and Japanese, and in Korean.
var daySigns = [][3]string{{"\u5e74", "\u6708", "\u65e5"}, {"\ub144", "\uc6d4", "\uc77c"}}

// parseSignedDay takes a date with such signs, and nothing behind it.
func parseSignedDay(s string) (y, m, d int, ok bool) {
	for _, signs := range daySigns {
		year, rest, a := strings.Cut(s, signs[0])
		month, rest, b := strings.Cut(rest, signs[1])
		day, rest, c := strings.Cut(rest, signs[2])
		month, day = strings.TrimSpace(month), strings.TrimSpace(day)
		if !a || !b || !c || rest != "" || len(year) != 4 || !digits(year) || len(month) > 2 || !digits(month) || len(day) > 2 || !digits(day) {
			continue
		}
		y, _ = strconv.Atoi(year)
		m, _ = strconv.Atoi(month)
		d, _ = strconv.Atoi(day)
		return y, m, d, true
	}
	return 0, 0, 0, false
}

// signedDays are the dates with such signs in a word, which may have other characters around them.
func signedDays(word string) (out []string) {
	for _, signs := range daySigns {
		for rest := word; ; {
			i := strings.Index(rest, signs[0])
			if i < 0 {
				break
			}
			j := strings.Index(rest[i:], signs[2])
			if start := i - 4; start >= 0 && j >= 0 && j < 24 && digits(rest[start:i]) {
				out = append(out, rest[start:i+j+len(signs[2])])
			}
			rest = rest[i+len(signs[0]):]
		}
	}
	return out
}

// canonClock is a time of day behind a date, seconds of 0 left out.
func canonClock(s string) (string, bool) {
	if s == "" {
		return "", true
	}
	s = strings.TrimSuffix(strings.TrimSuffix(s, "Z"), "+00:00")
	s, _, _ = strings.Cut(s, ".")
	p := strings.Split(s, ":")
	if len(p) < 2 || len(p) > 3 {
		return "", false
	}
	for i, x := range p {
		if !digits(x) || len(x) > 2 {
			return "", false
		}
		if len(x) == 1 {
			p[i] = "0" + x
		}
	}
	if len(p) == 3 && p[2] == "00" {
		p = p[:2]
	}
	return "T" + strings.Join(p, ":"), true
}
