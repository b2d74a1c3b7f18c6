// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bytes"
	"maps"
	"slices"
)

// A Difference says what a change of rules means for what is under way. Names are
// sorted.
type Difference struct {
	Ended []string // servers that are gone, or now another command, URL or environment: their sessions end
	Added []string // servers that are new

	// Ruled are the servers that stay but of which something else is different:
	// sessions go on, and clients may have to list again.
	Ruled []string

	// Sections are the top-level members that are different and are of no server:
	// what they say may need a new listener, or a new start.
	Sections []string

	Restart []string // the members of these that are read when the gateway starts, as limits.memory
}

// Equal reports whether a and b mean the same, the secrets that they refer to included.
func Equal(a, b *Rules) bool { return a.print == b.print }

// Diff says how new differs from old.
func Diff(old, new *Rules) Difference {
	var d Difference
	for _, name := range slices.Sorted(maps.Keys(old.byName)) {
		was, is := old.byName[name], new.byName[name]
		switch {
		case is == nil || !same(was.ending(), is.ending()):
			d.Ended = append(d.Ended, name)
		case !same(was.members(old), is.members(new)) || !slices.Equal(old.exceptions(name), new.exceptions(name)):
			d.Ruled = append(d.Ruled, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(new.byName)) {
		if old.byName[name] == nil {
			d.Added = append(d.Added, name)
		}
	}
	was, is := old.members(), new.members()
	for i := range was {
		if was[i].trait&ofServers == 0 && !same(was[i:i+1], is[i:i+1]) {
			d.Sections = append(d.Sections, was[i].name)
		}
	}
	d.Restart = changed("", was, is, restart)
	return d
}

// same reports whether two tables say the same, secrets included.
func same(a, b []member) bool { return bytes.Equal(dump(a, true), dump(b, true)) }

// changed are the paths of the members that differ and have a trait; 0: of all that differ.
func changed(under string, was, is []member, of trait) (paths []string) {
	for i, m := range was {
		if same(was[i:i+1], is[i:i+1]) {
			continue
		}
		path, has := under+m.name, of == 0 || m.trait&of != 0
		var inside []string
		if m.value.form == objectForm {
			if x, y := m.value.inner(), is[i].value.inner(); len(x) > 0 && len(y) > 0 {
				within := of
				if has {
					within = 0
				}
				inside = changed(path+".", x, y, within)
			}
		}
		if has && len(inside) == 0 {
			inside = []string{path}
		}
		paths = append(paths, inside...)
	}
	return paths
}

// exceptions are those of one server.
func (r *Rules) exceptions(server string) (out []exception) {
	for _, e := range r.Exceptions {
		if e.server == server {
			out = append(out, e)
		}
	}
	return out
}
