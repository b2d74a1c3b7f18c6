// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Peer is another aggregator whose feed is taken over.
type Peer struct {
	URL   string        // of its feed: https://host/ground/feed; http for a loopback host only
	Token string        // bearer token, or ""
	Every time.Duration // how often to ask once all is taken over; 0: 30 s
	// Rate is the greatest number of entries taken over per second; 0: no bound.
	Rate int
	// Client is used without redirects and cookies; nil: one like http.DefaultClient.
	// Its Timeout, if any, also bounds how long news is waited for.
	Client *http.Client
}

// A PeerState says how far a peer's feed has been taken over, for freshness.
type PeerState struct {
	Contact time.Time // the last time that the end of the feed was reached; zero: never
	Failing bool      // the last attempt failed
	Taken   int64     // entries accepted since start
	Refused int64     // entries refused since start, also those that were skipped
	// Skipped counts the entries that were refused though they might have been
	// accepted later: see Follow.
	Skipped int64
}

// The pace of a follower.
const (
	peerEvery    = 30 * time.Second
	peerSoon     = time.Second      // after news, where there may be more at once
	peerFirst    = time.Second      // of the pauses after failures, which double up to …
	peerLongest  = 4 * time.Minute  // and a quarter more at the most
	peerPatience = 15 * time.Minute // the longest that a peer may ask for (Retry-After)

	// entryAttempts is how often an entry is tried that may be accepted later, with
	// doubling pauses from entryFirst between: seven to nine seconds in all.
	entryAttempts = 4
	entryFirst    = time.Second
)

// Follow takes over the feed of p until ctx ends, and returns its error. Each
// entry is checked as if its author had sent it: a peer is not trusted. Another
// error is one of p itself.
//
// How far it has come is kept in the store, once what precedes it is: after a
// restart it goes on from there. While the peer or the store fails it tries again
// with growing pauses. An entry that is refused for now only, because its key is
// unavailable or its target unknown, is tried four times and then skipped, so
// that it does not hold up what comes behind; its hash is logged.
//
// spec: cascade/7
func (a *Adapter) Follow(ctx context.Context, p Peer, log *slog.Logger) error {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	source, err := newPeerFeed(p)
	if err != nil {
		return fmt.Errorf("ground: follow: %w", err)
	}
	defer source.close()
	f := &follower{
		a: a, feed: source, name: source.url.String(), every: cmp.Or(max(p.Every, 0), peerEvery), rate: p.Rate,
	}
	f.log = log.With("peer", f.name)
	if !a.following.add(f) {
		return errors.New("ground: follow: this peer is followed already")
	}
	defer a.following.remove(f)
	return f.run(ctx)
}

// FollowAll takes over the feeds of peers, until ctx ends or the function that it returns
// is called, which waits for them to end.
func (a *Adapter) FollowAll(ctx context.Context, peers []Peer, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for i := range peers {
		wg.Go(func() {
			if err := a.Follow(ctx, peers[i], log); ctx.Err() == nil {
				log.Error("a peer is no longer followed", "peer", i+1, "error", err)
			}
		})
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

// following holds those who follow, by the URL of the peer.
type following struct {
	mu        sync.Mutex
	followers map[string]*follower
}

func (g *following) add(f *follower) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.followers[f.name] != nil {
		return false
	}
	if g.followers == nil {
		g.followers = map[string]*follower{}
	}
	g.followers[f.name] = f
	return true
}

func (g *following) remove(f *follower) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.followers, f.name)
}

// peers returns the states of the peers that are followed, in the order of their
// URLs.
func (a *Adapter) peers() []PeerState {
	a.following.mu.Lock()
	defer a.following.mu.Unlock()
	var out []PeerState
	for _, name := range slices.Sorted(maps.Keys(a.following.followers)) {
		f := a.following.followers[name]
		f.mu.Lock()
		out = append(out, f.state)
		f.mu.Unlock()
	}
	return out
}

// A follower takes over one feed.
type follower struct {
	a     *Adapter
	feed  *peerFeed
	name  string // in the store, and as a submitter
	every time.Duration
	rate  int
	log   *slog.Logger
	wrong int // entries of the page whose hash is not the one that the peer says

	mu    sync.Mutex
	state PeerState
}

func (f *follower) note(change func(*PeerState)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.state)
}

// run asks again and again.
func (f *follower) run(ctx context.Context) error {
	pause := backoff.Waits{First: peerFirst, Most: peerLongest}
	for {
		began := time.Now()
		next, err := f.step(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			pause.Reset()
			next -= time.Since(began)
			f.note(func(s *PeerState) { s.Failing = false })
		} else {
			// The cause may hold the peer's words.
			f.log.Warn("the feed of the peer could not be read: the next attempt follows", "cause", finding.Quote(err.Error()))
			f.note(func(s *PeerState) { s.Failing = true })
			next = pause.Next()
			var refused *statusError
			if errors.As(err, &refused) {
				next = max(next, min(refused.after, peerPatience))
			}
		}
		if err := backoff.Sleep(ctx, next); err != nil {
			return err
		}
	}
}

// step asks once, from where the store says that we are, and takes over what
// comes. It returns how long after its beginning to ask again.
func (f *follower) step(ctx context.Context) (next time.Duration, err error) {
	position, err := f.a.o.Store.PeerCursor(ctx, f.name)
	if err != nil {
		return 0, err
	}
	after, ok := parseCursor(position)
	if !ok && position != "" {
		f.log.Warn("the stored cursor of the peer cannot be read: its feed is read from the beginning")
	}
	page, torn := f.feed.fetch(ctx, after, f.every)
	if n := len(page.entries); n > 0 {
		f.wrong = 0
		if err := f.take(ctx, page.entries); err != nil {
			return 0, err
		}
		if f.wrong > 0 {
			f.log.Warn("entries of the peer do not have the hashes that it names", "count", f.wrong)
		}
		if err := f.a.o.Store.SetPeerCursor(ctx, f.name, page.entries[n-1].position); err != nil {
			return 0, err
		}
		if f.rate > 0 {
			next = time.Duration(n) * time.Second / time.Duration(f.rate)
		}
	}
	switch {
	case torn != nil && len(page.entries) == 0:
		return 0, torn
	case torn != nil: // a step forward, after all
		f.log.Info("the answer of the peer ended early: the rest is asked for again", "cause", finding.Quote(torn.Error()))
		return max(next, peerFirst), nil
	case !page.end:
		return next, nil
	case len(page.entries) > 0:
		next = max(next, min(peerSoon, f.every))
	default:
		next = f.every
	}
	f.note(func(s *PeerState) { s.Contact = f.a.o.Now() })
	return next, nil
}

// take hands in the entries until none is left that may be accepted later, or has
// been tried often enough. The error is the context's, or that of the store, for
// whose sake no entry is skipped.
func (f *follower) take(ctx context.Context, entries []feedEntry) error {
	pause := backoff.Waits{First: entryFirst, Most: peerLongest}
	for attempt := 1; ; attempt++ {
		var again []feedEntry
		if err := f.handIn(ctx, entries, &again); err != nil || len(again) == 0 {
			return err
		}
		if attempt == entryAttempts {
			for i := range again {
				f.log.Warn("entry of the peer skipped", "hash", again[i].hash.String(), "code", again[i].code)
			}
			f.note(func(s *PeerState) {
				s.Skipped += int64(len(again))
				s.Refused += int64(len(again))
			})
			return nil
		}
		entries = again
		if err := backoff.Sleep(ctx, pause.Next()); err != nil {
			return err
		}
	}
}

// handIn hands in the entries, in their order, and appends to again those that
// may be accepted later.
func (f *follower) handIn(ctx context.Context, entries []feedEntry, again *[]feedEntry) error {
	for len(entries) > 0 {
		n, receipts := 1, []Receipt(nil)
		if entries[0].event {
			r, _, err := f.a.IngestEvent(ctx, f.name, entries[0].original)
			if err != nil {
				return err
			}
			receipts = []Receipt{r}
		} else {
			for n < len(entries) && !entries[n].event {
				n++
			}
			bodies := make([][]byte, n)
			for i := range bodies {
				bodies[i] = entries[i].original
			}
			var err error
			if receipts, err = f.a.Ingest(ctx, f.name, bodies); err != nil {
				return err
			}
		}
		for i, r := range receipts {
			if err := f.settle(entries[i], r, again); err != nil {
				return err
			}
		}
		entries = entries[n:]
	}
	return nil
}

// settle counts what became of an entry. What was stored already, from another
// peer perhaps, counts for nothing.
func (f *follower) settle(e feedEntry, r Receipt, again *[]feedEntry) error {
	switch {
	case r.Code == CodeBusy, r.Code == CodeFull, r.Code == CodeUnavailable:
		return errors.New("ground: " + r.Code)
	case r.Retry:
		e.code = r.Code
		*again = append(*again, e)
		return nil
	}
	if r.Hash != "" && r.Hash != e.hash.String() {
		f.wrong++ // it is stored under its own
	}
	f.note(func(s *PeerState) {
		switch {
		case r.Accepted:
			s.Taken++
		case r.Code != CodeDuplicate:
			s.Refused++
		}
	})
	return nil
}
