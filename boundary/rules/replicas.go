// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"net"
	"net/netip"
	"strconv"

	"github.com/pellucid-mcp/pellucid/platform/listen"
)

// Replicas says how the gateways that share a store reach each other.
type Replicas struct {
	Name    Value  // with which the ids of sessions begin that this gateway has begun
	Address Value  // HOST:PORT at which the others reach this one; "": it is the only one
	Listen  string // host:port that it listens at; "": Address
}

// Set reports whether this gateway is one of several.
func (r Replicas) Set() bool { return r.Address.text != "" }

// Listener is where this gateway listens for the others.
func (r Replicas) Listener() string {
	if r.Listen != "" {
		return r.Listen
	}
	return r.Address.text
}

const wantReplica = "want HOST:PORT at which the other replicas reach this one, such as 10.0.0.7:7421, or a reference to it"

func (r *Replicas) members() []member {
	return []member{
		{"name", live, value{
			read:  func(c *compiler, p place) { r.Name = c.replicaName(p) },
			write: func(d *dumper, name string) { d.value(name, r.Name) },
			kind:  "up to 63 small letters, digits and hyphens, `env:NAME` or `file:PATH`", schema: schema{"type": "string", "minLength": 1},
		}, "what the ids of this replica's sessions begin with, so that a proxy can send their requests here; no two replicas have the same. Needed with `address`"},
		{"address", live, value{
			read:  func(c *compiler, p place) { r.Address = c.replicaAddress(p) },
			write: func(d *dumper, name string) { d.value(name, r.Address) },
			kind:  "HOST:PORT, `env:NAME` or `file:PATH`", schema: schema{"type": "string", "minLength": 1},
		}, "where the other replicas reach this one. Give it as `env:NAME`, so that all have the same file; default: this gateway is the only one"},
		{"listen", live, checked(&r.Listen, "", "HOST:PORT with an IP address or localhost, such as 0.0.0.0:7421", listen.IsAddress),
			"the address for the other replicas; default: `address`"},
	}
}

func (c *compiler) replicaName(p place) Value {
	v := c.value(p)
	if v.text != "" && !isReplicaName(v.text) {
		c.report(p, "want up to 63 small letters, digits and hyphens, such as r2, or a reference to it")
		return Value{}
	}
	return v
}

// isReplicaName reports whether a name can stand in the id of a session, with a point behind it.
func isReplicaName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && (c != '-' || i == 0) {
			return false
		}
	}
	return s != "" && len(s) <= 63
}

func (c *compiler) replicaAddress(p place) Value {
	v := c.value(p)
	if v.text != "" && !isReachable(v.text) {
		c.report(p, wantReplica)
		return Value{}
	}
	return v
}

// isReachable reports whether s is a host and port to which a connection can be made.
func isReachable(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil || len(s) > 255 {
		return false
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		return false
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return !ip.IsUnspecified() && !ip.IsMulticast()
	}
	for i := range len(host) {
		c := host[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			return false
		}
	}
	return host != ""
}

// replicas checks the section once it has been read.
func (c *compiler) replicas(p place) {
	r := &c.out.Replicas
	switch {
	case r.Address.text == "" && r.Listen != "":
		c.report(p.at("listen"), "needs address: where the other replicas reach this one")
	case r.Set() && r.Name.text == "" && p.member("name") == nil:
		c.report(place{p.node, p.path + ".name"}, "is needed with address: what the ids of this replica's sessions begin with, such as r2")
	case r.Set() && r.Listen == "" && !listen.IsAddress(r.Address.text):
		c.report(p.at("address"), "is a host name: say with listen at which IP address this replica listens")
	}
}
