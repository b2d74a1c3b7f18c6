// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// memory is a Store of one process; the tests of package storage hold the real ones to the contract.
type memory struct {
	mu   sync.Mutex
	rows map[string]Record
	away error
}

func (m *memory) Session(_ context.Context, id string) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.rows[id]
	if m.away == nil && !ok {
		return r, ErrNotFound
	}
	return r, m.away
}

func (m *memory) SessionOwner(ctx context.Context, id string) (Owner, error) {
	r, err := m.Session(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound):
		err = nil
	case err == nil && r.Ended:
		err = ErrEnded
	}
	return Owner{Holder: r.Owner, Fence: r.Fence}, err
}

func (m *memory) ReleaseSession(context.Context, string, string, time.Time) error { return nil }

func (m *memory) ClaimSession(_ context.Context, r Record, owner string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows[r.ID].Fence != r.Fence {
		return false, nil
	}
	r.Owner, r.Fence = owner, r.Fence+1
	m.rows[r.ID] = r
	return true, nil
}

func (m *memory) KeepSession(_ context.Context, r Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away != nil {
		return m.away
	}
	m.rows[r.ID] = r
	return nil
}

func (m *memory) EndSession(_ context.Context, r Record) error {
	r.Ended = true
	return m.KeepSession(context.Background(), r)
}

func (m *memory) SweepSessions(context.Context, time.Time, int) error { return m.away }

func book(t *testing.T, m *memory, fills ...byte) *Book {
	b := NewBook(testRing(t, fills...), m, BookOptions{Principal: func(owner string) string { p, _, _ := strings.Cut(owner, " "); return p }})
	b.tokens = testTokens(t, fills...)
	return b
}

// TestBook: what a session needs to come back is found by its id, under every key that is still in the ring,
// by its owner and at its server only.
func TestBook(t *testing.T) {
	ctx := t.Context()
	short := []byte(`{"protocolVersion":"2025-11-25","clientInfo":{"name":"a"}}`)
	long := []byte(`{"protocolVersion":"2025-11-25","capabilities":{"x":"` + strings.Repeat("y", 4000) + `"}}`)
	for name, params := range map[string][]byte{"in the id": short, "in the store": long} {
		t.Run(name, func(t *testing.T) {
			m := &memory{rows: map[string]Record{}}
			r := book(t, m, 1).Server("files")
			o := wire.Opening{Principal: "ann tools:call", Params: params, Version: "2025-11-25"}
			id, err := r.Name(ctx, o)
			if err != nil || len(id) > MaxToken || len(m.rows) != map[bool]int{true: 1}[len(params) > 1000] {
				t.Fatalf("%d bytes, %d rows, %v", len(id), len(m.rows), err)
			}
			is := func(state wire.SessionState) {
				t.Helper()
				for _, keys := range [][]byte{{1}, {2, 1}} {
					got, err := book(t, m, keys...).Server("files").Find(ctx, id, o.Principal)
					if want := (wire.Kept{Opening: o, SessionState: state}); err != nil || !reflect.DeepEqual(got, want) {
						t.Errorf("%.200v, %v", got, err)
					}
				}
			}
			is(wire.SessionState{})
			state := wire.SessionState{Level: "info", Subscriptions: []string{"a:1", "a:\u00e9"}}
			if err := r.Keep(ctx, id, o.Principal, state); err != nil {
				t.Fatal(err)
			}
			is(state)
			for _, row := range m.rows {
				if row.Principal != PrincipalDigest("ann") || strings.Contains(string(row.State), "a:1") || row.Server != "files" {
					t.Errorf("%+v", row)
				}
			}
			for why, find := range map[string]func() (wire.Kept, error){
				"another principal": func() (wire.Kept, error) { return r.Find(ctx, id, "bob") },
				"fewer scopes":      func() (wire.Kept, error) { return r.Find(ctx, id, "ann") },
				"another server":    func() (wire.Kept, error) { return book(t, m, 1).Server("mail").Find(ctx, id, o.Principal) },
				"all servers":       func() (wire.Kept, error) { return book(t, m, 1).Server("").Find(ctx, id, o.Principal) },
				"another key":       func() (wire.Kept, error) { return book(t, m, 2).Server("files").Find(ctx, id, o.Principal) },
				"forged":            func() (wire.Kept, error) { return r.Find(ctx, id[:40]+id[44:], o.Principal) },
				"100 KB":            func() (wire.Kept, error) { return r.Find(ctx, strings.Repeat("A", 100<<10), o.Principal) },
			} {
				if _, err := find(); !errors.Is(err, wire.ErrNoSession) {
					t.Errorf("%s: %v", why, err)
				}
			}
			for why, change := range map[string]error{
				"keep": r.Keep(ctx, id, "bob", state), "end": r.End(ctx, id, "bob"),
			} {
				if !errors.Is(change, wire.ErrNoSession) {
					t.Errorf("%s by another: %v", why, change)
				}
			}
			m.away = errors.New("no store")
			if _, err := r.Find(ctx, id, o.Principal); err == nil || errors.Is(err, wire.ErrNoSession) {
				t.Errorf("the store is away: %v", err)
			}
			m.away = nil
			if err := r.End(ctx, id, o.Principal); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Find(ctx, id, o.Principal); !errors.Is(err, wire.ErrNoSession) {
				t.Errorf("after its end: %v", err)
			}
		})
	}
}

// TestBookFence: a process that has lost a session to another one does not change what is kept of it.
func TestBookFence(t *testing.T) {
	m := &memory{rows: map[string]Record{}}
	r := book(t, m, 1).Server("files")
	id, err := r.Name(t.Context(), wire.Opening{Params: []byte(`{}`), Version: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := book(t, m, 1).Open(id)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := m.ClaimSession(t.Context(), Record{ID: s.ID()}, "host-2"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if err := r.Keep(t.Context(), id, "", wire.SessionState{Level: "info"}); !errors.Is(err, ErrFence) {
		t.Errorf("%v", err)
	}
}

// TestBookClocks: processes whose clocks differ by five minutes bring each other's sessions back, and keep what has
// changed of them; a session ends by the clock of the process that is asked.
func TestBookClocks(t *testing.T) {
	const skew, life = 5 * time.Minute, time.Hour
	at := time.Now()
	for name, off := range map[string][2]time.Duration{"the first is fast": {skew, -skew}, "the first is slow": {-skew, skew}, "both agree": {}} {
		t.Run(name, func(t *testing.T) {
			m := &memory{rows: map[string]Record{}}
			var now [2]time.Time
			var r [2]wire.Registry
			for i := range r {
				b := book(t, m, 1)
				b.tokens.life, b.tokens.now = life, func() time.Time { return now[i] }
				now[i], r[i] = at.Add(off[i]), b.Server("files")
			}
			o := wire.Opening{Principal: "ann tools:call", Params: []byte(`{"a":1}`), Version: "2025-11-25"}
			id, err := r[0].Name(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 4 {
				state := wire.SessionState{Level: "info", Subscriptions: []string{strings.Repeat("u", i+1)}}
				if err := r[i%2].Keep(t.Context(), id, o.Principal, state); err != nil {
					t.Fatal(err)
				}
				if got, err := r[1-i%2].Find(t.Context(), id, o.Principal); err != nil || !reflect.DeepEqual(got.SessionState, state) {
					t.Errorf("%+v, %v", got, err)
				}
			}
			for i := range r {
				now[i] = at.Add(off[0] + life - time.Minute)
				if _, err := r[i].Find(t.Context(), id, o.Principal); err != nil {
					t.Errorf("%d: a minute before its end: %v", i, err)
				}
				now[i] = at.Add(off[0] + life + time.Second)
				if _, err := r[i].Find(t.Context(), id, o.Principal); !errors.Is(err, wire.ErrNoSession) {
					t.Errorf("%d: after its end: %v", i, err)
				}
			}
		})
	}
}
