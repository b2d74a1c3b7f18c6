// SPDX-License-Identifier: Apache-2.0

package mcpmsg

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Passages is the table of extensions as one place reads it. What two rows name passes if
// it passes in one of them.
type Passages struct {
	rows    []Extension
	passage func(*Extension) Passage
	methods map[string]bool
	begins  map[string]bool // of methods
	other   bool            // a method that no row names
	meta    map[string]bool // withheld
	schemes map[string]bool // withheld
}

// The table at a single server, and at all servers as one.
var (
	Alone = NewPassages(Extensions, func(e *Extension) Passage { return e.Alone })
	Union = NewPassages(Extensions, func(e *Extension) Passage { return e.Union })
)

// NewPassages reads one column of a table, whose last row is for what no other names.
func NewPassages(rows []Extension, passage func(*Extension) Passage) *Passages {
	p := &Passages{rows: rows, passage: passage, methods: map[string]bool{}, begins: map[string]bool{}}
	meta, schemes := map[string]bool{}, map[string]bool{}
	for i := range rows {
		e := &rows[i]
		passes := passage(e) == Inspected
		for _, method := range e.Methods {
			if strings.HasSuffix(method, "/") {
				p.begins[method] = p.begins[method] || passes
			} else {
				p.methods[method] = p.methods[method] || passes
			}
		}
		for _, key := range e.Meta {
			meta[key] = meta[key] || passes
		}
		for _, scheme := range e.Schemes {
			schemes[scheme] = schemes[scheme] || passes
		}
		p.other = passes
	}
	p.meta, p.schemes = withheld(meta), withheld(schemes)
	return p
}

// withheld are the names that do not pass.
func withheld(passes map[string]bool) map[string]bool {
	out := map[string]bool{}
	for name, ok := range passes {
		if !ok {
			out[name] = true
		}
	}
	return out
}

// Method reports whether a request or notification passes.
func (p *Passages) Method(method string) bool {
	if passes, named := p.methods[method]; named {
		return passes
	}
	for begin, passes := range p.begins {
		if strings.HasPrefix(method, begin) {
			return passes
		}
	}
	return p.other
}

// Meta reports whether a member of _meta passes.
func (p *Passages) Meta(key string) bool { return len(p.meta) == 0 || !p.meta[key] }

// URI reports whether a URI passes.
func (p *Passages) URI(uri string) bool { return len(p.schemes) == 0 || !p.schemes[scheme(uri)] }

// capability reports whether a capability of that path is announced.
func (p *Passages) capability(path ...string) bool { return p.passage(p.row(path)) == Inspected }

func (p *Passages) row(path []string) *Extension {
	for i := range p.rows {
		c := p.rows[i].Capability
		if len(c) == len(path) && c[0] == path[0] && (len(c) == 1 || c[1] == path[1] || c[1] == "*") {
			return &p.rows[i]
		}
	}
	return &p.rows[len(p.rows)-1]
}

// Announced calls withhold with each of a server's capabilities that does not pass.
func (p *Passages) Announced(capabilities strictjson.Value, withhold func(strictjson.Value)) {
	for name, v := range capabilities.Members() {
		switch text := name.Text(); text {
		case "extensions", "experimental":
			if v.Kind() != '{' {
				continue
			}
			for inner, w := range v.Members() {
				if !p.capability(text, inner.Text()) {
					withhold(w)
				}
			}
		default:
			if !p.capability(text) {
				withhold(v)
			}
		}
	}
}

// scheme is that of a URI, in lower case; "" if it has none.
func scheme(uri string) string {
	s, _, found := strings.Cut(uri, ":")
	if !found {
		return ""
	}
	return strings.ToLower(s)
}

// pinnedSchemes are those of URIs whose resources are part of the surface.
var pinnedSchemes = func() map[string]bool {
	m := map[string]bool{}
	for i := range Extensions {
		for _, s := range Extensions[i].Schemes {
			m[s] = Extensions[i].pinned
		}
	}
	return m
}()
