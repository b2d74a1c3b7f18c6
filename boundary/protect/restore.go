// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"bytes"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/jsonc"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// restore puts back what every entry was. One that was edited since is left as it
// is, unless force is set; one that is gone, or has been put back by hand, too.
func (r *record) restore(src []byte, force bool) ([]byte, []Server, error) {
	t, err := parse(src, r.Syntax, true)
	if err != nil {
		return nil, nil, err
	}
	var all []splice
	var servers []Server
	for _, e := range r.Entries {
		v := t.find(e.At, e.Name)
		if v == nil {
			continue
		}
		s := Server{At: e.At, Name: e.Name, Action: Restored, Disabled: v.disabled()}
		if v.known() {
			s.before = bytes.Clone(t.raw(v))
		}
		u := undoing{t: t, v: v, saved: e, dialect: dialectOf(r.Syntax, e.At)}
		edits, ok := u.edits(force)
		switch {
		case ok && r.Syntax == JSON:
			s.after = splices(s.before, shift(edits, v.start))
			all = append(all, edits...)
		case ok: // each by itself, since each is proved by itself
			if t, err = parse(splices(t.src, edits), r.Syntax, true); err != nil {
				return nil, nil, err
			}
			s.after = t.raw(t.find(e.At, e.Name))
		case u.equals(e.Before, e.Was):
			s.Action, s.Why, s.after = Already, "is as it was", s.before
		default:
			s.Action, s.Why, s.after = Edited, "its entry was edited since", s.before
		}
		servers = append(servers, s)
	}
	return splices(t.src, all), servers, nil
}

// An undoing is an entry that is to become what it was.
type undoing struct {
	saved
	t       *text
	v       *node // as it is now
	dialect *dialect
}

// edits gives the entry back what it was, or, where something else of it was edited, its
// command and arguments alone. ok is false if neither is possible without a loss.
func (u *undoing) edits(force bool) (edits []splice, ok bool) {
	if !u.v.known() || u.v.strange() {
		return nil, false
	}
	whole := []splice{{u.v.start, u.v.end, u.Before}}
	now := u.t.raw(u.v)
	switch {
	case bytes.Equal(now, u.After), u.t.syntax == JSON && u.equals(u.After, nil), force && !u.equals(u.Before, u.Was):
		if u.t.syntax == JSON || u.proves(whole, u.Was) {
			return whole, true
		}
	case u.equals(u.After, u.Is): // the client has written it anew, perhaps with other indentation
		if whole[0].with = u.indented(); u.proves(whole, u.Was) {
			return whole, true
		}
	case u.equals(u.Before, u.Was):
		return nil, false
	}
	return u.unwrap()
}

// equals reports whether the entry has a value now, given as it stood in the file, and, of a
// file in TOML or YAML, as JSON.
func (u *undoing) equals(raw, value []byte) bool {
	if u.t.syntax == JSON {
		return sameValue(u.t.raw(u.v), raw)
	}
	return sameValue(u.v.value(), value)
}

// proves reports whether the edits make the value of the entry, and change nothing else.
func (u *undoing) proves(edits []splice, value []byte) bool {
	after, err := parse(splices(u.t.src, edits), u.t.syntax, true)
	if err != nil {
		return false
	}
	is := after.find(u.At, u.Name)
	return is != nil && sameValue(is.value(), value) && u.t.root.sameBut(after.root, map[*node]*node{u.v: is})
}

// indented is what the entry was, with its lines moved to where the entry begins now. In JSON
// and TOML indentation says nothing.
func (u *undoing) indented() []byte {
	if u.t.syntax != YAML || !bytes.Contains(u.Before, []byte("\n")) {
		return u.Before
	}
	margin := []byte(strings.TrimLeft(u.t.newLine(u.v.start), "\r\n"))
	least := -1
	lines := bytes.SplitAfter(u.Before, []byte("\n"))
	for _, l := range lines[1:] {
		body := bytes.TrimLeft(l, " ")
		if width := len(l) - len(body); len(bytes.TrimSpace(body)) > 0 && (least < 0 || width < least) {
			least = width
		}
	}
	out := bytes.Clone(lines[0])
	for _, l := range lines[1:] {
		if len(bytes.TrimSpace(l)) > 0 {
			l = append(bytes.Clone(margin), l[max(least, 0):]...)
		}
		out = append(out, l...)
	}
	return out
}

// unwrap gives an entry that still starts a command behind Pellucid the command that stands
// behind "--" in its arguments, with the arguments as they are now. Everything else of the
// entry, which may have been edited, stays.
func (u *undoing) unwrap() (edits []splice, ok bool) {
	d := u.dialect
	program, args := d.starts(u.v)
	words, fine := d.words(u.v)
	if !fine || !program.is('"') || !isOurs(program.str()) && program.str() != u.program() || len(words) == 0 || words[0] != "wrap" || !args.known() || !program.known() {
		return nil, false
	}
	all := args.list()
	if d.whole {
		all = all[1:]
	}
	behind := 0
	for behind < len(all) && all[behind].str() != "--" {
		behind++
	}
	if behind+1 >= len(all) {
		return nil, false
	}
	rest := all[behind+1:]
	if !d.whole {
		edits = append(edits, splice{program.start, program.end, u.t.raw(rest[0])})
		rest = rest[1:]
	}
	old, same := u.arguments(rest)
	var with []string
	for _, a := range rest {
		if !a.known() {
			return nil, false
		}
		with = append(with, string(u.t.raw(a)))
		if u.t.syntax == YAML { // a plain scalar may not mean the same between brackets
			with[len(with)-1] = quote(a.str())
		}
	}
	list := splice{args.start, args.end, []byte("[" + strings.Join(with, ", ") + "]")}
	switch {
	case same && old != "":
		list.with = []byte(old)
	case same && len(rest) == 0 && u.t.syntax == JSON:
		if gone, ok := without(u.t, u.v, args); ok {
			list = gone
		}
	}
	edits = append(edits, list)
	return edits, u.t.syntax == JSON || u.unwrapped(edits, all[behind+1:])
}

// program is what the entry was made to start.
func (u *undoing) program() string {
	after := u.entry(u.After, u.Is)
	p, _ := u.dialect.starts(after)
	return p.str()
}

// entry is a saved entry, parsed; nil if it cannot be.
func (u *undoing) entry(raw, value []byte) *node {
	if u.t.syntax != JSON {
		raw = value
	}
	t, err := parse(raw, JSON, true)
	if err != nil {
		return nil
	}
	return t.root
}

// arguments reports whether the arguments are those that the entry had, and how they were
// spelled in JSON; "" if it had none.
func (u *undoing) arguments(now []*node) (raw string, same bool) {
	before := u.entry(u.Before, u.Was)
	_, was := u.dialect.starts(before)
	if len(was.list()) != len(now) {
		return "", false
	}
	for i, a := range was.list() {
		if a.str() != now[i].str() {
			return "", false
		}
	}
	if was.exists() && u.t.syntax == JSON {
		raw = string(u.Before[was.start:was.end])
	}
	return raw, true
}

// unwrapped reports whether the edits make the entry start words, and change nothing else.
func (u *undoing) unwrapped(edits []splice, words []*node) bool {
	after, err := parse(splices(u.t.src, edits), u.t.syntax, true)
	if err != nil {
		return false
	}
	is := after.find(u.At, u.Name)
	program, _ := u.dialect.starts(is)
	args, ok := u.dialect.words(is)
	if !ok || program.str() != words[0].str() || len(args) != len(words)-1 {
		return false
	}
	for i, a := range args {
		if a != words[i+1].str() {
			return false
		}
	}
	return u.t.root.sameBut(after.root, map[*node]*node{u.v: is})
}

// without removes a member of v with the comma before it; ok is false if there is none.
func without(t *text, v, value *node) (gone splice, ok bool) {
	m := v.holding(value)
	if m == nil {
		return splice{}, false
	}
	from := m.from - 1
	for from > v.start && strings.IndexByte(" \t\r\n", t.src[from]) >= 0 {
		from--
	}
	return splice{from, value.end, nil}, t.src[from] == ','
}

// sameValue reports whether a and b are the same value in JSON, however they are spelled:
// clients write their files anew, with white space of their own.
func sameValue(a, b []byte) bool {
	a, errA := strictjson.Canonical(nil, jsonc.Plain(a), limits)
	b, errB := strictjson.Canonical(nil, jsonc.Plain(b), limits)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}
