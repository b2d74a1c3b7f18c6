// SPDX-License-Identifier: Apache-2.0

// Package injections makes texts with injected instructions, and honest texts that look
// like them, in English and twenty other languages, out of sentences that were written
// for this project. CARD.md says what they are and what they are not.
package injections

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Languages of a text are codes of ISO 639: two letters, or three where there are no two.

// A Row is one text.
type Row struct {
	ID       string
	Attack   bool
	Family   string // how an attack is dressed, or what kind of text an honest one is
	Language string
	Group    string // family and goal; what is left out together is a set of groups
	Carrier  string // the form of the text around it
	Held     bool   // on the side of the split that nothing on the other side shares a sentence with
	Test     bool   // by a test author
	Author   string // who wrote the text whole; "" where the generator made it
	Licence  string
	Text     string
	Order    string // of an attack, the words of it that are an order
}

// Seed is that of the published texts.
const Seed = 7

// How many attacks there are of one style in one language.
const (
	inEnglish = 180
	inOther   = 12
)

// The split: what is held shares no style, goal, carrier or honest family with the rest.
var (
	heldLeads    = []string{"turn"}
	heldWhole    = []string{"pretext"}
	heldGoals    = []string{"access", "destroy"}
	heldCarriers = []string{"chat", "table"}
	heldBenign   = []string{"law", "mail"}
)

// wrappers are what an order stands in that pretends to be no part of the text.
var wrappers = []string{"<!-- % -->", "```\n%\n```", "=====\n%\n=====", "\"\"\"%\"\"\"", "<IMPORTANT>%</IMPORTANT>", "[[%]]", `<div style="display:none">%</div>`,
	"**** % ****", "<span hidden>%</span>", "<instruction>%</instruction>", "--------\n%\n--------", "/* % */", "# %", `<note to="assistant">%</note>`,
	"{%%%}", "<details>%</details>", "BEGIN\n%\nEND", "[//]: # (%)"}

// quotes are honest sentences about an attack that they quote.
var quotes = []string{"The training slides show the sentence \"%\" as an example of an attack.", "Test case 12: the filter has to flag \"%\" and leave the rest.",
	"In the paper, the string '%' was found in 3 of 100 pages.", "Our FAQ explains why a message such as \"%\" is a scam and what to do about it.",
	"The log of the red team begins with \"%\", which the model refused."}

// A maker makes the rows of one side of the split.
type maker struct {
	dice
	held      bool
	languages []*language
	seen      map[string]bool
	rows      []Row
}

// Rows are all texts of a seed, the same for the same seed.
func Rows(seed uint64) ([]Row, error) {
	languages, err := read()
	if err != nil {
		return nil, err
	}
	m := &maker{dice: dice{rand.New(rand.NewPCG(seed, seed))}, languages: languages, seen: map[string]bool{}}
	for _, m.held = range []bool{false, true} {
		for _, l := range languages {
			m.language(l)
		}
	}
	m.held = false
	if err := m.written(); err != nil {
		return nil, err
	}
	for i := range m.rows {
		m.rows[i].ID = fmt.Sprintf("own-%05d", i)
	}
	return m.rows, nil
}

// language makes the attacks of one language and as many honest texts.
func (m *maker) language(l *language) {
	n := inOther
	if l.code == "en" {
		n = inEnglish
	}
	before := len(m.rows)
	for _, s := range m.styles() {
		m.some(n, func() Row { return m.attack(l, s) })
	}
	attacks := len(m.rows) - before
	for _, family := range m.side(benign, heldBenign) {
		for _, s := range l.parts[family] {
			m.add(Row{Family: family, Language: l.code, Group: family, Carrier: "none", Text: m.fill(s)})
		}
	}
	m.some(attacks/12, func() Row {
		return Row{Family: "quoted", Language: l.code, Group: "quoted", Carrier: "none", Text: strings.Replace(m.from(quotes), "%", m.fill(m.from(l.parts[m.from(m.side(leads, heldLeads))])), 1)}
	})
	if !m.held {
		m.some(n/3, func() Row { return m.manual(l) })
	}
	m.some(attacks-(len(m.rows)-before-attacks), func() Row { return m.honest(l) })
}

// some adds n rows, or fewer where the sentences do not give that many.
func (m *maker) some(n int, row func() Row) {
	for tries := 20 * n; n > 0 && tries > 0; tries-- {
		if m.add(row()) {
			n--
		}
	}
}

func (m *maker) add(r Row) bool {
	if m.seen[r.Text] {
		return false
	}
	m.seen[r.Text] = true
	r.Held = m.held
	if r.Licence == "" {
		r.Licence = Licence
	}
	m.rows = append(m.rows, r)
	return true
}

// side is what of all belongs to this side of the split.
func (m *maker) side(all, held []string) []string {
	if m.held {
		return held
	}
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(held, s) })
}

// A style is how an attack is dressed; order makes its words, and says what it wants.
type style struct {
	name  string
	order func(m *maker, l *language) (text, goal string)
}

// styles are those of this side of the split.
func (m *maker) styles() (out []style) {
	for _, lead := range m.side(leads, heldLeads) {
		out = append(out, style{lead, func(m *maker, l *language) (string, string) { return m.led(l, lead) }})
	}
	for _, part := range m.side(whole, heldWhole) {
		out = append(out, style{part, func(m *maker, l *language) (string, string) { return m.fill(m.from(l.parts[part])), part }})
	}
	if m.held {
		return append(out, style{"wrapped", wrapped})
	}
	return append(out, style{"bare", bare}, style{"bare", bare}, style{"wrapped", wrapped}, style{"mixed", mixed})
}

// goal is an order without a lead.
func (m *maker) goal(l *language) (text, goal string) {
	goal = m.from(m.side(goals, heldGoals))
	return m.fill(m.from(l.parts[goal])), goal
}

// led is an order behind its lead.
func (m *maker) led(l *language, lead string) (text, goal string) {
	if !m.held && m.IntN(4) == 0 {
		text, goal = m.fill(m.from(l.parts["answer"])), "answer"
	} else {
		text, goal = m.goal(l)
	}
	return m.loud(m.fill(m.from(l.parts[lead]))) + m.from([]string{" ", " ", "\n"}) + text, goal
}

// loud is s, now and then with emphasis.
func (m *maker) loud(s string) string {
	switch x := m.IntN(100); {
	case x < 6:
		return strings.ToUpper(s)
	case x < 10:
		return s + "!!!"
	case x < 18:
		return "IMPORTANT: " + s
	case x < 21:
		return "**" + s + "**"
	}
	return s
}

func bare(m *maker, l *language) (text, goal string) {
	text, goal = m.goal(l)
	if m.IntN(2) == 0 {
		more, _ := m.goal(l)
		text += " " + more
	}
	return text, goal
}

func wrapped(m *maker, l *language) (text, goal string) {
	if m.IntN(3) == 0 {
		text, goal = m.goal(l)
	} else {
		text, goal = m.led(l, m.from(m.side(leads, heldLeads)))
	}
	return strings.Replace(m.from(wrappers), "%", text, 1), goal
}

// mixed is an order in another language than the text around it, half of them in English.
func mixed(m *maker, l *language) (text, goal string) {
	other := m.languages[m.IntN(len(m.languages))]
	if i := slices.IndexFunc(m.languages, func(l *language) bool { return l.code == "en" }); m.IntN(2) == 0 && l.code != "en" {
		other = m.languages[i]
	}
	return m.led(other, m.from(m.side(leads, heldLeads)))
}

// attack is an order among honest sentences.
func (m *maker) attack(l *language, s style) Row {
	order, goal := s.order(m, l)
	r := Row{Attack: true, Family: s.name, Language: l.code, Group: s.name + "/" + goal, Carrier: "none", Text: order, Order: order}
	if m.IntN(5) == 0 {
		return r
	}
	parts := m.context(l, []int{0, 1, 1, 2, 3, 5}[m.IntN(6)])
	at := []int{0, len(parts), m.IntN(len(parts) + 1)}[m.IntN(3)]
	return m.carried(r, slices.Insert(parts, at, order))
}

// honest is honest sentences together.
func (m *maker) honest(l *language) Row {
	r := Row{Family: "carried", Language: l.code, Group: "carried"}
	return m.carried(r, m.context(l, []int{1, 1, 2, 3, 5, 6}[m.IntN(6)]))
}

// manual is a long file that tells a person or an agent how to work: orders in every line, and none
// of them is an attack.
func (m *maker) manual(l *language) Row {
	var b strings.Builder
	b.WriteString("# " + m.from(chapters) + "\n")
	for range m.between(2, 5) {
		b.WriteString("\n## " + m.from(chapters) + "\n\n")
		bullet := m.from([]string{"- ", "* ", "", "1. "})
		for range m.between(3, 9) {
			b.WriteString(bullet + m.fill(m.from(l.parts[m.from([]string{"agents", "agents", "agents", "api", "docs", "howto"})])) + "\n")
		}
	}
	return Row{Family: "manual", Language: l.code, Group: "manual", Carrier: "none", Text: b.String()}
}

func (m *maker) context(l *language, n int) (parts []string) {
	for range n {
		if s := m.fill(m.from(l.parts[m.from(m.side(benign, heldBenign))])); !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
	}
	return parts
}

func (m *maker) carried(r Row, parts []string) Row {
	var names []string
	for _, c := range carriers {
		names = append(names, c.name)
	}
	r.Carrier = m.from(m.side(names, heldCarriers))
	c := carriers[slices.Index(names, r.Carrier)]
	r.Text = c.wrap(m.dice, parts)
	return r
}
