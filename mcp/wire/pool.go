// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Pool is the connections to one upstream, which its Conns share: a connection that rests costs
// two goroutines and its buffers, and few sessions speak at one time. A Conn uses it until its end;
// with the last one the connections that rest are closed.
type Pool struct {
	*http.Transport
	users atomic.Int64
	// noReuseUntil is the time, in nanoseconds, until which no connection is used again: the server has
	// closed one soon after an answer without announcing it. A request on such a connection would be
	// lost, and not every request may be sent twice.
	noReuseUntil atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (p *Pool) RoundTrip(req *http.Request) (*http.Response, error) {
	if time.Now().UnixNano() < p.noReuseUntil.Load() {
		p.CloseIdleConnections()
		once := *req
		once.Close = true
		req = &once
	}
	return p.Transport.RoundTrip(req)
}

// observed is a connection of a Pool that notices how soon the server closes it.
type observed struct {
	net.Conn
	pool  *Pool
	wrote atomic.Int64 // when, in nanoseconds
}

const (
	shortRest   = time.Second // servers that keep idle connections open do so for 5 s and more
	noReuseTime = 10 * time.Minute
)

func (c *observed) Write(b []byte) (int, error) {
	c.wrote.Store(time.Now().UnixNano())
	return c.Conn.Write(b)
}

func (c *observed) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && !errors.Is(err, net.ErrClosed) && time.Since(time.Unix(0, c.wrote.Load())) < shortRest {
		c.pool.noReuseUntil.Store(time.Now().Add(noReuseTime).UnixNano())
	}
	return n, err
}

// maxResting is how many connections of a Pool are kept that nothing uses at the moment.
const maxResting = 64

// NewPool returns a Pool for Conns of the same options.
func NewPool(opt HTTPOptions) *Pool {
	p := new(Pool)
	dial := (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	t := &http.Transport{
		ReadBufferSize: 16 << 10, // servers send long answers in short chunks
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &observed{Conn: conn, pool: p}, nil
		},
		TLSClientConfig:        opt.TLS,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // body undoes it, under a bound
		MaxIdleConns:           maxResting,
		MaxIdleConnsPerHost:    maxResting,
		IdleConnTimeout:        4 * time.Second, // many servers end a connection after 5
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	if opt.ProxyFromEnvironment {
		t.Proxy = http.ProxyFromEnvironment
	}
	p.Transport = t
	return p
}

// leave ends the use of one Conn.
func (p *Pool) leave() {
	if p.users.Add(-1) == 0 {
		p.CloseIdleConnections()
	}
}
