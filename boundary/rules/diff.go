// SPDX-License-Identifier: Apache-2.0

package rules

import (
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
}

// Equal reports whether a and b mean the same, the secrets that they refer to included.
func Equal(a, b *Rules) bool { return string(a.text) == string(b.text) && a.print == b.print }

// Diff says how new differs from old.
func Diff(old, new *Rules) Difference {
	var d Difference
	for _, name := range slices.Sorted(maps.Keys(old.byName)) {
		was, is := old.byName[name], new.byName[name]
		switch {
		case is == nil || !slices.Equal(was.upstream(), is.upstream()):
			d.Ended = append(d.Ended, name)
		case !same(func(d *dumper) { d.server(was) }, func(d *dumper) { d.server(is) }) || !slices.Equal(old.exceptions(name), new.exceptions(name)):
			d.Ruled = append(d.Ruled, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(new.byName)) {
		if old.byName[name] == nil {
			d.Added = append(d.Added, name)
		}
	}
	for _, s := range sections {
		if !s.same(old, new) {
			d.Sections = append(d.Sections, s.name)
		}
	}
	return d
}

// same compares what two dumps say.
func same(a, b func(*dumper)) bool {
	var x, y dumper
	a(&x)
	b(&y)
	return x.b.String() == y.b.String()
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

var sections = []struct {
	name string
	same func(a, b *Rules) bool
}{
	{"listen", func(a, b *Rules) bool { return a.Listen == b.Listen }},
	{"store", func(a, b *Rules) bool { return a.Store == b.Store }},
	{"public_url", func(a, b *Rules) bool { return a.PublicURL == b.PublicURL }},
	{"http", func(a, b *Rules) bool {
		return same(func(d *dumper) { d.http(&a.HTTP) }, func(d *dumper) { d.http(&b.HTTP) })
	}},
	{"auth", func(a, b *Rules) bool {
		return a.Auth.print == b.Auth.print && same(func(d *dumper) { d.auth(&a.Auth) }, func(d *dumper) { d.auth(&b.Auth) })
	}},
	{"limits", func(a, b *Rules) bool { return a.Limits == b.Limits }},
	{"tokens", func(a, b *Rules) bool { return a.tokens == b.tokens && a.tokensPrint == b.tokensPrint }},
	{"telemetry", func(a, b *Rules) bool { return a.Telemetry == b.Telemetry }},
	{"review", sameReview},
	{"classifiers", sameClassifiers},
	{"evidence", sameEvidence},
	{"quarantine", sameQuarantine},
	{"policy", samePolicy},
	{"trust", sameTrust},
	{"guard", sameGuard},
	{"ground", sameGround},
	{"admission", func(a, b *Rules) bool { return a.admission == b.admission }},
}
