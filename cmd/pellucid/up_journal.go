// SPDX-License-Identifier: Apache-2.0

package main

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

func (s *journalSink) Record(d gateway.Decision) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = d.AppendJSON(s.buf[:0])
	return s.j.Append(s.buf)
}
