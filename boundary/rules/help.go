// SPDX-License-Identifier: Apache-2.0

package rules

import "strings"

// choices are the words of a member, and what each of them means.
type choices[T comparable] struct {
	words  []string
	values []T
}

// A MemberHelp is what flags that mean the same as a member say of it.
type MemberHelp struct {
	Text    string
	Words   []string // that may stand there; nil: others may
	Default string   // as a file spells it; "" where leaving the member out says something else
}

// Help returns the help of every member by its path, as defaults.profile. Names that the author
// of a file chooses are left out: servers.NAME.cwd is servers.cwd.
func Help() map[string]MemberHelp {
	out := map[string]MemberHelp{}
	var add func(under string, table []member)
	add = func(under string, table []member) {
		for _, m := range table {
			at := under + m.name
			out[at] = MemberHelp{m.sentence(), m.value.words, m.usual()}
			if m.value.form != scalar {
				add(at+".", m.value.sample())
			}
		}
	}
	add("", newRules().members())
	return out
}

// sentence is what a member means, without the marks and links of the page. A word of the
// configuration at its start stays as it is.
func (m member) sentence() string {
	s := m.plainWords()
	if !strings.HasPrefix(m.words, "`") {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return strings.TrimSuffix(s, ".") + "."
}

// plainWords are the words of a member without the marks and links of the page.
func (m member) plainWords() string {
	var b strings.Builder
	for rest := m.words; rest != ""; {
		before, link, found := strings.Cut(rest, " ([")
		b.WriteString(before)
		if rest = ""; found {
			_, rest, _ = strings.Cut(link, "))")
		}
	}
	return strings.ReplaceAll(b.String(), "`", "")
}

// usual is the default as a file spells it; "" where leaving the member out says something else,
// and of an object.
func (m member) usual() string {
	if m.value.form != scalar {
		return ""
	}
	var d dumper
	if m.value.write(&d, m.name); m.value.usual != nil && d.b.Len() == 0 {
		m.value.usual(&d, m.name)
	}
	text, _ := strings.CutPrefix(strings.TrimSpace(d.b.String()), m.name+": ")
	if strings.Contains(text, "\n") {
		return ""
	}
	return text
}
