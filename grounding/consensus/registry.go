// SPDX-License-Identifier: Apache-2.0

package consensus

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A Domain is the identifier of a registered consensus domain, such as
// scientific-default. It is ASCII and safe in a label; Registry.Resolve makes it.
type Domain string

// A Registration is what a registry says of one domain.
type Registration struct {
	ID      Domain
	aliases []string // such as cpml:ScientificConsensus/CochraneGRADE
}

const (
	maxName     = 128 // bytes of an identifier or an alias
	maxDomains  = 4096
	maxAliases  = 16
	aliasPrefix = "cpml:"
)

// A Registry is the closed set of consensus domains. It does not change once it
// is made. A nil Registry is the built-in one.
type Registry struct {
	version string
	entries []Registration // sorted by ID
	names   map[string]Domain
	looks   map[string]Domain // appearance of a name → what it is a name of
}

//go:embed registry_0.1.json
var builtinSource []byte

var builtin = sync.OnceValue(func() *Registry {
	r, err := parseRegistry(builtinSource, nil)
	if err != nil {
		panic(err) // a mistake in the program: every test fails with it
	}
	return r
})

// ParseRegistry reads a registry document, strictly. The error is problems, or
// wraps a *strictjson.SyntaxError.
func ParseRegistry(src []byte) (*Registry, error) {
	return parseRegistry(src, builtin().entries)
}

// parseRegistry reads a registry that may extend base.
func parseRegistry(src []byte, base []Registration) (*Registry, error) {
	var doc strictjson.Doc
	if err := doc.Reset(src, strictjson.Limits{Bytes: 4 << 20, Depth: 8, Values: 1 << 17}); err != nil {
		return nil, fmt.Errorf("consensus: registry: %w", err)
	}
	var d reader
	r := &Registry{names: map[string]Domain{}, looks: map[string]Domain{}}
	d.object(place{v: doc.Root()}, members{
		"version": func(p place) { r.version = d.version(p) },
		"extends": func(p place) {
			if d.constant(p, "builtin") != "" {
				for _, e := range base {
					r.add(&d, e, p, func(int) place { return p })
				}
			}
		},
		"domains": func(p place) {
			d.array(p, maxDomains, func(p place) { r.read(&d, p) })
		},
	}, "version", "domains")
	if err := r.finish(&d); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Registry) read(d *reader, p place) {
	var e Registration
	var id place
	var aliases []place
	// name reads a name; one that is no string is reported once, here.
	name := func(p place) (string, bool) {
		before := len(d.problems)
		s := d.text(p, maxName)
		return s, len(d.problems) == before
	}
	d.object(p, members{
		"id": func(p place) {
			if s, ok := name(p); ok {
				e.ID, id = Domain(s), p
			}
		},
		"aliases": func(p place) {
			d.array(p, maxAliases, func(p place) {
				if s, ok := name(p); ok {
					e.aliases, aliases = append(e.aliases, s), append(aliases, p)
				}
			})
		},
	}, "id")
	if id.v.Exists() {
		r.add(d, e, id, func(k int) place { return aliases[k] })
	}
}

// add checks e and adds it; id and alias are where its names stand.
func (r *Registry) add(d *reader, e Registration, id place, alias func(k int) place) {
	if !domainSyntax(string(e.ID)) {
		d.report(domainMalformed, id)
		return
	}
	r.name(d, string(e.ID), e.ID, id)
	if len(e.aliases) > maxAliases {
		d.report(tooMany, id)
		return
	}
	for k, a := range e.aliases {
		if !aliasSyntax(a) {
			d.report(domainMalformed, alias(k))
			continue
		}
		r.name(d, a, e.ID, alias(k))
	}
	e.aliases = slices.Clone(e.aliases)
	r.entries = append(r.entries, e)
}

func (r *Registry) name(d *reader, name string, of Domain, p place) {
	look := appearance(name)
	switch _, known := r.names[name]; {
	case known:
		d.report(duplicate, p)
		return
	case r.looks[look] != "":
		d.report(domainLookalike, p)
		return
	}
	r.names[name], r.looks[look] = of, of
}

func (r *Registry) finish(d *reader) error {
	if len(r.entries) > maxDomains {
		d.report(tooMany, place{ptr: "/domains"})
	}
	if len(r.entries) == 0 && len(d.problems) == 0 {
		d.report(empty, place{ptr: "/domains"})
	}
	slices.SortFunc(r.entries, func(a, b Registration) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return d.err()
}

func (r *Registry) orBuiltin() *Registry {
	if r == nil {
		return builtin()
	}
	return r
}

// Version is the version that the registry's author gave it.
func (r *Registry) Version() string { return r.orBuiltin().version }

// Domains lists the domains, sorted.
func (r *Registry) Domains() []Registration {
	out := slices.Clone(r.orBuiltin().entries)
	for i := range out {
		out[i].aliases = slices.Clone(out[i].aliases)
	}
	return out
}

// Resolve returns the domain that name is the identifier or an alias of. Names
// match byte for byte: no case is folded, nothing is normalised or trimmed.
// The error is a code: domainMalformed, domainUnregistered, or domainLookalike
// where a reader may take name for a registered one.
func (r *Registry) Resolve(name string) (Domain, error) {
	r = r.orBuiltin()
	if d, ok := r.names[name]; ok {
		return d, nil
	}
	if len(name) <= maxName && r.resembles(name) {
		return "", domainLookalike
	}
	if domainSyntax(name) || aliasSyntax(name) {
		return "", domainUnregistered
	}
	return "", domainMalformed
}

func (r *Registry) resembles(name string) bool {
	// Both cases of a letter may look like another one: I like l, i like i.
	return r.looks[appearance(name)] != "" || r.looks[appearance(asciiLower(name))] != ""
}

// appearance maps names that a person takes for one another to one string: no
// compatibility forms, hidden characters, look-alikes and case.
func appearance(name string) string {
	var seen []rune
	for _, r := range string(ucd.Append(nil, ucd.NFKC, name)) {
		if ucd.ClassOf(r) == ucd.NotHidden {
			seen = append(seen, r)
		}
	}
	return asciiLower(string(ucd.AppendSkeleton(nil, string(seen))))
}

func asciiLower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

// domainSyntax: words of a–z and 0–9, parted by single hyphens, the first
// beginning with a letter.
func domainSyntax(s string) bool {
	if s == "" || len(s) > maxName || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for word := range strings.SplitSeq(s, "-") {
		if word == "" || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return false
		}
	}
	return true
}

// aliasSyntax: "cpml:" and CamelCase names parted by slashes.
func aliasSyntax(s string) bool {
	path, ok := strings.CutPrefix(s, aliasPrefix)
	if !ok || len(s) > maxName {
		return false
	}
	for name := range strings.SplitSeq(path, "/") {
		if !word(name, "") || name[0] < 'A' || name[0] > 'Z' {
			return false
		}
	}
	return true
}
