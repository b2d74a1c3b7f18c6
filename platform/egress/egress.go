// SPDX-License-Identifier: Apache-2.0

// Package egress makes the HTTP clients with which Pellucid asks services that the operator has named.
//
// They ask no proxy, follow no redirect, unpack nothing, and speak https, but for
// services on this machine, which they then do not leave.
package egress

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/loopback"
)

// Base is s without a slash at its end, if it is a URL of scheme, host and path
// alone; plain says that it is http. http is for hosts of this machine, unless
// plainAnywhere. The error does not quote s.
func Base(s string, plainAnywhere bool) (base string, plain bool, err error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return "", false, errors.New("the base URL is none")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "":
		return "", false, errors.New("the base URL holds more than host and path")
	case u.Scheme == "http" && !plainAnywhere && !loopback.Host(u.Hostname()):
		return "", false, errors.New("the base URL is not https, and its host is not this machine")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", false, errors.New("the base URL is not https")
	}
	return strings.TrimRight(s, "/"), u.Scheme == "http", nil
}

// Options of a transport.
type Options struct {
	// LoopbackOnly refuses to connect to anywhere else, whatever a name resolves to.
	LoopbackOnly bool
	// PublicOnly refuses to connect to addresses that are not on the public network. A proxy
	// connects in the place of this program, so it is not for a transport that has one.
	PublicOnly bool
	Idle       int            // connections that are kept to a host, if they are more than 4
	Roots      *x509.CertPool // nil: the system's
}

// Transport returns one of the kind that the package is about. http.Transport
// follows no redirect by itself; a client over it must not either.
func Transport(o Options) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if o.LoopbackOnly {
		dialer.Control = onlyLoopback
	} else if o.PublicOnly {
		dialer.Control = onlyPublic
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	t := &http.Transport{
		DialContext:            dialer.DialContext,
		Protocols:              protocols,
		DisableCompression:     true,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		MaxIdleConnsPerHost:    max(o.Idle, 4),
		IdleConnTimeout:        30 * time.Second,
	}
	if o.Roots != nil {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Roots}
	}
	return t
}

// ErrNotLoopback: a name of this machine that leads elsewhere.
var ErrNotLoopback = errors.New("egress: not a loopback address")

func onlyLoopback(_, address string, _ syscall.RawConn) error {
	if a, err := netip.ParseAddrPort(address); err != nil || !a.Addr().Unmap().IsLoopback() {
		return ErrNotLoopback
	}
	return nil
}

// ErrNotPublic: a name that leads into a private network, or to this machine.
var ErrNotPublic = errors.New("egress: not a public address")

func onlyPublic(_, address string, _ syscall.RawConn) error {
	if a, err := netip.ParseAddrPort(address); err != nil || !Public(a.Addr()) {
		return ErrNotPublic
	}
	return nil
}

// sharedRanges are for carriers (RFC 6598), for measurements (RFC 2544), for protocols (RFC 6890), and for forms of
// IPv6 that hold an IPv4 address (RFC 6052, RFC 3056, RFC 4380, RFC 4291 2.5.5.1), which may be a private one.
var sharedRanges = []netip.Prefix{
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("::/96"), netip.MustParsePrefix("2001::/32"),
}

// Public reports whether an address is one of the public network.
func Public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, p := range sharedRanges {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// IsHTTP reports whether s is an http or https URL with a host.
func IsHTTP(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}
