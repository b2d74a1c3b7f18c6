// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"strings"
	"testing"
	"time"
)

var shownText = Shown{N: 7, At: time.Unix(1_700_000_000, 5).UTC(), Sum: Digest{1, 2, 3}}.String()

// TestParseShown: what is not exactly what String writes is refused.
func TestParseShown(t *testing.T) {
	if s, err := ParseShown(shownText); err != nil || s.N != 7 || !s.At.Equal(time.Unix(1_700_000_000, 5)) || s.Sum != (Digest{1, 2, 3}) {
		t.Errorf("%+v, %v", s, err)
	}
	for _, text := range []string{"", "7", "-1" + shownText[1:], "+" + shownText, "0" + shownText, shownText + ".", shownText + "0", strings.ToUpper(strings.Replace(shownText, "00", "aa", 1)), "99999999999999999999" + shownText[1:]} {
		if s, err := ParseShown(text); err == nil || s != (Shown{}) {
			t.Errorf("%q is read as %+v", text, s)
		}
	}
}

func FuzzParseShown(f *testing.F) {
	f.Add(shownText)
	f.Add("0.-1." + strings.Repeat("0", 64))
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := ParseShown(text); err == nil && s.String() != text {
			t.Errorf("%q is read as %+v", text, s)
		}
	})
}
