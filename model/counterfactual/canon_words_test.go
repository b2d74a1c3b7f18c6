// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"slices"
	"strings"
	"testing"
)

// TestTimes: one time of day has one spelling, and what means two minutes or none has none.
func TestTimes(t *testing.T) {
	for want, list := range map[string]string{
		"t:09:00": "9:00|09:00|9 am|9am|9 a.m.|09:00:00|9 Uhr|9h|9h00|9.00 Uhr|09:00Z|9:00 AM",
		"t:21:00": "21:00|9 pm|9pm|9 p.m.|9 PM|21 Uhr|21h|21:00:00|21:00+01:00|9:00 pm",
		"t:12:00": "noon|12 pm|12:00|Mittag",
		"t:00:00": "midnight|12 am|0:00|00:00:00",
		"t:20:30": "8.30 pm|20h30|20.30 Uhr|8:30 p.m.",
		"":        "9|nine|half past seven|25:00|9:61|1:2:3:4|13 pm|9:5|12:30 apples|:|am|half|quarter|quarter to|16:9999",
	} {
		for s := range strings.SplitSeq(list, "|") {
			if got, _ := canonTime(s); got != want {
				t.Errorf("%q: %q, want %q", s, got, want)
			}
		}
	}
}

// TestMeanings: a text in words means the value that a call has.
func TestMeanings(t *testing.T) {
	for _, tt := range []struct{ text, value string }{
		{"half past seven", "t:07:30"}, {"half past seven", "t:19:30"}, {"quarter to nine", "t:20:45"}, {"halb acht", "t:19:30"}, {"8 o'clock", "t:20:00"}, {"nine o'clock", "t:09:00"}, {"at 9", "t:09:00"},
		{"two hundred euros", "n:200"}, {"fifty bucks", "n:50"}, {"three dozen", "n:36"}, {"a dozen", "n:12"}, {"2 dozen eggs", "n:24"}, {"one thousand two hundred and fifty", "n:1250"},
		{"forty-two", "n:42"}, {"zweihundertf\u00fcnfzig Euro", "n:250"}, {"f\u00fcnfundzwanzig", "n:25"}, {"cincuenta y cinco", "n:55"}, {"a hundred", "n:100"}, {"two and a half thousand", ""},
		{"half an hour", "n:30"}, {"an hour and a half", "n:90"}, {"90 minutes", "n:1.5"}, {"2 hours", "n:120"}, {"two hours and ten minutes", "n:130"},
	} {
		if got := Meanings(tt.text); tt.value != "" && !slices.Contains(got, tt.value) {
			t.Errorf("%q: %q has no %s", tt.text, got, tt.value)
		}
	}
	v := (&Assembly{Task: "Send two hundred euros at nine pm, or at 7, and call +49 30 1234 5678."}).trusted()
	for _, value := range []string{"n:200", "t:07:00", "t:19:00", "p:493012345678"} {
		if !v.holds(value) {
			t.Errorf("the user's words do not hold %s", value)
		}
	}
	if v.holds("n:900") || v.holds("t:08:00") {
		t.Error("the user's words hold what they do not say")
	}
}

func TestSameDay(t *testing.T) {
	for _, tt := range []struct {
		text, date  string
		same, known bool
	}{
		{"5 December", "d:2026-12-05", true, true}, {"Dec 5th", "d:2026-12-05", true, true}, {"5.12.", "d:2026-12-05", true, true}, {"the 5th", "d:2026-12-05", true, true},
		{"12/05/2026", "d:2026-12-05", true, true}, {"next Friday", "d:2026-12-04", true, true}, {"el viernes", "d:2026-12-04", true, true}, {"Friday", "d:2026-12-05", false, true},
		{"29 Nov", "d:2026-12-29", false, true}, {"the 6th", "d:2026-12-05", false, true}, {"tomorrow", "d:2026-12-05", false, false}, {"in 5 days", "d:2026-12-05", false, false},
		{"2026-12-05", "d:2026-12-05T10:00", true, true}, {"2026-12-05", "d:2026-12-24", false, true},
	} {
		if same, known := SameDay(tt.text, tt.date); same != tt.same || known != tt.known {
			t.Errorf("%q, %s: %v %v", tt.text, tt.date, same, known)
		}
	}
}
