// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"bytes"
	"slices"
	"strings"
)

// unwrapRemote gives the entry of a remote server its URL and headers back, where a person has
// edited something else of it, or the value of a header. Its command and arguments must be those
// that were written. ok is false if the result would not be the server that the entry names.
func (u *undoing) unwrapRemote() (edits []splice, ok bool) {
	d := u.dialect
	program, args := d.starts(u.v)
	before, was := u.original()
	address := d.url(was)
	if !address.known() || !program.known() || !args.known() || !u.v.known() || !u.asWritten() {
		return nil, false
	}
	r := &reversal{undoing: u, before: before, was: was, env: u.v.get(d.env), variables: map[string]string{}}
	words, _ := d.words(u.v)
	for i := 0; i+1 < len(words); i++ {
		if name, variable, found := strings.Cut(words[i+1], "=env:"); words[i] == "--header" && found {
			r.variables[variable] = name
		}
	}
	r.url = address.str()
	value := string(before.raw(address))
	if v := r.env.get(urlVariable); v.is('"') { // with the URL that it has now
		r.url, r.variables[urlVariable] = v.str(), ""
		value = quote(v.str())
	}
	command := u.v.holding(program)
	if d.whole {
		command = u.v.holding(args)
	}
	r.edits = append(r.edits, splice{command.key.start, command.value.end, []byte(u.t.pair(was.holding(address).name, value))})
	ok = (d.whole || r.cut(u.v, u.v.holding(args))) && r.headers() && r.inherited()
	if kind := (&entry{v: u.v}).kind(); kind.known() {
		old := (&entry{v: was}).kind()
		if !old.known() {
			return nil, false
		}
		r.edits = append(r.edits, splice{kind.start, kind.end, before.raw(old)})
	}
	return r.edits, ok && r.proved()
}

// asWritten reports whether the entry has the command and arguments that were written.
func (u *undoing) asWritten() bool {
	value := u.Is
	if u.t.syntax == JSON {
		value = u.After
	}
	after, err := parse(value, JSON, true)
	if err != nil {
		return false
	}
	d := u.dialect
	now, okNow := d.words(u.v)
	then, okThen := d.words(after.root)
	program, _ := d.starts(u.v)
	old, _ := d.starts(after.root)
	return okNow && okThen && slices.Equal(now, then) && program.str() == old.str() && len(now) > 0 && now[0] == "wrap"
}

// A reversal is an entry with a URL, while it is restored.
type reversal struct {
	*undoing
	before    *text // what the entry was
	was       *node
	env       *node             // as it is now
	variables map[string]string // that were written, and the headers that they stand for
	url       string
	edits     []splice
}

// headers takes the variables out of env again, or makes it the object of headers that it was.
func (r *reversal) headers() bool {
	d := r.dialect
	old, _ := d.headersOf(r.was)
	renamed := old.exists() && !r.was.get(d.env).exists() && d.nested == ""
	switch {
	case !r.env.exists():
		return !renamed
	case !r.env.is('{'):
		return false
	case renamed:
		m := r.v.holding(r.env)
		if m.spread {
			return false
		}
		r.edits = append(r.edits, splice{m.key.start, m.key.end, r.before.raw(r.was.holding(old).key)})
	}
	ours := 0
	for _, m := range r.env.all() {
		if _, is := r.variables[m.name]; is {
			ours++
		}
	}
	if !renamed && !r.was.get(d.env).exists() && ours == len(r.env.all()) && ours > 0 { // it was made for them
		return r.cut(r.v, r.v.holding(r.env))
	}
	for i := range r.env.all() {
		m := &r.env.all()[i]
		header, is := r.variables[m.name]
		switch {
		case !is && renamed: // it would become a header
			return false
		case !is:
		case renamed && header != "":
			name := quote(header)
			if key := old.member(header); key != nil {
				name = string(r.before.raw(key.key))
			}
			r.edits = append(r.edits, splice{m.key.start, m.key.end, []byte(name)})
		default:
			if !r.cut(r.env, m) {
				return false
			}
		}
	}
	return true
}

// inherited puts the member back by which the client took headers from its environment.
func (r *reversal) inherited() bool {
	for _, name := range []string{r.dialect.bearer, r.dialect.fromEnv} {
		old, now := r.was.member(name), r.v.member(r.dialect.inherit)
		switch {
		case name == "" || old == nil:
		case now == nil || !old.value.known() || !now.value.known():
			return false
		default:
			with := r.t.pair(name, string(r.before.raw(old.value)))
			r.edits = append(r.edits, splice{now.key.start, now.value.end, []byte(with)})
		}
	}
	return true
}

// cut takes a member out of obj, with what separates it from the one before or behind it. It
// fails where a comment stands between.
func (r *reversal) cut(obj *node, m *member) bool {
	all := obj.all()
	i := slices.IndexFunc(all, func(x member) bool { return x.value == m.value })
	blank := func(from, to int) bool {
		return from <= to && len(bytes.Trim(r.t.src[from:to], ", \t\r\n")) == 0
	}
	switch {
	case !m.value.known():
		return false
	case i > 0 && all[i-1].value.known() && blank(all[i-1].value.end, m.from):
		r.edits = append(r.edits, splice{all[i-1].value.end, m.value.end, nil})
	case i+1 < len(all) && blank(m.value.end, all[i+1].from):
		r.edits = append(r.edits, splice{m.from, all[i+1].from, nil})
	default:
		return false
	}
	return true
}

// proved reports whether the edits make an entry of the URL, with the headers that it had, and
// change nothing else.
func (r *reversal) proved() bool {
	if !apart(r.edits) {
		return false
	}
	after, err := parse(splices(r.t.src, r.edits), r.t.syntax, true)
	if err != nil {
		return false
	}
	d := r.dialect
	is := after.find(r.At, r.Name)
	program, _ := d.starts(is)
	if is == nil || program.exists() || d.args != "" && is.get(d.args).exists() || d.url(is).str() != r.url {
		return false
	}
	headers, _ := d.headersOf(is)
	old, _ := d.headersOf(r.was)
	names := func(n *node) (out []string) {
		for _, m := range n.all() {
			out = append(out, m.name)
		}
		slices.Sort(out)
		return out
	}
	if !slices.Equal(names(headers), names(old)) || !same(is.get(d.bearer), r.was.get(d.bearer)) || !same(is.get(d.fromEnv), r.was.get(d.fromEnv)) {
		return false
	}
	for variable := range r.variables {
		if is.get(d.env).get(variable).exists() {
			return false
		}
	}
	return r.t.syntax == JSON || r.t.root.sameBut(after.root, map[*node]*node{r.v: is})
}

// apart reports whether no two edits overlap.
func apart(edits []splice) bool {
	sorted := slices.SortedFunc(slices.Values(edits), func(a, b splice) int { return a.start - b.start })
	for i := 1; i < len(sorted); i++ {
		if sorted[i].start < sorted[i-1].end {
			return false
		}
	}
	return true
}
