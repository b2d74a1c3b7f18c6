// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"bytes"
	"slices"
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
	if after, servers, ok := r.untouched(t); ok {
		return after, servers, nil
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

// reflagged takes out of a record the entries whose arguments of wrap were edited since: what an
// operator has written there, such as a stricter policy, is not to be lost by another run.
func (r *record) reflagged(src []byte) (same *record, edited []Server, err error) {
	t, err := parse(src, r.Syntax, true)
	if err != nil {
		return nil, nil, err
	}
	with := *r
	with.Entries = nil
	for _, e := range r.Entries {
		u := undoing{t: t, v: t.find(e.At, e.Name), saved: e, dialect: dialectOf(r.Syntax, e.At)}
		if now := u.dialect.wrapFlags(u.v, u.program()); now != nil && !slices.Equal(now, u.dialect.wrapFlags(u.written(), u.program())) {
			edited = append(edited, Server{At: e.At, Name: e.Name, Action: Edited})
			continue
		}
		with.Entries = append(with.Entries, e)
	}
	return &with, edited, nil
}

// untouched restores a file in TOML or YAML of which no entry was edited, with one proof for all
// entries. ok is false if an entry was edited, or is gone.
func (r *record) untouched(t *text) (after []byte, servers []Server, ok bool) {
	if r.Syntax == JSON {
		return nil, nil, false
	}
	var edits []splice
	var nodes []*node
	for _, e := range r.Entries {
		v := t.find(e.At, e.Name)
		if !v.known() || !bytes.Equal(t.raw(v), e.After) {
			return nil, nil, false
		}
		edits, nodes = append(edits, splice{v.start, v.end, e.Before}), append(nodes, v)
		servers = append(servers, Server{At: e.At, Name: e.Name, Action: Restored, Disabled: v.disabled(), before: e.After, after: e.Before})
	}
	after = splices(t.src, edits)
	u, err := parse(after, r.Syntax, true)
	if err != nil {
		return nil, nil, false
	}
	changed := map[*node]*node{}
	for i, e := range r.Entries {
		is := u.find(e.At, e.Name)
		if is == nil || !sameValue(is.value(), e.Was) {
			return nil, nil, false
		}
		changed[nodes[i]] = is
	}
	return after, servers, t.root.sameBut(u.root, changed)
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
	if edits, ok = u.unwrap(); ok {
		return edits, true
	}
	return u.unwrapRemote()
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
	if u.t.syntax != YAML {
		return u.Before
	}
	return moved(u.Before, strings.TrimLeft(u.t.newLine(u.v.start), "\r\n"))
}

// moved indents the lines of a block of YAML behind the first, so that its names have the margin.
func moved(block []byte, margin string) []byte {
	lines := bytes.SplitAfter(block, []byte("\n"))
	least := -1
	for _, l := range lines[1:] {
		body := bytes.TrimLeft(l, " ")
		if width := len(l) - len(body); len(bytes.TrimSpace(body)) > 0 && (least < 0 || width < least) {
			least = width
		}
	}
	out := bytes.Clone(lines[0])
	for _, l := range lines[1:] {
		if len(bytes.TrimSpace(l)) > 0 {
			l = append([]byte(margin), l[max(least, 0):]...)
		}
		out = append(out, l...)
	}
	return out
}

// original is what the entry was, with places in a text of its own; nil if it cannot be read.
func (u *undoing) original() (t *text, v *node) {
	src, at, name := u.Before, []string(nil), ""
	switch {
	case u.t.syntax == YAML:
		src = moved(src, "")
	case u.t.syntax == TOML && bytes.HasPrefix(src, []byte("{")):
		src, name = append([]byte("x = "), src...), "x"
	case u.t.syntax == TOML:
		at, name = u.At, u.Name
	}
	t, err := parse(src, u.t.syntax, true)
	if err != nil {
		return nil, nil
	}
	if v = t.root; name != "" {
		v = t.find(at, name)
	}
	return t, v
}

// unwrap gives an entry that still starts a command behind Pellucid the command that stands
// behind "--" in its arguments, with the arguments as they are now. Everything else of the
// entry, which may have been edited, stays.
func (u *undoing) unwrap() (edits []splice, ok bool) {
	d := u.dialect
	program, args := d.starts(u.v)
	words := d.wrapWords(u.v, u.program())
	if words == nil || !args.known() || !program.known() {
		return nil, false
	}
	all := args.list()
	all = all[len(all)-len(words):]
	behind := 0
	for behind < len(all) && all[behind].str() != "--" {
		behind++
	}
	if behind+1 >= len(all) {
		return nil, false
	}
	rest := all[behind+1:]
	before, was := u.original()
	old, oldArgs := u.dialect.starts(was)
	if !d.whole {
		with := u.t.raw(rest[0])
		if old.known() && old.str() == rest[0].str() {
			with = before.raw(old)
		}
		edits = append(edits, splice{program.start, program.end, with})
		rest = rest[1:]
	}
	var with []string
	for _, a := range rest {
		if !a.known() {
			return nil, false
		}
		word := string(u.t.raw(a))
		if u.t.syntax == YAML { // a plain scalar may not mean the same between brackets
			word = quote(a.str())
		}
		with = append(with, word)
	}
	list := splice{args.start, args.end, []byte("[" + strings.Join(with, ", ") + "]")}
	same := slices.EqualFunc(oldArgs.list(), rest, func(a, b *node) bool { return a.str() == b.str() })
	switch {
	case same && oldArgs.known() && (oldArgs.flow || u.t.syntax == JSON):
		list.with = before.raw(oldArgs)
	case same && !oldArgs.exists() && u.t.syntax == JSON:
		if gone, ok := without(u.t, u.v, args); ok {
			list = gone
		}
	}
	edits = append(edits, list)
	return edits, u.t.syntax == JSON || u.unwrapped(edits, all[behind+1:])
}

// program is what the entry was made to start.
func (u *undoing) program() string {
	p, _ := u.dialect.starts(u.written())
	return p.str()
}

// written is what the entry was made; nil if it cannot be read.
func (u *undoing) written() *node {
	value := u.Is
	if u.t.syntax == JSON {
		value = u.After
	}
	t, err := parse(value, JSON, true)
	if err != nil {
		return nil
	}
	return t.root
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

// without removes a member of v with the comma before it; ok is false if there is no comma.
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
