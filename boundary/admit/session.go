// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
)

// Bounds of the items that sessions have seen and that are not stored yet, and of the
// items that pass 1 has refused.
const (
	maxNoticed      = 256
	maxNoticedBytes = 4 << 20
	maxRefused      = 4096
)

// Admits implements gateway.Admission. Where nothing is enforced, what is not known
// passes if pass 1 finds nothing.
func (s *Server) Admits(it surface.Item) bool {
	t := s.table.Load()
	switch c := s.config(); {
	case t == nil:
		return false
	case t.contains(it), s.tolerates(t, it):
		return true
	case c.Settings.Mode == policy.Enforce || len(t.approved) == 0: // of a server that is out, nothing passes
		return false
	}
	s.mu.Lock()
	refused := s.refused[it.Digest]
	s.mu.Unlock()
	if refused || it.JSON == nil {
		return !refused
	}
	if it.Inspect(s.config().Settings.rules()).Err() == nil {
		if s.config().Settings.Mode == policy.Audit {
			s.notice(it)
		} else {
			s.strange(it)
		}
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil || len(s.refused) >= maxRefused {
		s.refused = map[surface.Digest]bool{}
	}
	s.refused[it.Digest] = true
	return false
}

// tolerates reports whether an item differs from the approved one only in tolerated parts. An item without its JSON
// was seen before.
func (s *Server) tolerates(t *table, it surface.Item) bool {
	rules := s.config().Settings.rules()
	if len(rules.Tolerates) == 0 {
		return false
	}
	s.mu.Lock()
	known := s.toleratedVersions[it.Digest]
	s.mu.Unlock()
	if known || it.JSON == nil {
		return known
	}
	if but, there := t.tolerantDigests[it.Key]; !there || but != it.DigestAs(rules.Tolerates) || it.Inspect(rules).Err() != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.toleratedVersions == nil || len(s.toleratedVersions) >= maxRefused {
		s.toleratedVersions = map[surface.Digest]bool{}
	}
	s.toleratedVersions[it.Digest] = true
	return true
}

// Approved implements gateway.Admission.
func (s *Server) Approved(k surface.Key) []byte {
	if t := s.table.Load(); t != nil {
		return t.own[k]
	}
	return nil
}

// Named implements gateway.Admission.
func (s *Server) Named(k surface.Key) bool {
	t := s.table.Load()
	if t == nil {
		return false
	}
	_, approved := t.approved[k]
	return approved
}

// Held implements gateway.Admission.
func (s *Server) Held(k surface.Key) bool {
	t := s.table.Load()
	return t == nil || len(t.approved) == 0 || t.holds(k, s.config().Settings.Mode == policy.Enforce)
}

// Blocked implements gateway.Admission.
func (s *Server) Blocked(k surface.Key) bool {
	t := s.table.Load()
	return t != nil && t.blocked[k]
}

// Beyond implements gateway.Admission.
func (s *Server) Beyond(uri string, held []string) bool {
	t := s.table.Load()
	if t == nil || len(t.approved) == 0 {
		return true
	}
	if _, listed := t.approved[surface.Key{Kind: surface.Resource, Name: uri}]; listed {
		return false // for what it is itself
	}
	all, enforced := slices.Clone(held), s.config().Settings.Mode == policy.Enforce
	for _, name := range t.out {
		if t.holds(surface.Key{Kind: surface.Template, Name: name}, enforced) {
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		return false
	}
	var open []string
	for k := range t.approved {
		if k.Kind == surface.Template && !slices.Contains(held, k.Name) {
			open = append(open, k.Name)
		}
	}
	return surface.Beyond(uri, all, open)
}

// OnChange implements gateway.Admission.
func (s *Server) OnChange(f func()) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hearers[&f] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.hearers, &f)
	}
}

// Refresh implements gateway.Admission. A pin that was dropped is for the next look at
// the store, which has the server checked anew.
func (s *Server) Refresh(ctx context.Context) {
	t := s.table.Load()
	s.mu.Lock()
	is := s.state
	s.mu.Unlock()
	if !s.pinned() || is != admitted {
		return
	}
	if now, err := s.pin(ctx); err == nil && now.version > t.version {
		s.put(now)
	}
}

// strange notices an item that differs from the checked surface, once: where nothing is pinned, no store knows
// what was seen before.
func (s *Server) strange(it surface.Item) {
	s.mu.Lock()
	known := s.strangers[it.Digest]
	s.mu.Unlock()
	if known || !s.notice(it) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.strangers == nil || len(s.strangers) >= maxRefused {
		s.strangers = map[surface.Digest]bool{}
	}
	s.strangers[it.Digest] = true
}

// Differs implements gateway.Admission.
func (s *Server) Differs(items []surface.Item) {
	if s.config().Settings.Mode == policy.Off {
		return // pass 1 has refused them, and no person can approve them
	}
	for _, it := range items {
		s.notice(it)
	}
}

// notice keeps an item until the next look at the store; false where there is no room.
func (s *Server) notice(it surface.Item) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noticed == nil {
		s.noticed = map[surface.Key]surface.Item{}
	}
	old, known := s.noticed[it.Key]
	if !known && len(s.noticed) >= maxNoticed || s.nbytes+len(it.JSON) > maxNoticedBytes {
		return false // it is held all the same, and will be shown again
	}
	s.nbytes += len(it.JSON) - len(old.JSON)
	s.noticed[it.Key] = it
	return true
}

// Pauses between two writes of a server that always shows something else.
const (
	firstRest = time.Second
	mostRest  = 48 * time.Second // and a quarter more at the most
)

// rest has the next write wait, longer each time unless it was quiet for a while.
func (s *Server) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.nextWrite) > 2*mostRest {
		s.writeRest.Reset()
	}
	s.nextWrite = now.Add(s.writeRest.Next())
}

// write writes down what sessions have seen.
func (s *Server) write(ctx context.Context) {
	s.mu.Lock()
	if time.Now().Before(s.nextWrite) {
		s.mu.Unlock()
		return
	}
	items := s.noticed
	s.noticed, s.nbytes = nil, 0
	s.mu.Unlock()
	c := s.config()
	if len(items) == 0 {
		return
	}
	list := make([]surface.Item, 0, len(items))
	for _, it := range items {
		list = append(list, it)
	}
	if c.Settings.Mode == policy.Off { // there is no pin to write
		s.rest()
		s.describe(ctx, list, false)
		return
	}
	within, stop := context.WithTimeout(ctx, storeWait)
	defer stop()
	news, err := s.a.opt.Pins.Notice(within, c.Pin, list)
	switch {
	case err != nil && ctx.Err() == nil && !errors.Is(err, surface.ErrNotPinned):
		s.a.log.Warn("pin cannot be written: new items of the server are held, and cannot be approved until it can", "server", c.Name, "error", err)
	case news:
		s.rest()
		s.describe(ctx, list, false)
		var names []string
		var keys []surface.Key
		for _, it := range list {
			keys = append(keys, it.Key)
		}
		for _, k := range keys[:min(len(keys), maxTold)] {
			names = append(names, k.String())
		}
		s.a.log.Warn("a server sent items in a session that are not approved", "server", c.Name, "passed", c.Settings.Mode == policy.Audit,
			"items", len(list), "among_them", names, "run", c.diffCommand(keys...))
	}
}
