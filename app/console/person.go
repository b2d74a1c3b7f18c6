// SPDX-License-Identifier: Apache-2.0

package console

import "slices"

// A Role is what a person may do. Each role may do all that those before it may.
type Role uint8

const (
	_        Role = iota // no route may have it
	Public               // who has not signed in
	Viewer               // sees what was decided, and no text that is held
	Reviewer             // sees and decides about what waits, on their servers
	Admin                // changes rules and exceptions, on their servers
)

var roleNames = [...]Own{"none", "not signed in", "viewer", "reviewer", "admin"}

// Name returns the name of the role.
func (r Role) Name() Own {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return roleNames[0]
}

// ParseRole returns the role of that name.
func ParseRole(s string) (Role, bool) {
	i := slices.IndexFunc(roleNames[:], func(name Own) bool { return string(name) == s })
	return Role(max(i, 0)), i >= int(Viewer)
}

// A Person is who has signed in. What they may do depends on the server: RoleOn decides.
type Person struct {
	ID         string   // a label: letters, digits and ._/:@+- only
	Role       Role     // the highest that they have on any server: it opens pages, and shows nothing of a server
	AllServers bool     // sees what came from every server
	Servers    []string // sees what came from these
	Reviews    []string // reviewer of these servers; nil: of all that they see, by their role
	Manages    []string // admin of these servers; nil: of all that they review, by their role

	session string // its name; "": in tests
}

// RoleOn returns the role of the person on a server; "" stands for what belongs to no server, or to all.
func (p Person) RoleOn(server string) Role {
	has := func(list []string) bool { return list == nil || slices.Contains(list, server) }
	switch {
	case !p.AllServers && !slices.Contains(p.Servers, server):
		return Public
	case p.Role < Reviewer || !has(p.Reviews):
		return min(p.Role, Viewer)
	case p.Role < Admin || !has(p.Manages):
		return Reviewer
	}
	return Admin
}

// Sees reports whether the person may see what was decided about what came from the server.
func (p Person) Sees(server string) bool { return p.RoleOn(server) >= Viewer }

// Decides reports whether the person may read what is held of the server, and decide about it.
func (p Person) Decides(server string) bool { return p.RoleOn(server) >= Reviewer }

// Administers reports whether the person may change rules and exceptions of the server.
func (p Person) Administers(server string) bool { return p.RoleOn(server) >= Admin }
