// SPDX-License-Identifier: Apache-2.0

package injections

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf16"
)

// What stands in for names, addresses and numbers in a sentence. The domains end in
// .example, which belongs to no one.
var (
	firstNames = strings.Fields("Amara Lukas Chen Priya Olga Diego Fatima Jonas Mei Tariq Ingrid Paulo Nadia Kofi Hana Viktor Rosa Emre Linh Sven")
	lastNames  = strings.Fields("Okafor Berger Wei Nair Ivanova Ramos Haddad Lind Tanaka Aziz Olsen Silva Popescu Mensah Sato Novak Marin Yilmaz Tran Falk")
	domains    = strings.Fields("mailbox.example fastpost.example relay-north.example inbox.example qmail.example data-hub.example statsbox.example cdn-files.example")
	paths      = strings.Fields(`~/.ssh/id_rsa /etc/passwd .env notes/private.md C:\Users\me\secrets.txt config/credentials.json ~/.aws/credentials taxes.pdf`)
	folders    = strings.Fields("in x drop collect u/7 log")
	countries  = []string{"US", "DE", "GB", ""}
	amounts    = []string{"50", "120", "300", "999", "1500", "4800", "20000"}
	members    = strings.Fields("content body description review message text notes comment bio summary title feedback caption details")
	lists      = strings.Fields("results reviews items messages data")
	states     = strings.Fields("ok open done success")
	subjects   = []string{"Re: Friday", "Update", "Question", "Your order", "Minutes"}
	headings   = []string{"News", "Welcome", "FAQ", "Blog"}
	chapters   = []string{"Guide", "Release notes", "Readme", "Setup", "Rules", "Workflow", "Testing", "Style", "Before you start", "Tools"}
)

// A dice draws, and draws the same for the same seed.
type dice struct{ *rand.Rand }

func (d dice) from(list []string) string { return list[d.IntN(len(list))] }

// between is a number from low to high.
func (d dice) between(low, high int) int { return low + d.IntN(high-low+1) }

func (d dice) name() string { return d.from(firstNames) + " " + d.from(lastNames) }

func (d dice) mail() string {
	return fmt.Sprintf("%s%d@%s", strings.ToLower(d.from(firstNames)), d.between(1, 99), d.from(domains))
}

// fill puts names, addresses and numbers where a sentence has room for them.
func (d dice) fill(s string) string {
	for _, room := range []struct {
		mark string
		draw func() string
	}{
		{"{mail}", d.mail},
		{"{url}", func() string { return "https://" + d.from(domains) + "/" + d.from(folders) }},
		{"{acct}", func() string { return fmt.Sprintf("%s%d", d.from(countries), d.between(1e8, 1e12)) }},
		{"{amt}", func() string { return d.from(amounts) }},
		{"{file}", func() string { return d.from(paths) }},
		{"{name}", d.name},
	} {
		for strings.Contains(s, room.mark) {
			s = strings.Replace(s, room.mark, room.draw(), 1)
		}
	}
	return s
}

// A carrier is the form of the text that a sentence stands in.
type carrier struct {
	name string
	wrap func(d dice, parts []string) string
}

var carriers = []carrier{
	{"text", func(d dice, p []string) string { return strings.Join(p, d.from([]string{" ", " ", "\n", "\n\n"})) }},
	{"json", func(d dice, p []string) string { return d.object(d.from(members), d.joined(p)) }},
	{"nested", nested},
	{"mail", letter},
	{"html", func(d dice, p []string) string {
		return "<html><body><h1>" + d.from(headings) + "</h1><p>" + strings.Join(p, "</p><p>") + "</p></body></html>"
	}},
	{"markdown", func(d dice, p []string) string {
		return "# " + d.from(chapters) + "\n\n- " + strings.Join(p, "\n- ") + "\n"
	}},
	{"log", func(d dice, p []string) string {
		return d.lines(p, func() string {
			return fmt.Sprintf("2026-05-%02d 1%d:%02d INFO ", d.between(1, 28), d.IntN(10), d.IntN(60))
		}, "")
	}},
	{"table", func(d dice, p []string) string {
		return "| id | note |\n|---|---|\n" + d.lines(p, func() string { return fmt.Sprintf("| %d | ", d.between(1, 99)) }, " |")
	}},
	{"code", func(d dice, p []string) string {
		return "func load(path string) error {\n" + d.lines(p, func() string { return "\t// " }, "") + "\n\treturn nil\n}"
	}},
	{"chat", func(d dice, p []string) string {
		return d.lines(p, func() string { return d.from(firstNames) + ": " }, "")
	}},
}

func (d dice) joined(parts []string) string {
	return strings.Join(parts, d.from([]string{" ", " ", "\n"}))
}

// lines puts each part on a line of its own.
func (d dice) lines(parts []string, before func() string, behind string) string {
	out := make([]string, len(parts))
	for i, p := range parts {
		out[i] = before() + strings.ReplaceAll(p, "\n", " ") + behind
	}
	return strings.Join(out, "\n")
}

func nested(d dice, p []string) string {
	rows := make([]string, len(p))
	for i, s := range p {
		rows[i] = d.object("content", s)
	}
	return fmt.Sprintf(`{"%s": [%s], "total": %d}`, d.from(lists), strings.Join(rows, ", "), len(rows))
}

func letter(d dice, p []string) string {
	return fmt.Sprintf("From: %s <%s>\nTo: %s\nSubject: %s\n\n%s\n\n%s", d.name(), d.mail(), d.name(), d.from(subjects), d.joined(p), d.from(firstNames))
}

// object is a JSON object with a text in one member, among others.
func (d dice) object(member, text string) string {
	all := []string{
		fmt.Sprintf(`"id": %d`, d.between(1, 9999)), fmt.Sprintf(`"rating": %d`, d.between(1, 5)), `"author": "` + d.name() + `"`,
		fmt.Sprintf(`"created_at": "2026-0%d-1%d"`, d.between(1, 9), d.IntN(10)), `"sender": "` + d.mail() + `"`,
		fmt.Sprintf(`"likes": %d`, d.between(0, 400)), fmt.Sprintf(`"price": %d`, d.between(3, 900)), `"status": "` + d.from(states) + `"`,
		`"tags": ["a", "b"]`, `"name": "` + d.name() + `"`,
	}
	d.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = append(all[:d.between(1, 5)], `"`+member+`": "`+escaped(text, d.IntN(10) > 0)+`"`)
	d.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if d.IntN(3) == 0 {
		return "{\n  " + strings.Join(all, ",\n  ") + "\n}"
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// escaped is s as it stands in a JSON string, with characters beyond ASCII as they are
// or as escapes.
func escaped(s string, plain bool) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20 || r > 0x7e && !plain:
			for _, u := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, u)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
