// SPDX-License-Identifier: Apache-2.0

package app

import (
	"sync"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/platform/state"
)

// JournalSink keeps decisions as lines of a journal.
type JournalSink struct {
	J *state.Journal

	mu  sync.Mutex
	buf []byte
}

func (s *JournalSink) Record(d gateway.Decision) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = d.AppendJSON(s.buf[:0])
	return s.J.Append(s.buf)
}
