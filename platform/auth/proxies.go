// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are addresses whose word counts about where a request comes from: those of load balancers and reverse proxies.
type Proxies []netip.Prefix

// maxHops bounds the addresses of one request that are looked at: a client can send as many as its headers hold.
const maxHops = 32

// ClientAddr is where a request comes from. Each proxy adds the address of its own peer at the end of X-Forwarded-For, or of
// Forwarded (RFC 7239), so the list is read from its end: the first address that is not of a trusted proxy is the client's. What
// stands before it was written by the client, and is not read. Headers of a peer that is no proxy count for nothing; so do those of
// a request that has both headers, since a proxy adds to one of them and passes the other on as it came.
func (p Proxies) ClientAddr(r *http.Request) netip.Addr {
	addr := remoteAddr(r)
	if !p.has(addr) {
		return addr
	}
	hops := hopsOf(r.Header)
	for i := 0; i < len(hops) && i < maxHops && p.has(addr); i++ {
		next, ok := parseHop(hops[len(hops)-1-i])
		if !ok {
			return addr // the proxy that wrote this is as far as is known
		}
		addr = next
	}
	return addr
}

func (p Proxies) has(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsValid() && slices.ContainsFunc(p, func(of netip.Prefix) bool { return of.Contains(a) })
}

// hopsOf are the addresses of the one header that is there, as they stand in it.
func hopsOf(h http.Header) []string {
	list, forwarded := h.Values("X-Forwarded-For"), h.Values("Forwarded")
	switch {
	case len(list) > 0 && len(forwarded) > 0:
		return nil
	case len(list) > 0:
		return strings.Split(strings.Join(list, ","), ",")
	case len(forwarded) > 0:
		return forwardedFor(strings.Join(forwarded, ","))
	}
	return nil
}

// forwardedFor are the members "for" of a Forwarded header; of an element without one, "". A comma or semicolon inside quotes is no
// separator. Elements whose quotes do not end are one element.
//
// spec: RFC 7239 4
func forwardedFor(s string) (out []string) {
	for element := range splitQuoted(s, ',') {
		hop := ""
		for pair := range splitQuoted(element, ';') {
			name, value, ok := strings.Cut(pair, "=")
			if ok && strings.EqualFold(strings.TrimSpace(name), "for") {
				hop = strings.TrimSpace(value)
			}
		}
		if n := len(hop); n >= 2 && hop[0] == '"' && hop[n-1] == '"' {
			hop = hop[1 : n-1]
		}
		out = append(out, hop)
	}
	return out
}

// splitQuoted yields the parts of s between separators that do not stand inside quotes.
func splitQuoted(s string, by byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		quoted, from := false, 0
		for i := 0; i < len(s); i++ {
			switch c := s[i]; {
			case quoted && c == '\\':
				i++
			case c == '"':
				quoted = !quoted
			case c == by && !quoted:
				if !yield(s[from:i]) {
					return
				}
				from = i + 1
			}
		}
		yield(s[from:])
	}
}

// parseHop reads an address with or without a port, an IPv6 one with or without brackets. A name such as "unknown" or "_hidden" is
// no address.
func parseHop(s string) (netip.Addr, bool) {
	s = strings.TrimSpace(s)
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	if err != nil {
		at, errPort := netip.ParseAddrPort(s)
		a, err = at.Addr(), errPort
	}
	return a.Unmap().WithZone(""), err == nil
}

// ParseProxy reads one address or a prefix of addresses in CIDR form. A prefix that has every address is refused: anyone could then
// say where they come from.
func ParseProxy(s string) (netip.Prefix, bool) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Bits() == 0 || p != p.Masked() || p.Addr().Is4In6() {
		return netip.Prefix{}, false
	}
	return p, true
}
