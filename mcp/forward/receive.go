// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"encoding/base64"
	"net/http"
)

// A hop is how a request came from another replica.
type hop struct {
	to   string // the replica that it was sent to
	from string
	take bool
}

type hopKey struct{}

// maxCaller bounds what another replica says of a principal.
const maxCaller = 48 << 10

// Handler takes requests from other replicas. It must be reached by connections of peer.Keys.Listen
// only: it believes what they say of the principal. identify puts the principal into the request, or
// reports that it cannot; next serves the request.
func (f *Forwarder) Handler(identify func(r *http.Request, caller string) (*http.Request, bool), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to, caller := r.Header.Get(headerTo), r.Header.Get(headerCaller)
		said, err := base64.RawURLEncoding.Strict().DecodeString(caller)
		if to == "" || err != nil || len(said) > maxCaller {
			http.Error(w, "not a request of a replica", http.StatusBadRequest)
			return
		}
		if r.Header.Get(headerEnds) == "1" {
			f.ended(r.Context(), r.Header.Get(headerFrom))
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), hopKey{}, hop{to, r.Header.Get(headerFrom), r.Header.Get(headerTake) == "1"}))
		r.Header = r.Header.Clone()
		for _, name := range []string{headerTo, headerFrom, headerCaller, headerTake} {
			r.Header.Del(name)
		}
		known, ok := identify(r, string(said))
		if !ok {
			http.Error(w, "not a request of a replica", http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, known)
	})
}
