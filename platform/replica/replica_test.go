// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// table is a Store in memory, which can be away or slow for one replica.
type table struct {
	mu   sync.Mutex
	rows map[string]Row
}

func (t *table) list() []Row {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sorted()
}

func (t *table) sorted() []Row {
	out := slices.Collect(maps.Values(t.rows))
	slices.SortFunc(out, func(a, b Row) int { return int(a.Beat - b.Beat) })
	return out
}

// connection is one replica's way to the table.
type connection struct {
	*table
	mu   sync.Mutex
	away bool
	slow time.Duration // between the commit and the answer
}

func (c *connection) fault(away bool, slow time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away, c.slow = away, slow
}

func (c *connection) BeatReplica(ctx context.Context, row Row, first bool) ([]Row, error) {
	c.mu.Lock()
	away, slow := c.away, c.slow
	c.mu.Unlock()
	if away {
		return nil, errors.New("away")
	}
	c.table.mu.Lock()
	if _, there := c.rows[row.ID]; !there && row.Beat != 1 {
		c.table.mu.Unlock()
		return nil, ErrRemoved
	}
	for id, r := range c.rows {
		if first && r.Address == row.Address && id != row.ID {
			delete(c.rows, id)
		}
	}
	c.rows[row.ID] = row
	out := c.sorted()
	c.table.mu.Unlock()
	time.Sleep(slow)
	return out, nil
}

func (c *connection) RemoveReplica(_ context.Context, id string, beat int64) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return false, errors.New("away")
	}
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	r, there := c.rows[id]
	if there = there && (beat == Any || r.Beat == beat); there {
		delete(c.rows, id)
	}
	return there, nil
}

// joined is a running replica.
type joined struct {
	*Member
	*connection
}

// bubble is a clock that follows that of a bubble of synctest.
func bubble() time.Duration { return time.Since(time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC)) }

func join(t *testing.T, shared *table, address string, o Options) joined {
	t.Helper()
	c := &connection{table: shared}
	o.Store, o.Address = c, address
	if o.clock == nil {
		o.clock = bubble
	}
	m, err := Join(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	go m.Run(t.Context())
	return joined{m, c}
}

// TestLease: a replica that cannot write its beat stops to serve before the others take it for gone, and
// goes on under another id.
func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &table{rows: map[string]Row{}}
		changes := 0
		var mu sync.Mutex
		a := join(t, shared, "h:1", Options{Changed: func() { mu.Lock(); defer mu.Unlock(); changes++ }})
		b := join(t, shared, "h:2", Options{})
		time.Sleep(1500 * time.Millisecond)
		first := a.ID()
		if !a.Holds(first) || !b.Live(first) || !a.Live(b.ID()) || a.Holds(b.ID()) {
			t.Fatal("two replicas do not see each other")
		}
		a.connection.fault(true, 0)
		var stopped, taken time.Time
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if stopped.IsZero() && !a.Holds(first) {
				stopped = time.Now()
			}
			if taken.IsZero() && !b.Live(first) {
				taken = time.Now()
			}
		}
		if stopped.IsZero() || taken.IsZero() || taken.Sub(stopped) < time.Second {
			t.Errorf("it stopped at %v, and was taken for gone at %v", stopped, taken)
		}
		wait, stop := context.WithTimeout(t.Context(), time.Second)
		if _, err := a.Lease(wait); !errors.Is(err, ErrLapsed) {
			t.Errorf("a lease without a database: %v", err)
		}
		stop()
		a.connection.fault(false, 0)
		id, err := a.Lease(t.Context())
		if err != nil || id == first || a.Holds(first) || !a.Holds(id) {
			t.Errorf("after the lapse: %s (%s before), %v", id, first, err)
		}
		time.Sleep(2 * time.Second)
		if !b.Live(id) || b.Live(first) || len(shared.list()) != 2 {
			t.Errorf("the other replica sees %v", b.Others())
		}
		mu.Lock()
		defer mu.Unlock()
		if changes < 2 {
			t.Errorf("%d changes were told", changes)
		}
	})
}

// TestLateAnswer: a beat that is answered after the lease has ended does not extend it.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &table{rows: map[string]Row{}}
		a := join(t, shared, "h:1", Options{})
		first := a.ID()
		time.Sleep(100 * time.Millisecond)
		a.connection.fault(false, 5*time.Second)
		time.Sleep(4500 * time.Millisecond)
		if a.Holds(first) {
			t.Error("it holds a lease that no answer has extended")
		}
		time.Sleep(1600 * time.Millisecond) // the answer has come
		if a.Holds(first) {
			t.Error("a late answer has brought the lease back")
		}
		a.connection.fault(false, 0)
		if id, err := a.Lease(t.Context()); err != nil || id == first {
			t.Errorf("%s, %v", id, err)
		}
	})
}

// TestLeave: a replica that leaves is gone at the next look, a process that takes an address over removes
// the row of the one before, and one that has just begun is found.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &table{rows: map[string]Row{}}
		a := join(t, shared, "h:1", Options{})
		ctx, stop := context.WithCancel(t.Context())
		c := &connection{table: shared}
		killed, err := Join(ctx, Options{Store: c, Address: "h:2", clock: bubble})
		if err != nil {
			t.Fatal(err)
		}
		if _, live, err := a.Find(t.Context(), killed.ID()); !live || err != nil {
			t.Errorf("a replica that has just begun is not found: %v", err)
		}
		stop()
		again := join(t, shared, "h:2", Options{})
		if _, live, err := a.Find(t.Context(), again.ID()); !live || err != nil || a.Live(killed.ID()) {
			t.Errorf("a process has the address of another: %v, %v", a.Others(), err)
		}
		if err := again.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, live, _ := a.Find(t.Context(), "unknown"); live || len(shared.list()) != 1 {
			t.Errorf("left: %v", shared.list())
		}
	})
}

// clock is a clock of leases that a test can stop and put forward; it may be used in a bubble of synctest.
type clock struct {
	mu      sync.Mutex
	began   time.Time
	ahead   time.Duration
	stopped time.Duration // the reading at which it stands; 0: it runs
}

func (c *clock) read() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped != 0 {
		return c.stopped
	}
	return time.Since(c.began) + c.ahead
}

func (c *clock) set(change func(*clock)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

// TestClocks: what the clocks of other replicas say has no effect, and neither has it when a machine booted.
func TestClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &table{rows: map[string]Row{}}
		fast, slow := &clock{began: time.Now(), ahead: 5 * time.Minute}, &clock{began: time.Now().Add(-1000 * time.Hour)}
		a, b := join(t, shared, "h:1", Options{clock: fast.read}), join(t, shared, "h:2", Options{clock: slow.read})
		time.Sleep(1500 * time.Millisecond)
		first, second := a.ID(), b.ID()
		for range 30 {
			time.Sleep(time.Second)
			if len(a.Others()) != 1 || !a.Holds(first) || !b.Holds(second) || len(b.Others()) != 1 {
				t.Fatal("a clock that is wrong ends a lease")
			}
		}
	})
}

// suspended is a member whose test makes its beats, as the process of a machine that stops now and then.
func suspended(t *testing.T, shared *table, c *clock) *Member {
	t.Helper()
	m, err := Join(t.Context(), Options{Store: &connection{table: shared}, Address: "h:1", clock: c.read})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestSuspended: a process whose machine was suspended holds no lease when it goes on, before it has asked the
// database: its clock has gone on. One whose machine was paused with its clock learns it at its first beat.
func TestSuspended(t *testing.T) {
	for name, tt := range map[string]struct {
		away   time.Duration
		paused bool // the clock has stood still
		holds  bool // when it goes on
		keeps  bool // its id, with its next beat
	}{
		"for 2 s":                    {away: 2 * time.Second, holds: true, keeps: true},
		"for 5 s":                    {away: 5 * time.Second},
		"for 10 s":                   {away: 10 * time.Second},
		"for an hour":                {away: time.Hour},
		"with its clock, for 2 s":    {away: 2 * time.Second, paused: true, holds: true, keeps: true},
		"with its clock, for 5 s":    {away: 5 * time.Second, paused: true, holds: true, keeps: true}, // no other one has it for gone
		"with its clock, for 10 s":   {away: 10 * time.Second, paused: true, holds: true},
		"with its clock, for a week": {away: 7 * 24 * time.Hour, paused: true, holds: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared, c := &table{rows: map[string]Row{}}, &clock{began: time.Now()}
				m := suspended(t, shared, c)
				other := join(t, shared, "h:2", Options{})
				time.Sleep(1100 * time.Millisecond)
				if err := m.beat(t.Context()); err != nil || !other.Live(m.ID()) {
					t.Fatal("two replicas do not see each other", err)
				}
				first := m.ID()
				if tt.paused {
					c.set(func(c *clock) { c.stopped = time.Since(c.began) })
				}
				time.Sleep(tt.away)
				if c.set(func(c *clock) { c.stopped, c.ahead = 0, map[bool]time.Duration{true: -tt.away}[tt.paused] }); m.Holds(first) != tt.holds {
					t.Errorf("holds its lease: %v", !tt.holds)
				}
				taken := !other.Live(first)
				if taken != (tt.away > 7*time.Second) {
					t.Errorf("taken for gone: %v", taken)
				}
				if err := m.beat(t.Context()); err != nil && m.beat(t.Context()) != nil || m.Holds(first) != tt.keeps || !m.Holds(m.ID()) {
					t.Errorf("keeps its id: %v; %v", !tt.keeps, err)
				}
				time.Sleep(1100 * time.Millisecond)
				if live := other.Others(); len(live) != 1 || live[0].ID != m.ID() {
					t.Errorf("the other replica sees %v", live)
				}
			})
		})
	}
}

// TestSinceBoot: the clock of leases goes on as long as the machine is up, suspended or not.
func TestSinceBoot(t *testing.T) {
	at, before := time.Now(), sinceBoot()
	waittest.Until(t, "the clock goes on", func() bool { return sinceBoot() > before })
	if went, want := sinceBoot()-before, time.Since(at); went < 0 || went > want+time.Second || went < want-time.Second {
		t.Errorf("%v in %v", went, want)
	}
	up, err := os.ReadFile("/proc/uptime") // counts the time in which the machine was suspended
	if err != nil {
		t.Skip("this system does not say how long it is up")
	}
	var seconds float64
	if _, err := fmt.Sscan(string(up), &seconds); err != nil {
		t.Fatal(err)
	}
	if off := sinceBoot() - time.Duration(seconds*float64(time.Second)); off.Abs() > 5*time.Second {
		t.Errorf("it differs from /proc/uptime by %v", off)
	}
}

// TestExchange: what the principals of one replica spend arrives at the others.
func TestExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &table{rows: map[string]Row{}}
		var mu sync.Mutex
		got := map[string]bool{}
		a := join(t, shared, "h:1", Options{Exchange: func(map[string][]byte) []byte { return []byte("spent") }})
		join(t, shared, "h:2", Options{Exchange: func(spent map[string][]byte) []byte {
			mu.Lock()
			defer mu.Unlock()
			for id, s := range spent {
				got[id+" "+string(s)] = true
			}
			return nil
		}})
		time.Sleep(3 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if !got[a.ID()+" spent"] {
			t.Errorf("got %v", got)
		}
	})
}

func TestValidID(t *testing.T) {
	for s, want := range map[string]bool{newID(): true, "": false, "0123456789abcdeF": false, "0123456789abcde": false, "0123456789abcdeg": false} {
		if ValidID(s) != want {
			t.Errorf("ValidID(%q)", s)
		}
	}
}
