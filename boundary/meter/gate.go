// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"net/http"
	"strconv"
)

// Gate is middleware that counts what check, middleware itself, lets pass and
// what it refuses, by status: authentication, rate limits, Origin and Host. name
// is a constant of the program's.
func (m *Meter) Gate(name string, check func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		checked := check(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if rec, ok := r.Context().Value(m).(*recorder); ok {
				rec.passed = true
			}
			if rec, ok := w.(*recorder); ok { // whoever is behind the check gets the writer itself
				w = rec.ResponseWriter
			}
			m.i.gates.add(1, name, "passed")
			next.ServeHTTP(w, r)
		}))
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := &recorder{ResponseWriter: w}
			checked.ServeHTTP(rec, r.WithContext(context.WithValue(r.Context(), m, rec)))
			if !rec.passed {
				m.i.gates.add(1, name, statusLabel(rec.status))
			}
		})
	}
}

// recorder notes the status of a refusal.
type recorder struct {
	http.ResponseWriter
	status int
	passed bool
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// statusLabel is the status of a refusal.
func statusLabel(status int) string {
	switch status {
	case 400, 401, 403, 404, 405, 413, 415, 421, 429, 503:
		return strconv.Itoa(status)
	case 0:
		return "200"
	}
	return strconv.Itoa(status/100) + "xx"
}
