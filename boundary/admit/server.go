// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// Server is the Admission of one server.
type Server struct {
	a     *Admissions
	cfg   atomic.Pointer[Config]
	table atomic.Pointer[table]

	mu                sync.Mutex
	state             state
	why               error         // of rejected and failed
	done              chan struct{} // closed when the running check has ended; nil: no check runs
	next              time.Time     // before which nothing is tried again
	pause             backoff.Waits
	surface           *surface.Surface             // as it was last checked
	removals          []surface.Removal            // of the surface that was checked last
	hearers           map[*func()]bool             // told of every change of table
	noticed           map[surface.Key]surface.Item // not yet written down
	nbytes            int                          // of noticed
	nextWrite         time.Time                    // of noticed
	writeRest         backoff.Waits
	refused           map[surface.Digest]bool                         // by pass 1, where nothing is pinned
	strangers         map[surface.Digest]bool                         // noticed, where nothing is pinned
	toleratedVersions map[surface.Digest]bool                         // versions that differ from an approved one in tolerated parts only
	collect           func(context.Context) (*surface.Surface, error) // of the next check; nil: Config's
}

var _ gateway.Admission = (*Server)(nil)

type state uint8

const (
	unchecked state = iota
	admitted
	rejected // what it says was refused
	failed   // it could not be asked, or the store could not be
)

// Pauses before a server is checked again that was not admitted.
const (
	firstPause  = 500 * time.Millisecond
	mostPause   = 24 * time.Second // and a quarter more at the most
	rejectPause = 5 * time.Minute
)

func newServer(a *Admissions, c Config) *Server {
	s := &Server{a: a, hearers: map[*func()]bool{},
		pause: backoff.Waits{First: firstPause, Most: mostPause}, writeRest: backoff.Waits{First: firstRest, Most: mostRest}}
	s.cfg.Store(&c)
	return s
}

func (s *Server) config() *Config { return s.cfg.Load() }

// becomes takes another configuration of the same server; false if it is another
// server, or has to be checked anew.
func (s *Server) becomes(c Config) bool {
	old := s.config()
	if !slices.Equal(old.Settings.Tolerates, c.Settings.Tolerates) || old.Identity != c.Identity || old.Pin != c.Pin || old.Settings.Narrow != c.Settings.Narrow || old.Settings.RejectHidden != c.Settings.RejectHidden ||
		(old.Settings.Mode == policy.Off) != (c.Settings.Mode == policy.Off) {
		return false
	}
	s.cfg.Store(&c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == failed || s.state == rejected { // the operator has done something
		s.next = time.Time{}
	}
	return true
}

// verify returns nil once the server may be reached; it is checked if it has not been.
// The error is a *RejectedError, or is ctx's or that of reaching it.
func (s *Server) verify(ctx context.Context) error {
	s.mu.Lock()
	if s.state == admitted {
		s.mu.Unlock()
		return nil
	}
	if s.done == nil && time.Now().Before(s.next) {
		defer s.mu.Unlock()
		return s.why
	}
	done := s.done
	if done == nil {
		done = make(chan struct{})
		s.done = done
		s.a.work.Go(func() { s.check(done) })
	}
	s.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == admitted {
		return nil
	}
	return s.why
}

// verifyBy is Verify whose check, if there is one, uses another collect than the
// Config's. An error of collect itself, which says nothing about the surface, changes nothing.
func (s *Server) verifyBy(ctx context.Context, collect func(context.Context) (*surface.Surface, error)) error {
	s.mu.Lock()
	s.collect, s.next = collect, time.Time{}
	s.mu.Unlock()
	return s.verify(ctx)
}

// check judges the server and settles its state.
func (s *Server) check(done chan struct{}) {
	t, seen, err := s.judge(s.a.ctx)
	if err != nil {
		t = newTable()
	}
	if !s.a.opt.Alone {
		s.mu.Lock()
		s.surface = seen
		s.mu.Unlock()
	}
	live := s.table.Load() != nil // there may be sessions
	s.put(t)
	if err == nil {
		s.a.compare() // before a session sees the surface
	}
	if live && errors.Is(err, ErrRejected) {
		s.a.opt.Out(s.config().Name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(done)
	s.done, s.why = nil, err
	switch {
	case err == nil:
		s.state = admitted
		s.pause.Reset()
	case errors.Is(err, ErrRejected):
		s.state, s.next = rejected, time.Now().Add(rejectPause)
	default:
		s.state = failed
		s.next = time.Now().Add(s.pause.Next())
	}
}

// retry checks again what could not be asked when it was time.
func (s *Server) retry() {
	s.mu.Lock()
	due := s.state == failed && s.done == nil && !time.Now().Before(s.next)
	s.mu.Unlock()
	if !due {
		return
	}
	s.a.work.Go(func() {
		if s.verify(s.a.ctx) == nil {
			s.a.opt.Back(s.config().Name)
		}
	})
}

// judge collects the surface and has it pass the gate.
func (s *Server) judge(ctx context.Context) (*table, *surface.Surface, error) {
	c, log, began := s.config(), s.a.log, time.Now()
	ask, stop := context.WithTimeoutCause(ctx, c.Settings.Timeout, late(c.Settings.Timeout))
	s.mu.Lock()
	collect := s.collect
	s.collect = nil
	s.mu.Unlock()
	if collect == nil {
		collect = func(ctx context.Context) (*surface.Surface, error) { return c.Collect(ctx, false) }
	}
	seen, err := collect(ask)
	if err != nil && ask.Err() != nil {
		err = context.Cause(ask)
	}
	stop()
	var refused *surface.RefusedError
	switch {
	case err == nil:
	case errors.As(err, &refused) && refused.Reason != surface.NoAnswer && refused.Reason != surface.NoServer:
		s.reject(ctx, err.Error())
		return nil, nil, &RejectedError{err}
	default:
		return nil, nil, fmt.Errorf("admit: %w", err)
	}
	g := surface.Gate{Rules: c.Settings.rules(), HoldFirst: c.Settings.HoldFirst, Bare: func(ctx context.Context) (*surface.Surface, error) {
		ctx, stop := context.WithTimeoutCause(ctx, c.Settings.Timeout, late(c.Settings.Timeout))
		defer stop()
		return c.Collect(ctx, true)
	}}
	if s.a.opt.Review != nil {
		g.Review = s.a.opt.Review()
	}
	if c.Settings.Mode != policy.Off {
		g.Pins = s.a.opt.Pins.Named(c.Called).Tolerating(c.Settings.Tolerates)
	}
	o, err := g.Check(ctx, c.Pin, c.Transport, seen)
	if err != nil {
		return nil, nil, fmt.Errorf("admit: %w", err)
	}
	if o.Conclusion == surface.Rejected {
		s.reject(ctx, o.Why.Error())
		s.tell(slog.LevelError, seen, o)
		return nil, nil, &RejectedError{o.Why}
	}
	if len(o.Withheld) > 0 {
		s.withheld(seen, o)
	}
	s.logUnsettled(o)
	s.removed(seen)
	s.misshapen(seen)
	s.describe(ctx, seen.Items(), g.Pins != nil)
	news := []any{"server", c.Name, "items", len(seen.Items()), "fingerprint", seen.Fingerprint().String(),
		"reviewed", o.Reviewed, "took", time.Since(began).Round(time.Millisecond).String()}
	if g.Pins == nil {
		log.Info("server admitted", news...)
		return ofCheck(o), seen, nil
	}
	t, err := s.pin(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := g.Pins.Reject(ctx, c.Pin, c.Transport, ""); err != nil {
		log.Warn("pin cannot be written", "server", c.Name, "error", err)
	}
	if n := len(o.Offered); n > 0 {
		log.Info("a client has more capabilities than any client before: what the server offers to it is pinned too", "server", c.Name, "items", n)
	}
	held := slices.Collect(maps.Keys(o.Admission.Held()))
	n := len(held)
	log.Info("server admitted", append(news, "first", o.Pinned, "held", n, "moved", o.Admission.Moved && !o.Admission.First)...)
	if n > 0 {
		log.Warn("items of a server are not approved: they are held until a reviewer decides", "server", c.Name, "items", n, "run", c.diffCommand(held...))
	}
	return t, seen, nil
}

// removed notes and logs what a model does not see of the server's definitions, because the
// boundary takes it out of every text.
func (s *Server) removed(seen *surface.Surface) {
	removals := seen.Removals()
	s.mu.Lock()
	s.removals = removals
	s.mu.Unlock()
	if len(removals) == 0 {
		return
	}
	var told []string
	for _, r := range removals[:min(len(removals), maxTold)] {
		told = append(told, fmt.Sprintf("%s %s: %s (%d)", r.Kind, finding.Quote(r.Item), r.Code, r.N))
	}
	s.a.log.Warn("parts of a server's definitions are changed before a model sees them", "server", s.config().Name, "changed", told, "more", len(removals)-len(told))
}

// misshapen logs the entries of lists that no client sees for their form, and lists without an end.
func (s *Server) misshapen(seen *surface.Surface) {
	if looped := seen.Looped(); len(looped) > 0 {
		s.a.log.Warn("a server's list repeats a cursor, or has one that is not a string: the list ends there", "server", s.config().Name, "lists", looped)
	}
	list := seen.LeftOut()
	if len(list) == 0 {
		return
	}
	var told []string
	for _, l := range list[:min(len(list), maxLeftOut)] {
		told = append(told, l.String())
	}
	s.a.log.Warn("entries of a server's lists do not fit the protocol's schema: they are left out", "server", s.config().Name,
		"entries", told, "more", len(list)-len(told), "run", "pellucid check")
}

// Removals are what the boundary takes out of the definitions of the surface that was
// checked last. They are shared and must not be changed.
func (s *Server) Removals() []surface.Removal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removals
}

// late is why a collection was given up.
func late(limit time.Duration) error { return fmt.Errorf("it has not said all within %s", limit) }

// pin reads what is approved.
func (s *Server) pin(ctx context.Context) (*table, error) {
	c := s.config()
	versions, err := s.a.versions(ctx, map[string]*Server{c.Name: s}) // first: a later decision is seen at the next look
	if err != nil {
		return nil, fmt.Errorf("admit: %w", err)
	}
	p, err := s.a.opt.Pins.Get(ctx, c.Pin)
	if err != nil {
		return nil, fmt.Errorf("admit: %w", err)
	}
	return ofPin(&p, versions[c.Pin], c.Settings.rules()), nil
}

// reject logs why a server is rejected, and notes it in the pin for reviewers.
func (s *Server) reject(ctx context.Context, why string) {
	c := s.config()
	s.a.log.Error("server rejected: no client can use it", "server", c.Name, "why", why)
	if s.a.opt.Pins == nil || c.Settings.Mode == policy.Off {
		return
	}
	if err := s.a.opt.Pins.Named(c.Called).Reject(ctx, c.Pin, c.Transport, why); err != nil {
		s.a.log.Warn("pin cannot be written", "server", c.Name, "error", err)
	}
}

// maxTold bounds the lines of log about one rejection.
const maxTold = 5

// maxLeftOut bounds the left-out entries that one log line names.
const maxLeftOut = 32

// withheld says which items no client sees for their hidden text.
func (s *Server) withheld(seen *surface.Surface, o *surface.CheckResult) {
	c := s.config()
	var names []string
	for _, k := range o.Withheld[:min(len(o.Withheld), maxTold)] {
		names = append(names, k.String())
	}
	run := c.diffCommand(o.Withheld...)
	if c.Settings.Mode == policy.Off { // there is no pin to compare with
		run = "pellucid check"
	}
	s.a.log.Warn("items of a server hold hidden text: no client sees them until a reviewer approves them", "server", c.Name,
		"items", len(o.Withheld), "among_them", names, "run", run)
	s.tell(slog.LevelWarn, seen, o)
}

// logUnsettled logs which items the server changed while it was checked for the first time.
func (s *Server) logUnsettled(o *surface.CheckResult) {
	if len(o.Unsettled) == 0 {
		return
	}
	var names []string
	var items []surface.Key
	for _, u := range o.Unsettled {
		items = append(items, u.Key)
	}
	for _, k := range items[:min(len(items), maxTold)] {
		names = append(names, k.String())
	}
	s.a.log.Warn("items of a server changed while it was checked for the first time: they are held until a reviewer approves them, unless pins are off",
		"server", s.config().Name, "items", len(o.Unsettled), "among_them", names, "run", s.config().diffCommand(items...))
}

// tell says where hidden text stands, and what a reviewer has said, escaped.
func (s *Server) tell(level slog.Level, seen *surface.Surface, o *surface.CheckResult) {
	name := s.config().Name
	var said *surface.RejectedError
	if errors.As(o.Why, &said) && said.Said != "" {
		s.a.log.Error("the review model answered", "server", name, "text", said.Shown())
	}
	for i := range o.Inspection.Hits[:min(len(o.Inspection.Hits), maxTold)] {
		h := &o.Inspection.Hits[i]
		it, _ := seen.Item(h.Key)
		args := []any{"server", name, "code", string(h.Code), "kind", h.Key.Kind.String(), "item", finding.Quote(h.Key.Name),
			"digest", it.Digest.String(), "place", h.Pointer, "text", h.Shown()}
		messages := h.Messages()
		for _, m := range messages[:min(len(messages), maxTold)] {
			if m.Message != "" {
				args = append(args, "says", finding.Quote(m.Message))
			}
		}
		s.a.log.Log(s.a.ctx, level, "hidden text in a server's definitions", args...)
	}
}

// put lets t decide from now on, and tells who wants to know if that is a change.
func (s *Server) put(t *table) {
	s.mu.Lock()
	old := s.table.Swap(t)
	s.toleratedVersions = nil
	news := old != nil && !old.same(t)
	var hearers []*func()
	if news {
		hearers = slices.Collect(maps.Keys(s.hearers))
	}
	s.mu.Unlock()
	for _, f := range hearers {
		(*f)()
	}
	if news || old == nil {
		s.a.Tell()
	}
}

// pinned reports whether the store may have something new.
func (s *Server) pinned() bool {
	t := s.table.Load()
	return t != nil && s.config().Settings.Mode != policy.Off
}

// reread takes what the store has, if that is another version than is known.
func (s *Server) reread(ctx context.Context, version int64) {
	t := s.table.Load()
	s.mu.Lock()
	is := s.state
	s.mu.Unlock()
	switch {
	case t == nil || s.config().Settings.Mode == policy.Off || is != admitted || t.version == version:
		return
	case version == 0: // the pin was deleted: the server is checked as a new one
		s.mu.Lock()
		s.state = unchecked
		s.mu.Unlock()
		s.a.work.Go(func() { _ = s.verify(s.a.ctx) })
		return
	}
	now, err := s.pin(ctx)
	if s.a.readable(s.config().Name, err); err != nil {
		return
	}
	if !t.same(now) {
		s.a.log.Info("decisions of reviewers are in force", "server", s.config().Name, "approved", len(now.approved), "held", len(now.held))
	}
	s.put(now)
}

func (s *Server) tools() []string {
	if t := s.table.Load(); t != nil {
		return t.tools()
	}
	return nil
}
