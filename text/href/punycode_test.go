// SPDX-License-Identifier: Apache-2.0

package href

import (
	"strings"
	"testing"

	"golang.org/x/net/idna"
	"pgregory.net/rapid"
)

// The samples of RFC 3492, section 7.1, that fit a label, in lower case, and
// some that are no encoding.
func TestDecodePunycode(t *testing.T) {
	for s, want := range map[string]string{
		"egbpdaj6bu4bxfgehfvwxn":                   "\u0644\u064a\u0647\u0645\u0627\u0628\u062a\u0643\u0644\u0645\u0648\u0634\u0639\u0631\u0628\u064a\u061f",
		"ihqwcrb4cv8a8dqg056pqjye":                 "\u4ed6\u4eec\u4e3a\u4ec0\u4e48\u4e0d\u8bf4\u4e2d\u6587",
		"4dbcagdahymbxekheh6e0a7fei0b":             "\u05dc\u05de\u05d4\u05d4\u05dd\u05e4\u05e9\u05d5\u05d8\u05dc\u05d0\u05de\u05d3\u05d1\u05e8\u05d9\u05dd\u05e2\u05d1\u05e8\u05d9\u05ea",
		"3b-ww4c5e180e575a65lsy2b":                 "3\u5e74b\u7d44\u91d1\u516b\u5148\u751f",
		"hello-another-way--fc4qua05auwb3674vfr0b": "hello-another-way-\u305d\u308c\u305e\u308c\u306e\u5834\u6240",
		"mnchen-3ya":                               "m\u00fcnchen",
		"":                                         "",
		"-":                                        "",
		"-abc":                                     "",
		"abc-":                                     "",
		"a\u00e9":                                  "",
		"mnchen-3y":                                "",
		"99999999":                                 "",
		strings.Repeat("9", 60):                    "",
		strings.Repeat("z", 64):                    "",
	} {
		got, ok := decodePunycode(s)
		if ok != (want != "") || ok && string(got) != want {
			t.Errorf("decodePunycode(%q) = %+q, %v; want %+q", s, string(got), ok, want)
		}
	}
}

// What x/net encodes decodes to what was encoded.
func TestPunycodeRoundTrip(t *testing.T) {
	letters := []rune("abcz09\u00fc\u00df\u0436\u05d0\u4eac\u3042\uac00\U00010400\U0001f600")
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.StringOfN(rapid.SampledFrom(letters), 1, 14, -1).Draw(t, "label")
		ace, err := idna.Punycode.ToASCII(want)
		if err != nil || !strings.HasPrefix(ace, acePrefix) {
			return
		}
		if len(ace) > maxLabel {
			return
		}
		got, ok := decodeLabel(ace)
		if !ok || string(got) != want {
			t.Fatalf("%q: %+q, %v; want %+q", ace, string(got), ok, want)
		}
	})
}

// Labels by what they show. Each is encoded first, so that the table can be read.
func TestInternationalLabels(t *testing.T) {
	for _, tt := range []struct {
		host string
		ok   bool
	}{
		{"m\u00fcnchen.de", true},
		{"\u043f\u0440\u0438\u043c\u0435\u0440.\u0440\u0444", true},
		{"\u65e5\u672c\u8a9e.jp", true},
		{"\u3072\u3089\u30ab\u30bf\u6f22abc.jp", true},    // the three scripts of Japanese with Latin
		{"\ud55c\uad6d\u6f22.kr", true},                   // Korean with Han
		{"col\u00b7lectiu.cat", true},                     // l, middle dot, l
		{"\u0e44\u0e17\u0e22.th", true},                   // Thai, with vowels that are not letters
		{"\u0928\u092e\u0938\u094d\u0924\u0947.in", true}, // Devanagari with marks
		{"\u0441\u043e\u0440.\u0440\u0444", true},         // looks ASCII, but so does its domain not
		{"\u0430\u0440\u0440\u04cf\u0435.com", false},     // Cyrillic that looks like "apple"
		{"\u0441\u043e\u0440.com", false},                 // the same under a Latin domain
		{"\u0261oogle.com", false},                        // Latin, but a look-alike of ASCII
		{"\u0435xample.org", false},                       // Cyrillic and Latin
		{"\u03bfpen\u00e9.org", false},                    // Greek and Latin
		{"\u0430\u03b1\u0436.org", false},                 // Cyrillic and Greek
		{"\u3042\uac00.jp", false},                        // Hiragana and Hangul
		{"a\u00b7b.cat", false},                           // middle dot elsewhere
		{"\u2764\u65e5.jp", false},                        // a symbol
		{"\uff45x\u00e9.org", false},                      // full-width: not its own NFKC
		{"e\u0301x.org", false},                           // not its own NFC
		{"\u0301ab.org", false},                           // begins with a mark
		{"go\u0336ogl\u00e9.org", false},                  // struck out
		{"ab\u200d\u00e9.org", false},                     // joiner
		{"ab\u202e\u00e9.org", false},                     // override
		{"ab\ue000\u00e9.org", false},                     // private use
		{"ab\u2044\u00e9.org", false},                     // looks like a slash
		{"\u01c3\u00e9.org", true},                        // a click letter is a letter
	} {
		labels := strings.Split(tt.host, ".")
		for i, label := range labels {
			ace, err := idna.Punycode.ToASCII(label)
			if err != nil {
				t.Fatal(err)
			}
			labels[i] = ace
		}
		if _, err := Parse("https://" + strings.Join(labels, ".") + "/"); (err == nil) != tt.ok {
			t.Errorf("%+q (%s): %v, want ok = %v", tt.host, strings.Join(labels, "."), err, tt.ok)
		}
	}
}
