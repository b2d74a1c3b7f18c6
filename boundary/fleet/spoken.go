// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// spoken is what the server behind a URL was found to speak. A Dialer keeps it, so that it
// is known to every later connection: of `up`, of `wrap` and of `check` alike. It holds
// nothing that the server said. It is safe for concurrent use.
type spoken struct {
	mu     sync.Mutex
	legacy time.Time // when the server last refused server/discover and took initialize; zero: not known
	old    bool      // the transport is that of 2024-11-05
}

// legacyFor is how long a server is not asked again for the modern era. A server that takes
// initialize as before may have learned the modern era meanwhile.
const legacyFor = time.Hour

func (s *spoken) isOld() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.old
}

func (s *spoken) isLegacy(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.legacy.IsZero() && now.Sub(s.legacy) < legacyFor
}

// initialized notes that the server has taken initialize. refused: it had refused
// server/discover before, on the same connection.
func (s *spoken) initialized(old, refused bool, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old = old
	if refused {
		s.legacy = now
	}
}

// forget makes the next connection find out anew.
func (s *spoken) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.legacy, s.old = time.Time{}, false
}

// refusesHTTP reports whether m says what a server of the old transport says to a POST of
// initialize.
//
// spec: MCP 2025-03-26, transports/backwards-compatibility
func refusesHTTP(m *wire.Message) bool {
	switch statusOf(m) {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return m.Local
	}
	return false
}

// refuses reports whether m is an error that the server would give again: not one of a
// moment, such as a rate limit, a failure inside the server or a lost connection.
func refuses(m *wire.Message) bool {
	if m.Kind != wire.ErrorResponse {
		return false
	}
	switch status := statusOf(m); status {
	case 0:
		code, _ := m.Error.Get("code").Int64()
		return !m.Local && code != wire.CodeInternal
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	default:
		return status/100 == 4
	}
}

// statusOf is the HTTP status by which a server refused a request; 0: the refusal has no status.
func statusOf(m *wire.Message) int {
	var status wire.StatusError
	errors.As(m.Cause, &status)
	return int(status)
}

// speaksModern reports whether m is what a server of the modern era answers to server/discover:
// its result, or that it wants another revision.
func speaksModern(m *wire.Message) bool {
	if m.Kind == wire.ErrorResponse {
		code, _ := m.Error.Get("code").Int64()
		return !m.Local && code == wire.CodeUnsupportedVersion
	}
	for v := range m.Result.Get("supportedVersions").Elements() {
		if v.Text() == mcpmsg.Modern {
			return true
		}
	}
	return false
}
