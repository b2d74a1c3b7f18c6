// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"maps"
	"slices"
	"strings"
)

// places says which server a URI or task belongs to: the first in the order of the
// configuration that lists it, or the first that named it. The answer does not change
// while the session lasts, so that no server can take over a URI of another. A URI that
// another server lists already is shown with a mark behind it.
type places struct {
	uris      map[string]resource // listed; this and the next two by the URI that the client sees
	mentioned map[string]resource // in results: worth less than a list or template
	templates []template
	tasks     map[string]*member
	watched   map[string]resource // legacy subscriptions
}

// resource is a server and one of its URIs, as the server spells it.
type resource struct {
	m   *member
	uri string
}

// template is a URI template, told apart by what stands before its first variable, and by its mark.
type template struct {
	resource
	literal string
	mark    string // behind it and each URI made of it
}

func (t *template) shownURI() string { return t.uri + t.mark }

// uriMark returns the mark of URIs of the member that another server lists too: a fragment, which
// keeps the scheme and does not change what a URI names.
func (m *member) uriMark() string { return "#server=" + m.prefix }

const (
	maxPlaces    = 50_000
	maxTemplates = 1000
	maxURI       = 8 << 10 // bytes; no table holds a longer one
)

func newPlaces() places {
	return places{uris: map[string]resource{}, mentioned: map[string]resource{}, tasks: map[string]*member{}, watched: map[string]resource{}}
}

// claimURI notes that a member has listed uri, and returns how the client sees it, or "" if that is another server's.
func (p *places) claimURI(m *member, uri string) string {
	for _, shown := range [...]string{uri, uri + m.uriMark()} {
		of, taken := p.uris[shown]
		if taken && of.m != m {
			continue
		}
		if !taken && len(p.uris) < maxPlaces && len(uri) <= maxURI {
			p.uris[strings.Clone(shown)] = resource{m, strings.Clone(uri)}
		}
		return shown
	}
	return ""
}

// claimTemplate is claimURI for a URI template.
func (p *places) claimTemplate(m *member, whole string) string {
	for _, mark := range [...]string{"", m.uriMark()} {
		shown := whole + mark
		i := slices.IndexFunc(p.templates, func(t template) bool { return t.shownURI() == shown })
		if i >= 0 && p.templates[i].m != m {
			continue
		}
		if i < 0 && len(p.templates) < maxTemplates && len(whole) <= maxURI {
			whole = strings.Clone(whole)
			literal, _, _ := strings.Cut(whole, "{")
			p.templates = append(p.templates, template{resource{m, whole}, literal, mark})
		}
		return shown
	}
	return ""
}

func (p *places) task(m *member, id string) {
	if id != "" && p.tasks[id] == nil && len(p.tasks) < maxPlaces && len(id) <= maxURI {
		p.tasks[strings.Clone(id)] = m
	}
}

// ownerOf returns the resource that uri stands for, by the lists or else by results. It has no member if that is not known.
func (p *places) ownerOf(uri string) resource {
	of, told := p.listerOf(uri), p.mentioned[uri]
	if of.m == nil || told.m != nil && uri == told.uri+told.m.uriMark() { // a marked link, whatever was listed under that name
		return told
	}
	return of
}

// listerOf is ownerOf by the lists alone.
func (p *places) listerOf(uri string) resource {
	if of, listed := p.uris[uri]; listed {
		return of
	}
	best, length := resource{}, 0
	for _, t := range p.templates {
		if t.shownURI() == uri {
			return t.resource
		}
		own, marked := strings.CutSuffix(uri, t.mark)
		if n := len(t.literal) + len(t.mark); marked && t.literal != "" && n > length && strings.HasPrefix(own, t.literal) {
			best, length = resource{t.m, own}, n
		}
	}
	return best
}

// keep forgets what belongs to members that are no more.
func (p *places) keep(members []*member) {
	gone := func(m *member) bool { return !slices.Contains(members, m) }
	maps.DeleteFunc(p.tasks, func(_ string, m *member) bool { return gone(m) })
	for _, table := range []map[string]resource{p.uris, p.mentioned, p.watched} {
		maps.DeleteFunc(table, func(_ string, of resource) bool { return gone(of.m) })
	}
	p.templates = slices.DeleteFunc(p.templates, func(t template) bool { return gone(t.m) })
}
