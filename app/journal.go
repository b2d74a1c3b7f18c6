// SPDX-License-Identifier: Apache-2.0

package app

import (
	"sync"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/platform/state"
)

// journalSink keeps decisions as lines of a journal.
type journalSink struct {
	j *state.Journal

	mu  sync.Mutex
	buf []byte
}

// Record implements gateway.Sink.
func (s *journalSink) Record(d gateway.Decision) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = d.AppendJSON(s.buf[:0])
	return s.j.Append(s.buf)
}
