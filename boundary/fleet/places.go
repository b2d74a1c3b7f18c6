// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"strings"
)

// places says which server a URI or task belongs to: the first in the order of the
// configuration that lists it, or the first that named it. The answer does not change
// while the session lasts, so that no server can take over a URI of another.
type places struct {
	uris      map[string]*member // listed
	mentioned map[string]*member // in results: worth less than a list or template
	templates []template
	tasks     map[string]*member
	watched   map[string]*member // legacy subscriptions
}

// template is a URI template, told apart by what stands before its first variable.
type template struct {
	m       *member
	whole   string
	literal string
}

const (
	maxPlaces    = 50_000
	maxTemplates = 1000
	maxURI       = 8 << 10 // bytes; no table holds a longer one
)

func newPlaces() places {
	return places{uris: map[string]*member{}, mentioned: map[string]*member{}, tasks: map[string]*member{}, watched: map[string]*member{}}
}

// claim notes that a member has listed uri; false if it is another's.
func (p *places) claim(m *member, uri string) bool {
	if owner := p.uris[uri]; owner != nil {
		return owner == m
	}
	if len(p.uris) < maxPlaces && len(uri) <= maxURI {
		p.uris[strings.Clone(uri)] = m
	}
	return true
}

func (p *places) claimTemplate(m *member, whole string) bool {
	if i := slices.IndexFunc(p.templates, func(t template) bool { return t.whole == whole }); i >= 0 {
		return p.templates[i].m == m
	}
	if len(p.templates) < maxTemplates && len(whole) <= maxURI {
		whole = strings.Clone(whole)
		literal, _, _ := strings.Cut(whole, "{")
		p.templates = append(p.templates, template{m, whole, literal})
	}
	return true
}

func (p *places) task(m *member, id string) {
	if id != "" && p.tasks[id] == nil && len(p.tasks) < maxPlaces && len(id) <= maxURI {
		p.tasks[strings.Clone(id)] = m
	}
}

// owner is whose uri is, by what has been listed; nil if that is not known.
func (p *places) owner(uri string) *member {
	if m := p.uris[uri]; m != nil {
		return m
	}
	best := template{}
	for _, t := range p.templates {
		if t.whole == uri {
			return t.m
		}
		if len(t.literal) > len(best.literal) && strings.HasPrefix(uri, t.literal) {
			best = t
		}
	}
	if best.m != nil {
		return best.m
	}
	return p.mentioned[uri]
}

// keep forgets what belongs to members that are no more.
func (p *places) keep(members []*member) {
	for _, table := range []map[string]*member{p.uris, p.mentioned, p.tasks, p.watched} {
		for key, m := range table {
			if !slices.Contains(members, m) {
				delete(table, key)
			}
		}
	}
	p.templates = slices.DeleteFunc(p.templates, func(t template) bool { return !slices.Contains(members, t.m) })
}
