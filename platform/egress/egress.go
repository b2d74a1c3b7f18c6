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
	Idle         int            // connections that are kept to a host, if they are more than 4
	Roots        *x509.CertPool // nil: the system's
}

// Transport returns one of the kind that the package is about. http.Transport
// follows no redirect by itself; a client over it must not either.
func Transport(o Options) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if o.LoopbackOnly {
		dialer.Control = onlyLoopback
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

// errNotLoopback is a name of this machine that leads elsewhere.
var errNotLoopback = errors.New("egress: not a loopback address")

func onlyLoopback(_, address string, _ syscall.RawConn) error {
	if a, err := netip.ParseAddrPort(address); err != nil || !a.Addr().Unmap().IsLoopback() {
		return errNotLoopback
	}
	return nil
}
