// SPDX-License-Identifier: Apache-2.0

package residue

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/datatest"
)

func TestNaive(t *testing.T) {
	for _, tt := range []struct {
		in                     string
		hidden, token, message bool
	}{
		{"", false, false, false},
		{"plain, déjà vu, 日本語\n\ttab", false, false, false},
		{"a\rb", true, false, false},
		{"soft\u00adhyphen", true, false, false},
		{"\U0002FFFE", true, false, false},
		{"<|im_start|>", false, true, false},
		{"<|IM_Start|>", false, false, false},
		{"\uff1c\uff5cim_start\uff5c\uff1e", false, true, false},
		{"<|im_\u200bstart|>", true, true, false},
		{"<\uff5cbegin\u2581of\u2581sentence\uff5c>", false, true, false},
		{"<|im_stop|>", false, false, false},
		{"[/INST]", false, true, false},
		{"\U000E0073\U000E0061\U000E0079\U000E0021", true, false, true},
		{"\U000E0073\U000E0061\U000E0079", true, false, false},
		{"\U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F", true, false, false},
		{"\U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0068\U000E007F", true, false, true},
		{"x\ufe00\U000E0101\ufe02\U000E0103", true, false, true},
		{strings.Repeat("\u200b\u200c", 4), true, false, true},
		{"\U0001F469\u200d\U0001F469\u200d\U0001F467", true, false, false},
	} {
		if got := hasHidden(tt.in); got != tt.hidden {
			t.Errorf("HasHidden(%+q) = %v", tt.in, got)
		}
		if got := hasToken(tt.in); got != tt.token {
			t.Errorf("HasToken(%+q) = %v", tt.in, got)
		}
		if got := hasMessage(tt.in); got != tt.message {
			t.Errorf("HasMessage(%+q) = %v", tt.in, got)
		}
	}
}

// TestTargets checks that a missed target is seen, and what counts as one.
func TestTargets(t *testing.T) {
	good := []Family{
		{Collection: "attack_x", Attack: true, Rows: 10, Hidden: 10, FaithfulChanged: 10},
		{Collection: "benign_code", Rows: 1000, FaithfulSame: 999, FaithfulChanged: 1},
		{Collection: "benign_overdefense", Rows: 10, FaithfulChanged: 10},
	}
	for _, tt := range []struct {
		name string
		edit func(f []Family)
		met  bool
	}{
		{"good", func(f []Family) {}, true},
		{"hidden left", func(f []Family) { f[0].HiddenAfter = 1 }, false},
		{"hidden left in benign", func(f []Family) { f[2].HiddenAfter = 1 }, false},
		{"token left", func(f []Family) { f[0].TokensAfter = 1 }, false},
		{"message left", func(f []Family) { f[0].MessagesAfter = 1 }, false},
		{"token left under faithful", func(f []Family) { f[0].FaithfulTokens = 1 }, false},
		{"message left under faithful", func(f []Family) { f[0].FaithfulMessages = 1 }, false},
		{"digits changed under faithful", func(f []Family) { f[2].FaithfulDigits = 1 }, false},
		{"digits changed in an attack, or under mcp", func(f []Family) { f[0].FaithfulDigits, f[1].MCPDigits = 1, 1 }, true},
		{"two of 1000 altered", func(f []Family) { f[1].FaithfulSame = 998 }, false},
	} {
		r := Report{Families: append([]Family(nil), good...)}
		tt.edit(r.Families)
		r.setTargets()
		if r.Met() != tt.met {
			t.Errorf("%s: Met = %v, targets %+v", tt.name, r.Met(), r.Targets)
		}
	}
}

func TestCorpora(t *testing.T) {
	dir, err := datatest.CorporaDir("../..")
	if err != nil {
		t.Skip(err)
	}
	r, err := Measure(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range r.Targets {
		if !target.Met {
			t.Errorf("%s: %s, want %s", target.Name, target.Got, target.Want)
		}
	}
	if len(r.Misses) > 0 {
		t.Logf("rows that missed: %q", r.Misses)
	}
	if total := r.total(); total.Rows < 5000 || total.Hidden < 100 || total.Tokens < 50 || total.Messages < 20 {
		t.Errorf("the data are not what the targets were set for: %+v", total)
	}
}
