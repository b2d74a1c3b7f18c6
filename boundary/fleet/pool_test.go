// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// as is a session of a principal with one server.
func as(f *Fleet, name, principal string) func(context.Context, wire.Conn) error {
	return func(ctx context.Context, c wire.Conn) error {
		return f.Serve(ctx, name, Client{Conn: c, Principal: principal})
	}
}

// TestStarvation: one principal's idle sessions take every process; another principal's
// session gets one all the same, and so does each of theirs with its next call.
func TestStarvation(t *testing.T) {
	f := fleetOf(t, Options{Children: 4, PerPrincipal: 4}, player("p", "good"), player("q", "good"))
	var hoard []*mcp.ClientSession
	for range 4 {
		s := connect(t, nil, as(f, "p", "hoarder"))
		call(t, s, "pid", "")
		hoard = append(hoard, s)
	}
	for _, server := range []string{"p", "q"} {
		other := connect(t, nil, as(f, server, "other"))
		for range 2 {
			if out, err := tryCall(other, "pid", ""); err != nil || out == "" {
				t.Fatalf("%s: %q, %v", server, out, err)
			}
		}
	}
	for i, s := range hoard {
		if out, err := tryCall(s, "pid", ""); err != nil || out == "" {
			t.Errorf("the hoarder's session %d: %q, %v", i, out, err)
		}
	}
	if n := f.Children(); n > 4 {
		t.Errorf("%d processes", n)
	}
}

// TestOldestRests: of one principal's sessions the one that has been idle longest gives its
// process up, and the others keep theirs, with what they remember.
func TestOldestRests(t *testing.T) {
	f := fleetOf(t, Options{Children: 8, PerPrincipal: 2}, player("p", "good"))
	var sessions []*mcp.ClientSession
	var pids []string
	for range 3 {
		s := connect(t, nil, as(f, "p", "a"))
		pids = append(pids, call(t, s, "pid", ""))
		sessions = append(sessions, s)
	}
	if got := call(t, sessions[1], "pid", ""); got != pids[1] {
		t.Errorf("the second session was given process %s after %s", got, pids[1])
	}
	if got := call(t, sessions[2], "pid", ""); got != pids[2] {
		t.Errorf("the third session was given process %s after %s", got, pids[2])
	}
	if got := call(t, sessions[0], "pid", ""); got == pids[0] {
		t.Error("the first session has kept its process")
	}
}

// TestAllBusy: where every process is at work, a client is told that in constant words.
func TestAllBusy(t *testing.T) {
	f := fleetOf(t, Options{Children: 1}, player("p", "good"))
	busy := connect(t, nil, as(f, "p", "a"))
	idle := func() bool {
		f.pool.mu.Lock()
		defer f.pool.mu.Unlock()
		for at := range f.pool.held {
			_, idle := at.sleeper.idleSince()
			return idle
		}
		return false
	}
	waittest.Until(t, "nothing under way", idle)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = busy.CallTool(ctx, &mcp.CallToolParams{Name: "pid", Arguments: map[string]any{"text": "hang"}})
	}()
	waittest.Until(t, "a call under way", func() bool { return !idle() })
	out, err := script(as(f, "p", "b"), 1, sayInitialize)
	if err != nil || !strings.Contains(out, textFull) || !strings.Contains(out, "7602") {
		t.Errorf("%v: %s", err, out)
	}
	stop()
	<-done
}

// fake is a sleeper of a test.
type fake struct {
	p       *pool
	mu      sync.Mutex
	used    time.Time
	busy    bool
	release func()
	rested  int
}

func (s *fake) idleSince() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, !s.busy && s.release != nil
}

func (s *fake) rest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy || s.release == nil {
		return false
	}
	go s.release()
	s.release, s.rested = nil, s.rested+1
	return true
}

// TestFair: whatever principals ask for, the bounds hold; who is refused is so only if no
// principal with more, nor it itself, has an idle process; and nobody loses one to a
// principal who has as many.
func TestFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		opt := Options{Children: rapid.IntRange(1, 6).Draw(t, "all"), PerServer: rapid.IntRange(1, 6).Draw(t, "server"), PerPrincipal: rapid.IntRange(1, 6).Draw(t, "principal")}
		p := newPool(&opt)
		var all []*fake
		owner := map[*fake][2]string{}
		clock := time.Unix(0, 0)
		count := func(of func([2]string) bool) (n int) {
			for _, s := range all {
				s.mu.Lock()
				if s.release != nil && of(owner[s]) {
					n++
				}
				s.mu.Unlock()
			}
			return n
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			clock = clock.Add(time.Second)
			if len(all) > 0 && rapid.IntRange(0, 3).Draw(t, "what") == 0 {
				s := rapid.SampledFrom(all).Draw(t, "session")
				s.mu.Lock()
				s.busy, s.used = !s.busy, clock
				s.mu.Unlock()
				continue
			}
			who := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "who")
			server := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "server")
			before := map[string]int{}
			for _, name := range []string{"a", "b", "c"} {
				before[name] = count(func(o [2]string) bool { return o[0] == name })
			}
			s := &fake{p: p, used: clock}
			release, err := p.take(context.Background(), server, who, s)
			if err == nil {
				s.release = release
				owner[s] = [2]string{who, server}
				all = append(all, s)
			} else if !errors.Is(err, errFull) {
				t.Fatal(err)
			}
			for _, name := range []string{"a", "b", "c"} {
				after := count(func(o [2]string) bool { return o[0] == name })
				if name != who && after < before[name] && opt.PerServer >= opt.Children && before[name] <= before[who] {
					t.Fatalf("%s lost a process to %s, who had %d to its %d", name, who, before[who], before[name])
				}
				if name != "" && after > opt.PerPrincipal {
					t.Fatalf("%s has %d of %d", name, after, opt.PerPrincipal)
				}
				if err != nil && name == who && opt.PerServer >= opt.Children {
					for _, x := range all {
						if _, idle := x.idleSince(); idle && owner[x][0] == who {
							t.Fatalf("%s is refused beside its own idle session", who)
						}
					}
				}
			}
			if err != nil && opt.PerServer >= opt.Children && before[who] < opt.PerPrincipal {
				for _, x := range all {
					if _, idle := x.idleSince(); idle && before[owner[x][0]] > before[who] {
						t.Fatalf("%s with %d is refused beside %s with %d", who, before[who], owner[x][0], before[owner[x][0]])
					}
				}
			}
			for _, name := range []string{"x", "y"} {
				if n := count(func(o [2]string) bool { return o[1] == name }); n > opt.PerServer {
					t.Fatalf("server %s has %d of %d", name, n, opt.PerServer)
				}
			}
			if n := p.len(); n > opt.Children {
				t.Fatalf("%d of %d", n, opt.Children)
			}
		}
	})
}

// TestPoolRaces: sessions of many principals that come, work, rest and go at the same time.
func TestPoolRaces(t *testing.T) {
	f := fleetOf(t, Options{Children: 3, PerPrincipal: 2}, player("p", "good"))
	var work sync.WaitGroup
	for i := range 6 {
		work.Go(func() {
			s, err := tryConnect(t, nil, as(f, "p", fmt.Sprint("principal", i%3)))
			for err != nil && strings.Contains(err.Error(), textFull) { // every process is at work
				s, err = tryConnect(t, nil, as(f, "p", fmt.Sprint("principal", i%3)))
			}
			if err != nil {
				t.Errorf("session %d: %v", i, err)
				return
			}
			for range 4 {
				if _, err := tryCall(s, "pid", ""); err != nil && !strings.Contains(err.Error(), textFull) {
					t.Errorf("session %d: %v", i, err)
				}
			}
		})
	}
	work.Wait()
	if n := f.Children(); n > 3 {
		t.Errorf("%d processes", n)
	}
}

// TestNoRoomAtOnce: a request that comes while a session finds no room for its process is
// answered, whichever of the two is first.
func TestNoRoomAtOnce(t *testing.T) {
	f := fleetOf(t, Options{Children: 1}, player("p", "good"))
	release, err := f.pool.take(t.Context(), "other", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for range 2000 {
		l := read(newLink(f.ctx, f.get("p"), ""))
		for id := range int64(4) {
			request(t, l, id, "ping", `{}`)
			if m, err := l.Read(t.Context()); err != nil || !m.Local || !strings.Contains(string(m.Error.Raw()), textFull) {
				t.Fatalf("%+v, %v", m, err)
			}
		}
		l.Close()
	}
}
