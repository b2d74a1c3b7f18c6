// SPDX-License-Identifier: Apache-2.0

package wire

import (
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
}

// maxResting is how many connections of a Pool are kept that nothing uses at the moment.
const maxResting = 64

// NewPool returns a Pool for Conns of the same options.
func NewPool(opt HTTPOptions) *Pool {
	t := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:        opt.TLS,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // body undoes it, under a bound
		MaxIdleConns:           maxResting,
		MaxIdleConnsPerHost:    maxResting,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	if opt.ProxyFromEnvironment {
		t.Proxy = http.ProxyFromEnvironment
	}
	return &Pool{Transport: t}
}

// leave ends the use of one Conn.
func (p *Pool) leave() {
	if p.users.Add(-1) == 0 {
		p.CloseIdleConnections()
	}
}
