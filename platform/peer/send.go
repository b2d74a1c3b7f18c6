// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"net/http"
	"net/http/httptrace"
	"sync"
)

// Send sends a request. Where it fails, sent reports whether the other side may have received a part of the
// request: then only a request that may be repeated can be sent again. A transport may try a request on
// several connections by itself, but only while none of it was written; a header that would let the
// transport repeat more (Idempotency-Key) must not be in the request.
func Send(t *http.Transport, r *http.Request) (resp *http.Response, sent bool, err error) {
	var mu sync.Mutex
	used := map[*counted]int64{} // and what was written to each before
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		c, ok := i.Conn.(*counted)
		mu.Lock()
		defer mu.Unlock()
		if _, again := used[c]; ok && !again {
			used[c] = c.n.Load()
		}
	}})
	resp, err = t.RoundTrip(r.WithContext(ctx))
	if err == nil {
		return resp, true, nil
	}
	mu.Lock()
	defer mu.Unlock()
	for c, before := range used {
		sent = sent || c.n.Load() != before
	}
	return nil, sent, err
}
