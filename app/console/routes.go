// SPDX-License-Identifier: Apache-2.0

package console

import (
	"slices"
	"strings"
)

// A route is one pattern, who may use it and what answers.
type route struct {
	pattern string // "GET records", "POST review/{id}": a method and a path below Base
	least   Role
	handle  func(*Console, *request) answer
	body    int64 // the greatest body in bytes; 0: maxForm
	door    bool  // people sign in by it: it is limited by address
	rail    entry // zero: the page is not in the rail
}

// An entry is a line of the rail. A page is there because its route is.
type entry struct {
	place int // its order
	word  Own // its name
	icon  Own // of templates/icons.html, without "i-"
	key   Own // of g and this letter; "": no key
}

// routes joins the routes of all pages.
func routes() []route {
	return slices.Concat(
		startRoutes,
		loginRoutes,
		overviewRoutes,
		xrayRoutes,
		recordsRoutes,
		recordRoutes,
		journalRoutes,
		policyRoutes,
		serverRoutes,
		guardRoutes,
		reviewRoutes,
	)
}

// full is the pattern for http.ServeMux.
func (r route) full() string {
	method, path, _ := strings.Cut(r.pattern, " ")
	if path == "" {
		path = "{$}"
	}
	return method + " " + Base + path
}

// path is the address of a route without wildcards.
func (r route) path() Path {
	_, path, _ := strings.Cut(r.pattern, " ")
	return pathTo(path)
}

// rail returns the entries of the pages that the person may open.
func (c *Console) rail(q *request) []railView {
	var out []railView
	rs := slices.Clone(c.routes)
	slices.SortStableFunc(rs, func(a, b route) int { return a.rail.place - b.rail.place })
	for _, r := range rs {
		if r.rail.word == "" || q.who.Role < r.least {
			continue
		}
		at := r.path()
		here := q.URL.Path == string(at) || at != Base && strings.HasPrefix(q.URL.Path, string(at)+"/")
		out = append(out, railView{Path: at, Word: r.rail.word, Icon: r.rail.icon, Key: r.rail.key, Here: here})
	}
	return out
}

// has reports whether there is a page at the path below Base.
func (c *Console) has(path string) bool {
	return slices.ContainsFunc(c.routes, func(r route) bool { return r.pattern == "GET "+path })
}
