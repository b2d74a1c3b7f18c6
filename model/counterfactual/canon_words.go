// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Times of day, numbers and durations as people write them: "9 pm", "21 Uhr", "half past seven", "two hundred",
// "an hour and a half".

// numberWords are the words of numbers, in English, German, Spanish and French.
var numberWords = sync.OnceValue(func() map[string]float64 {
	out := map[string]float64{"dozen": 12, "dutzend": 12, "docena": 12, "docenas": 12, "douzaine": 12, "hundred": 100, "hundert": 100, "cien": 100,
		"ciento": 100, "cent": 100, "cents": 100, "thousand": 1000, "tausend": 1000, "mil": 1000, "mille": 1000, "million": 1e6, "millionen": 1e6, "millones": 1e6, "millions": 1e6}
	for _, list := range []string{
		"zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty",
		"null ein zwei drei vier f\u00fcnf sechs sieben acht neun zehn elf zw\u00f6lf dreizehn vierzehn f\u00fcnfzehn sechzehn siebzehn achtzehn neunzehn zwanzig",
		"cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince diecis\u00e9is diecisiete dieciocho diecinueve veinte",
		"z\u00e9ro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit dix-neuf vingt",
	} {
		for n, w := range strings.Fields(list) {
			out[w] = float64(n)
		}
	}
	for _, list := range []string{"thirty forty fifty sixty seventy eighty ninety", "drei\u00dfig vierzig f\u00fcnfzig sechzig siebzig achtzig neunzig",
		"treinta cuarenta cincuenta sesenta setenta ochenta noventa", "trente quarante cinquante soixante"} {
		for n, w := range strings.Fields(list) {
			out[w] = float64(30 + 10*n)
		}
	}
	for _, w := range []string{"eins", "eine", "einen", "una", "une"} {
		out[w] = 1
	}
	return out
})

// spokenWord is the number that one word means: forty-two, zweihundertf\u00fcnfzig.
func spokenWord(w string) (parts []float64, ok bool) {
	if n, ok := numberWords()[w]; ok {
		return []float64{n}, true
	}
	if n, ok := canonNumber(w); ok {
		f, err := strconv.ParseFloat(n[2:], 64)
		return []float64{f}, err == nil
	}
	for len(w) > 0 && len(w) < 64 {
		found := 0
		for i := min(len(w), 16); i > 1 && found == 0; i-- {
			if n, ok := numberWords()[w[:i]]; ok {
				parts, found = append(parts, n), i
			}
		}
		if found == 0 {
			return nil, false
		}
		w = strings.TrimPrefix(strings.TrimPrefix(w[found:], "-"), "und")
	}
	return parts, len(parts) > 1
}

// spokenNumber is the number with which the fields begin, and how many of them say it. digits: no word does.
func spokenNumber(f []string) (value float64, used int, digits bool) {
	total, group := 0.0, 0.0
	digits = true
	for i, w := range f[:min(len(f), 10)] {
		w = bareWord(w)
		if (w == "and" || w == "und" || w == "y" || w == "et") && used == i && i > 0 {
			continue
		}
		if (w == "a" || w == "an") && i == 0 && len(f) > 1 && numberWords()[bareWord(f[1])] >= 12 {
			group, used = 1, 1
			continue
		}
		parts, ok := spokenWord(w)
		if !ok || used > 0 && used < i && numberWords()[w] == 0 {
			break
		}
		_, number := canonNumber(w)
		digits = digits && number
		for k, n := range parts {
			switch next := 0.0; {
			case n >= 1000:
				total, group = total+max(group, 1)*n, 0
			case n == 100 || n == 12 && strings.HasPrefix(w, "do") || n == 12 && w == "dutzend":
				group = max(group, 1) * n
			case k+1 < len(parts) && parts[k+1] >= 20 && parts[k+1] < 100 && n < 10: // f\u00fcnfundzwanzig
				group += n
			default:
				if next = n; number && used > 0 {
					return total + group, used, digits
				}
				group += next
			}
		}
		used = i + 1
	}
	return total + group, used, digits
}

func canonFloat(f float64) string { return "n:" + strconv.FormatFloat(f, 'f', -1, 64) }

// namedHours are times with a name.
var namedHours = map[string]int{"noon": 720, "midday": 720, "mittag": 720, "mittags": 720, "mediod\u00eda": 720, "midi": 720, "midnight": 0, "mitternacht": 0, "medianoche": 0, "minuit": 0}

// timesAt are the minutes of the day that the fields, in small letters, may mean at their beginning, and how many of them
// say so. bare: it is an hour without any sign that it is one.
func timesAt(f []string) (out []int, used int, bare bool) {
	if len(f) == 0 {
		return nil, 0, false
	}
	w := strings.Trim(f[0], "()[]\"'`,;!?")
	if m, ok := namedHours[strings.TrimRight(w, ".")]; ok {
		return []int{m}, 1, false
	}
	offset := map[string]int{"half": 30, "halb": -30, "quarter": 15, "viertel": 15}[w]
	if offset != 0 && len(f) > 1 {
		rest := f[1:]
		switch p := rest[0]; {
		case w == "halb":
			rest = append([]string{""}, rest...)
		case p == "to" || p == "vor" || p == "before":
			offset = -offset
		case p != "past" && p != "after" && p != "nach":
			return nil, 0, false
		}
		if hour, n, _ := spokenNumber(rest[1:min(len(rest), 2)]); n == 1 && hour >= 1 && hour <= 12 {
			m := int(hour)%12*60 + offset
			return []int{(m + 1440) % 1440, (m + 720) % 1440}, len(f) - len(f[1:]) + map[bool]int{true: 1, false: 2}[w == "halb"], false
		}
		return nil, 0, false
	}
	w = strings.TrimRight(w, ".")
	digit := 0
	for digit < len(w) && (w[digit] >= '0' && w[digit] <= '9' || digit > 0 && strings.IndexByte(":.h", w[digit]) >= 0 && digit+1 < len(w) && w[digit+1] >= '0' && w[digit+1] <= '9') {
		digit++
	}
	clock, sign, used := w[:digit], w[digit:], 1
	if i := strings.IndexAny(sign, "+-z"); i == 0 { // a time zone
		sign = ""
	}
	hour, minute := 0, 0
	parts := strings.FieldsFunc(clock, func(r rune) bool { return r == ':' || r == '.' || r == 'h' })
	if digit == 0 {
		n, k, _ := spokenNumber(f[:1])
		if k == 0 || n < 1 || n > 12 {
			return nil, 0, false
		}
		hour, sign = int(n), ""
	} else if len(parts) > 3 || len(parts[0]) > 2 || len(parts) > 1 && len(parts[1]) != 2 {
		return nil, 0, false
	} else {
		hour, _ = strconv.Atoi(parts[0])
		if len(parts) > 1 {
			minute, _ = strconv.Atoi(parts[1])
		}
	}
	if next := ""; sign == "" && len(f) > 1 {
		if next = strings.Trim(f[1], "()[]\"'`,;!?"); slices.Contains(clockSigns, strings.TrimRight(strings.ReplaceAll(next, ".", ""), ".")) {
			sign, used = next, 2
		}
	}
	sign = strings.ReplaceAll(strings.ReplaceAll(sign, ".", ""), "\u2019", "'")
	if hour > 24 || minute > 59 || sign != "" && !slices.Contains(clockSigns, sign) || digit == 0 && sign == "" {
		return nil, 0, false
	}
	m := hour%24*60 + minute
	switch {
	case sign == "am" || sign == "pm":
		if hour < 1 || hour > 12 {
			return nil, 0, false
		}
		if m %= 720; sign == "pm" {
			m += 720
		}
	case sign == "o'clock" || digit == 0:
		if hour <= 12 {
			return []int{m, (m + 720) % 1440}, used, false
		}
	case sign == "" && len(parts) < 2:
		return []int{m, (m%720 + 720) % 1440}[:1+map[bool]int{true: 1}[hour > 0 && hour <= 12]], used, true
	case sign == "" && strings.Contains(clock, ".") && !strings.Contains(clock, ":"):
		return []int{m}, used, true // 9.30 is a number as well
	}
	return []int{m}, used, false
}

// clockSigns stand behind the hour of a time.
var clockSigns = []string{"am", "pm", "uhr", "h", "hrs", "o'clock", "heures", "horas", "ore"}

func canonMinutes(m int) string {
	two := func(n int) string { return string([]byte{'0' + byte(n/10), '0' + byte(n%10)}) }
	return "t:" + two(m/60) + ":" + two(m%60)
}

// canonTime takes a time of day that means one minute.
func canonTime(s string) (string, bool) {
	if len(s) < 2 || len(s) > 32 {
		return "", false
	}
	f := strings.Fields(squeeze(s))
	times, used, bare := timesAt(f)
	if len(times) != 1 || used != len(f) || bare {
		return "", false
	}
	return canonMinutes(times[0]), true
}

// beforeHour are words behind which a bare number is an hour.
var beforeHour = []string{"at", "by", "around", "from", "until", "till", "um", "ab", "bis", "gegen", "\u00e0", "las", "alle"}

// spoken notes what the user says in words: numbers and times of day.
func (v *vocabulary) spoken() {
	f := strings.Fields(v.squeezed)
	for i := range f {
		times, _, bare := timesAt(f[i:min(len(f), i+4)])
		if !bare || i > 0 && slices.Contains(beforeHour, f[i-1]) {
			for _, m := range times {
				v.words[canonMinutes(m)] = true
			}
		}
		if n, used, digits := spokenNumber(f[i:]); used > 0 && !digits {
			v.words[canonFloat(n)] = true
		}
	}
}

// Meanings are the canonical values that a short text may mean beside its own: a number or a time in words, and a duration
// in hours, minutes and seconds.
func Meanings(text string) (out []string) {
	f := strings.Fields(squeeze(cutValue(text)))
	for i := range f[:min(len(f), 16)] {
		times, _, _ := timesAt(f[i:min(len(f), i+4)])
		for _, m := range times {
			out = append(out, canonMinutes(m))
		}
		if n, used, _ := spokenNumber(f[i:]); used > 0 && (i == 0 || !slices.Contains(out, canonFloat(n))) {
			out = append(out, canonFloat(n))
		}
	}
	if m := minutesOf(f); m > 0 {
		out = append(out, canonFloat(m), canonFloat(m/60), canonFloat(m*60))
	}
	return out
}

// minutesOf is a duration in minutes; 0 if the fields say none.
func minutesOf(f []string) (sum float64) {
	unit := 0.0
	for i := 0; i < len(f); i++ {
		n, used, _ := spokenNumber(f[i:])
		switch {
		case f[i] == "half" || f[i] == "halbe" || f[i] == "media" || f[i] == "demi":
			n, used = 0.5, 1
		case (f[i] == "a" || f[i] == "an") && used == 0:
			n, used = 1, 1
		}
		if used == 0 {
			continue
		}
		next := i + used
		for next < len(f) && (f[next] == "a" || f[next] == "an") {
			next++
		}
		per := 0.0
		if next < len(f) {
			per = map[string]float64{"min": 1, "mins": 1, "minute": 1, "minutes": 1, "minuten": 1, "minutos": 1, "hour": 60, "hours": 60, "h": 60, "hr": 60, "hrs": 60, "stunde": 60, "stunden": 60,
				"hora": 60, "horas": 60, "heure": 60, "heures": 60, "second": 1.0 / 60, "seconds": 1.0 / 60, "sekunden": 1.0 / 60, "day": 1440, "days": 1440, "tage": 1440}[bareWord(f[next])]
		}
		switch {
		case per > 0:
			sum, unit = sum+n*per, per
			i = next
		case n == 0.5 && unit > 0: // an hour and a half
			sum += unit / 2
		}
	}
	return sum
}

// SameDay compares a day as a text may name it with a canonical date. known is false if the text names no day of a month or
// of the week.
func SameDay(text, date string) (same, known bool) {
	if formOf(date) != FormDate || len(date) < 12 {
		return false, false
	}
	year, _ := strconv.Atoi(date[2:6])
	month, _ := strconv.Atoi(date[7:9])
	day, _ := strconv.Atoi(date[10:12])
	text = squeeze(cutValue(text))
	if c := canonical(text); formOf(c) == FormDate {
		return strings.HasPrefix(date, c[:12]), true
	}
	f := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
	named, numbers := 0, []int(nil)
	for _, w := range f[:min(len(f), 16)] {
		if m := months()[w]; m > 0 {
			named = m
			continue
		}
		if i := slices.IndexFunc(weekdays, func(names string) bool { return strings.Contains(" "+names+" ", " "+strings.TrimRight(w, ".")+" ") }); i >= 0 {
			return weekday(year, month, day) == i, true
		}
		var parts []int
		for _, p := range strings.FieldsFunc(w, func(r rune) bool { return r == '.' || r == '/' }) {
			n, err := strconv.Atoi(strings.TrimRight(p, "abcdefghijklmnopqrstuvwxyz\u00ba"))
			if err != nil || n < 1 || n > 9999 {
				parts = nil
				break
			}
			parts = append(parts, n)
		}
		if len(parts) >= 2 {
			return slices.Contains(parts[:2], day) && slices.Contains(parts[:2], month), true
		}
		numbers = append(numbers, parts...)
		if len(parts) == 1 && named == 0 && len(f) <= 3 && !digits(w) { // the 29th
			return parts[0] == day, true
		}
	}
	if named == 0 || len(numbers) == 0 {
		return false, false
	}
	return named == month && slices.Contains(numbers, day), true
}

// weekdays are the names of the days of the week, from Sunday.
var weekdays = []string{"sunday sun sonntag domingo dimanche domenica", "monday mon montag lunes lundi luned\u00ec segunda", "tuesday tue dienstag martes mardi marted\u00ec",
	"wednesday wed mittwoch mi\u00e9rcoles mercredi mercoled\u00ec", "thursday thu donnerstag jueves jeudi gioved\u00ec", "friday fri freitag viernes vendredi venerd\u00ec", "saturday sat samstag s\u00e1bado samedi sabato"}

// weekday is the day of the week of a date, 0 on Sunday (Sakamoto).
func weekday(y, m, d int) int {
	if m < 1 || m > 12 {
		return -1
	}
	if m < 3 {
		y--
	}
	return (y + y/4 - y/100 + y/400 + []int{0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4}[m-1] + d) % 7
}
