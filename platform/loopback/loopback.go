// SPDX-License-Identifier: Apache-2.0

// Package loopback reports whether a host or an address is one that only this machine can reach.
package loopback

import (
	"net"
	"net/netip"
	"strings"
)

// Host reports whether a URL's host, without port and brackets, is this machine.
// No name is looked up: of names, only localhost is.
func Host(host string) bool {
	a, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && a.Unmap().IsLoopback()
}

// Listener reports whether only this machine can reach what listens on address, a
// host and a port as net.Listen takes them. Without a host it is everybody.
func Listener(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && Host(host)
}
