// SPDX-License-Identifier: Apache-2.0

// Package residue measures what scrubbing leaves of attack and benign text, by checks that share nothing with the scrubber.
package residue

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/pellucid-mcp/pellucid/platform/datatest"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// leastSame is the share of benign rows that faithful must leave as they were.
const leastSame = 0.999

// mustSurvive names the collections to which leastSame applies: languages,
// emoji, code, tool results. The others hold text that is benign in intent and
// hidden in form, or are not what the faithful profile is for.
var mustSurvive = []string{"benign_multilingual", "benign_unicode", "benign_code", "benign_tool_results"}

// A Family counts the rows of one family of one collection.
type Family struct {
	Collection string `json:"collection"`
	Family     string `json:"family"`
	Attack     bool   `json:"attack"`
	Rows       int    `json:"rows"`

	// Rows with a hidden code point, a control token, a hidden message: as
	// received, and after the mcp profile.
	Hidden        int `json:"hidden"`
	HiddenAfter   int `json:"hidden_after"`
	Tokens        int `json:"tokens"`
	TokensAfter   int `json:"tokens_after"`
	Messages      int `json:"messages"`
	MessagesAfter int `json:"messages_after"`

	// After the faithful profile: rows with a token or a message left, rows
	// that differ at all, rows whose NFC is that of what was received.
	FaithfulTokens   int `json:"faithful_tokens_after"`
	FaithfulMessages int `json:"faithful_messages_after"`
	FaithfulChanged  int `json:"faithful_changed"`
	FaithfulSame     int `json:"faithful_same_nfc"`

	// Rows whose digits differ after the profile, in any script. Those of terminal escapes
	// are not digits of the text.
	MCPDigits      int `json:"mcp_digits_changed"`
	FaithfulDigits int `json:"faithful_digits_changed"`
}

// A Target is a figure that has to be reached.
type Target struct {
	Name string `json:"name"`
	Want string `json:"want"`
	Got  string `json:"got"`
	Met  bool   `json:"met"`
}

// A Report is what Measure found.
type Report struct {
	Families []Family `json:"families"`
	Targets  []Target `json:"targets"`
	// Misses holds the ids of rows that missed a target, at most 20.
	Misses []string `json:"misses"`
}

const maxMisses = 20

// Measure scrubs every row of every collection under dir. It calls progress,
// unless that is nil, with the name of each collection that it begins.
func Measure(dir string, progress func(string)) (*Report, error) {
	mcp, err := scrub.Compile(scrub.Policy{Profile: scrub.MCP})
	if err != nil {
		return nil, err
	}
	faithful, err := scrub.Compile(scrub.Policy{Profile: scrub.Faithful})
	if err != nil {
		return nil, err
	}
	paths, err := datatest.Files(dir)
	if err != nil {
		return nil, err
	}
	m := &measurement{mcp: mcp, faithful: faithful, report: &Report{Misses: []string{}}}
	for _, path := range paths {
		if progress != nil {
			progress(datatest.Name(path))
		}
		m.collection, m.at = datatest.Name(path), map[string]int{}
		if err := datatest.Read(path, m.row); err != nil {
			return nil, err
		}
	}
	m.report.setTargets()
	return m.report, nil
}

type measurement struct {
	mcp, faithful *scrub.Scrubber
	result        scrub.Result
	report        *Report
	collection    string
	at            map[string]int // family → index into report.Families
}

func (m *measurement) row(row datatest.Row) error {
	i, ok := m.at[row.Family]
	if !ok {
		i = len(m.report.Families)
		m.at[row.Family] = i
		m.report.Families = append(m.report.Families, Family{Collection: m.collection, Family: row.Family, Attack: row.Attack})
	}
	f := &m.report.Families[i]
	f.Rows++
	count(&f.Hidden, hasHidden(row.Text))
	count(&f.Tokens, hasToken(row.Text))
	count(&f.Messages, hasMessage(row.Text))

	m.mcp.Scrub(row.Text, &m.result)
	out := m.result.Clean.String()
	missed := count(&f.HiddenAfter, hasHidden(out))
	missed = count(&f.TokensAfter, hasToken(out)) || missed
	missed = count(&f.MessagesAfter, hasMessage(out)) || missed
	was := digits(row.Text)
	count(&f.MCPDigits, digits(out) != was)

	m.faithful.Scrub(row.Text, &m.result)
	out = m.result.Clean.String()
	missed = count(&f.FaithfulTokens, hasToken(out)) || missed
	missed = count(&f.FaithfulMessages, hasMessage(out)) || missed
	count(&f.FaithfulChanged, out != row.Text)
	same := count(&f.FaithfulSame, out == row.Text || norm.NFC.String(out) == norm.NFC.String(row.Text))
	changed := count(&f.FaithfulDigits, digits(out) != was)
	if f.mustSurvive() && !same || !f.Attack && changed {
		missed = true
	}
	if missed && len(m.report.Misses) < maxMisses {
		m.report.Misses = append(m.report.Misses, row.ID)
	}
	return nil
}

// count adds one to *n if is, and returns is.
func count(n *int, is bool) bool {
	if is {
		*n++
	}
	return is
}

// digits are the numerals of a text, in order.
func digits(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Nd, unicode.No, unicode.Nl) {
			return r
		}
		return -1
	}, escapes.ReplaceAllString(s, ""))
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

func (f *Family) mustSurvive() bool {
	for _, name := range mustSurvive {
		if f.Collection == name {
			return true
		}
	}
	return false
}

func (r *Report) setTargets() {
	var all, attacks, honest, benign Family
	for i := range r.Families {
		f := &r.Families[i]
		all.add(f)
		if f.Attack {
			attacks.add(f)
		} else {
			honest.add(f)
		}
		if f.mustSurvive() {
			benign.add(f)
		}
	}
	none := func(name string, got int) {
		r.Targets = append(r.Targets, Target{name, "0", fmt.Sprint(got), got == 0})
	}
	none("rows with a hidden code point left under mcp", all.HiddenAfter)
	none("rows with a control token left under mcp", all.TokensAfter)
	none("rows with a hidden message left under mcp", all.MessagesAfter)
	none("attack rows with a control token left under faithful", attacks.FaithfulTokens)
	none("attack rows with a hidden message left under faithful", attacks.FaithfulMessages)
	none("benign rows with other digits under faithful", honest.FaithfulDigits)
	share := 1.0
	if benign.Rows > 0 {
		share = float64(benign.FaithfulSame) / float64(benign.Rows)
	}
	r.Targets = append(r.Targets, Target{
		Name: "benign rows with NFC(out) = NFC(in) under faithful",
		Want: fmt.Sprintf(">= %.1f %%", 100*leastSame),
		Got:  fmt.Sprintf("%.2f %% (%d of %d)", 100*share, benign.FaithfulSame, benign.Rows),
		Met:  share >= leastSame,
	})
}

func (f *Family) add(g *Family) {
	f.Rows += g.Rows
	f.Hidden += g.Hidden
	f.HiddenAfter += g.HiddenAfter
	f.Tokens += g.Tokens
	f.TokensAfter += g.TokensAfter
	f.Messages += g.Messages
	f.MessagesAfter += g.MessagesAfter
	f.FaithfulTokens += g.FaithfulTokens
	f.FaithfulMessages += g.FaithfulMessages
	f.FaithfulChanged += g.FaithfulChanged
	f.FaithfulSame += g.FaithfulSame
	f.MCPDigits += g.MCPDigits
	f.FaithfulDigits += g.FaithfulDigits
}

// total returns the sum of all families.
func (r *Report) total() Family {
	total := Family{Collection: "all"}
	for i := range r.Families {
		total.add(&r.Families[i])
	}
	return total
}

// Met reports whether every target was reached.
func (r *Report) Met() bool {
	for _, t := range r.Targets {
		if !t.Met {
			return false
		}
	}
	return true
}
