// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// Bounds of the records that a server alone can cause.
const (
	repeatsAfter = 32          // of one server in a second; what comes beyond is counted
	repeatsEvery = time.Second // one record for all that repeats
	maxRepeats   = 64          // kinds of one server that are counted apart
)

// Repeats is a Sink that writes what a server does over and over in one record: from the
// 33rd message on that it has in one second dropped, or that is a notification, those of
// one kind are counted, and the record comes at the second's end, with the sum of the
// counts. What answers a call of the client is recorded by itself. It is safe for
// concurrent use.
type Repeats struct {
	to Sink

	mu      sync.Mutex
	servers map[string]*repeated
	closed  bool
}

// repeated is what one server does in one second.
type repeated struct {
	n       int
	waiting map[repeatedKind]*Decision
}

type repeatedKind struct {
	tool, method, kind, principal string
	verdict                       Verdict
	code                          finding.Code
}

// NewRepeats returns a Sink before to. Close has to be called.
func NewRepeats(to Sink) *Repeats { return &Repeats{to: to, servers: map[string]*repeated{}} }

// Record implements Sink.
func (s *Repeats) Record(d Decision) error {
	if !repeatable(&d) {
		return s.to.Record(d)
	}
	s.mu.Lock()
	of := s.servers[d.Server]
	if of == nil && !s.closed {
		of = &repeated{waiting: map[repeatedKind]*Decision{}}
		s.servers[d.Server] = of
		time.AfterFunc(repeatsEvery, func() { s.flush(d.Server, of) })
	}
	if of == nil || of.n < repeatsAfter {
		if of != nil {
			of.n++
		}
		s.mu.Unlock()
		return s.to.Record(d)
	}
	of.count(&d)
	s.mu.Unlock()
	return nil
}

// repeatable reports whether a server can cause the record without being asked, and nobody
// has been given its id.
func repeatable(d *Decision) bool {
	if d.Verdict != Dropped {
		return d.Kind == "notification" && d.Released == ""
	}
	for _, c := range d.Withheld {
		if c.Code == finding.Unapproved { // the client knows the id
			return false
		}
	}
	return d.Kind != "call"
}

func (r *repeated) count(d *Decision) {
	k := repeatedKind{tool: d.Tool, method: d.Method, kind: d.Kind, principal: d.Principal, verdict: d.Verdict}
	if len(d.Withheld) > 0 {
		k.code = d.Withheld[0].Code
	}
	if r.waiting[k] == nil && len(r.waiting) >= maxRepeats {
		k.tool, k.method, k.code = "", frame.Other, ""
	}
	sum := r.waiting[k]
	if sum == nil {
		first := *d
		first.Tool, first.Method = k.tool, k.method
		first.Received, first.Delivered = frame.Digest{}, frame.Digest{} // of many messages there is no one digest
		first.Findings, first.NotInspected, first.Withheld = nil, nil, nil
		first.Inspected, first.Policy, first.Classified, first.grounding = 0, policy.Ruling{}, nil, nil
		sum = &first
		r.waiting[k] = sum
	}
	sum.Repeated++
	sum.Inspected += d.Inspected
	add := func(to *[]policy.Count, from []policy.Count) {
		for _, c := range from {
			*to = addCount(*to, c.Code, c.N)
		}
	}
	add(&sum.Findings, d.Findings)
	add(&sum.NotInspected, d.NotInspected)
	add(&sum.Withheld, d.Withheld)
}

// flush writes what of has counted, and begins anew.
func (s *Repeats) flush(server string, of *repeated) {
	s.mu.Lock()
	if s.servers[server] == of {
		delete(s.servers, server)
	}
	waiting := of.waiting
	of.waiting = nil
	s.mu.Unlock()
	for _, d := range waiting {
		_ = s.to.Record(*d) // nothing is delivered that a record could be owed for
	}
}

// Close writes what was counted. Later records are written as they come.
func (s *Repeats) Close() {
	s.mu.Lock()
	s.closed = true
	all := s.servers
	s.servers = map[string]*repeated{}
	s.mu.Unlock()
	for server, of := range all {
		s.flush(server, of)
	}
}
