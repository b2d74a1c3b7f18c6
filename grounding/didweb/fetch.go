// SPDX-License-Identifier: Apache-2.0

package didweb

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/pellucid-mcp/pellucid/text/href"
)

// The bounds of one answer.
const (
	maxDocument  = 64 << 10 // bytes
	maxHeader    = 16 << 10 // bytes
	maxAddresses = 16       // that a host may have
	maxConnect   = 3 * time.Second
)

// A getter gets documents.
type getter struct {
	lookup    func(ctx context.Context, host string) ([]netip.Addr, error)
	connect   func(ctx context.Context, network, address string) (net.Conn, error)
	tls       *tls.Config
	transport *http.Transport
}

func newGetter(o *Options) *getter {
	g := &getter{lookup: o.lookup, connect: o.dangerouslyDial}
	if g.lookup == nil {
		g.lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			// The dot at the end keeps the search domains of this machine out.
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host+".")
		}
	}
	if g.connect == nil {
		g.connect = (&net.Dialer{Timeout: maxConnect, KeepAlive: -1}).DialContext
	}
	// HTTP/1.1 has the fewest ways to make a client work for nothing. A transport
	// follows no redirect, and this one asks no proxy and unpacks nothing.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	g.tls = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.dangerouslyRoots}
	g.transport = &http.Transport{
		DialContext:            g.dial,
		DialTLSContext:         g.dialTLS,
		Protocols:              protocols,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
	}
	return g
}

// dial connects to one of the addresses of a host, if all of them are public. What
// is connected to is an address that was checked, not the name once more.
func (g *getter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &Error{noAddress}
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, &Error{noAddress}
	}
	addrs, err := g.lookup(ctx, host)
	if err != nil || len(addrs) == 0 || len(addrs) > maxAddresses {
		return nil, &Error{noAddress}
	}
	for i, a := range addrs {
		addrs[i] = a.Unmap()
		if !public(addrs[i]) {
			return nil, &Error{notPublic}
		}
	}
	for _, a := range addrs {
		c, err := g.connect(ctx, network, netip.AddrPortFrom(a, uint16(port)).String())
		if err == nil {
			return c, nil
		}
	}
	return nil, &Error{unreachable}
}

// dialTLS is dial and a handshake, whose failure is told from those that follow.
func (g *getter) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := g.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	config := g.tls.Clone()
	config.ServerName, _, _ = net.SplitHostPort(address)
	c := tls.Client(raw, config)
	err = c.HandshakeContext(ctx)
	if err == nil {
		return c, nil
	}
	raw.Close()
	var cert *tls.CertificateVerificationError
	switch {
	case ctx.Err() != nil:
		return nil, &Error{timeout}
	case errors.As(err, &cert):
		return nil, &Error{certificate}
	}
	return nil, &Error{insecure}
}

// public asks package href, which knows the ranges that lead elsewhere.
func public(a netip.Addr) bool {
	host := a.String()
	if a.Is6() {
		host = "[" + host + "]"
	}
	_, err := href.Parse("https://" + host + "/")
	return a.IsValid() && err == nil
}

// document gets the document at url.
func (g *getter) document(ctx context.Context, url string) ([]byte, *Error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, &Error{exchange}
	}
	req.Header.Set("Accept", "application/did+ld+json, application/did+json, application/json")
	req.Header.Set("User-Agent", "pellucid")
	resp, err := g.transport.RoundTrip(req)
	if err != nil {
		return nil, classify(ctx, err)
	}
	defer resp.Body.Close()
	if ctx.Err() != nil { // a server that notices may still answer in form, and end the body so
		return nil, &Error{timeout}
	}
	if e := acceptable(resp); e != nil {
		return nil, e
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	switch {
	case err != nil:
		return nil, classify(ctx, err)
	case ctx.Err() != nil:
		return nil, &Error{timeout}
	case len(body) > maxDocument:
		return nil, &Error{tooLarge}
	}
	return body, nil
}

func acceptable(resp *http.Response) *Error {
	switch code := resp.StatusCode; {
	case code >= 300 && code < 400:
		return &Error{redirected}
	case code == http.StatusNotFound || code == http.StatusGone:
		return &Error{absent}
	case code != http.StatusOK:
		return &Error{Status}
	}
	if len(resp.Header.Values("Content-Encoding")) > 0 {
		return &Error{encoded}
	}
	types := resp.Header.Values("Content-Type")
	if len(types) != 1 || !isDocument(types[0]) {
		return &Error{wrongType}
	}
	if resp.ContentLength > maxDocument {
		return &Error{tooLarge}
	}
	return nil
}

func isDocument(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && (t == "application/did+ld+json" || t == "application/did+json" || t == "application/json")
}

// classify says which guard an exchange failed on. The error itself may hold what
// the host sent.
func classify(ctx context.Context, err error) *Error {
	var ours *Error
	switch {
	case errors.As(err, &ours):
		return ours
	case ctx.Err() != nil:
		return &Error{timeout}
	}
	return &Error{exchange}
}
