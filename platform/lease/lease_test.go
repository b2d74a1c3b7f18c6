// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// table is a database in memory.
type table struct {
	mu   sync.Mutex
	rows map[string]Row
}

// connection is one process's way to the table, which can be away or slow.
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

// use calls f while no other connection uses the table.
func (c *connection) use(f func() error) error {
	c.mu.Lock()
	away, slow := c.away, c.slow
	c.mu.Unlock()
	if away {
		return errors.New("away")
	}
	c.table.mu.Lock()
	err := f()
	c.table.mu.Unlock()
	time.Sleep(slow)
	return err
}

func (c *connection) Leases(_ context.Context, prefix string) (out []Row, err error) {
	err = c.use(func() error {
		for _, name := range slices.Sorted(maps.Keys(c.rows)) {
			if strings.HasPrefix(name, prefix) {
				out = append(out, c.rows[name])
			}
		}
		return nil
	})
	return out, err
}

func (c *connection) ClaimLease(_ context.Context, seen Row, holder, address string) (next Row, err error) {
	err = c.use(func() error {
		if now := c.rows[seen.Name]; now.Holder != seen.Holder || now.Fence != seen.Fence || now.Beat != seen.Beat {
			return ErrLost
		}
		next = Row{seen.Name, holder, seen.Fence + 1, seen.Beat + 1, address}
		c.rows[seen.Name] = next
		return nil
	})
	return next, err
}

func (c *connection) BeatLease(_ context.Context, held Row) error {
	return c.use(func() error {
		now := c.rows[held.Name]
		if now.Holder != held.Holder {
			return ErrLost
		}
		now.Beat++
		c.rows[held.Name] = now
		return nil
	})
}

func (c *connection) FreeLease(_ context.Context, seen Row, still bool) error {
	return c.use(func() error {
		now := c.rows[seen.Name]
		if now.Holder != seen.Holder || still && now.Beat != seen.Beat {
			return ErrLost
		}
		if now.Holder = ""; now.Address == "" {
			c.rows[seen.Name] = now
		} else {
			delete(c.rows, seen.Name)
		}
		return nil
	})
}

// bubble is a clock that follows that of a bubble of synctest.
func bubble() time.Duration { return time.Since(time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC)) }

// process is one that wants a lease.
type process struct {
	*Lease
	*connection
	lost int
}

// replica starts a process whose lease others observe.
func replica(t *testing.T, shared *table, name, address string, clock func() time.Duration) *process {
	t.Helper()
	p := &process{connection: &connection{table: shared}}
	if clock == nil {
		clock = bubble
	}
	p.Lease = New(Options{Store: p.connection, Kind: "replica/", Name: name, Address: address, clock: clock, Lost: func() { p.lost++ }})
	if err := p.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

func started(t *testing.T, shared *table, name, address string, clock func() time.Duration) *process {
	t.Helper()
	p := replica(t, shared, name, address, clock)
	go p.Run(t.Context())
	return p
}

// sees reports whether p knows a lease of a holder.
func (p *process) sees(holder string) bool {
	return slices.ContainsFunc(p.Others(), func(r Row) bool { return r.Holder == holder })
}

// TestLapse: a process that cannot raise its beat stops before the others take it for gone, and goes on under
// another name.
func TestLapse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &table{rows: map[string]Row{}}
		a, b := started(t, shared, "r1", "h:1", nil), started(t, shared, "r2", "h:2", nil)
		time.Sleep(1500 * time.Millisecond)
		first := a.Holder()
		if !a.Held() || !b.sees(first) || !a.sees(b.Holder()) {
			t.Fatal("two replicas do not see each other")
		}
		a.fault(true, 0)
		var stopped, taken time.Time
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if stopped.IsZero() && !a.Held() {
				stopped = time.Now()
			}
			if taken.IsZero() && !b.sees(first) {
				taken = time.Now()
			}
		}
		if stopped.IsZero() || taken.IsZero() || taken.Sub(stopped) < time.Second {
			t.Errorf("it stopped at %v, and was taken for gone at %v", stopped, taken)
		}
		wait, stop := context.WithTimeout(t.Context(), time.Second)
		if _, err := a.Await(wait); !errors.Is(err, ErrLapsed) {
			t.Errorf("a lease without a database: %v", err)
		}
		stop()
		a.fault(false, 0)
		holder, err := a.Await(t.Context())
		if err != nil || holder == first || a.lost != 1 {
			t.Errorf("after the lapse: %s (%s before), lost %d times, %v", holder, first, a.lost, err)
		}
		time.Sleep(2 * time.Second)
		if !b.sees(holder) || b.sees(first) || b.lost != 0 {
			t.Errorf("the other replica sees %v", b.Others())
		}
	})
}

// TestDatabaseAway: a database that no process can reach for a while costs no process its lease.
func TestDatabaseAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &table{rows: map[string]Row{}}
		all := []*process{started(t, shared, "r1", "h:1", nil), started(t, shared, "r2", "h:2", nil)}
		time.Sleep(1500 * time.Millisecond)
		holders := []string{all[0].Holder(), all[1].Holder()}
		for _, p := range all {
			p.fault(true, 0)
		}
		time.Sleep(30 * time.Second)
		if all[0].Held() || all[1].Held() {
			t.Error("a lease holds without a database")
		}
		all[0].fault(false, 0)
		time.Sleep(4 * time.Second) // a process may find the database later than another
		all[1].fault(false, 0)
		time.Sleep(2 * time.Second)
		for i, p := range all {
			if !p.Held() || p.Holder() != holders[i] || p.lost != 0 || !p.sees(holders[1-i]) {
				t.Errorf("process %d: held %v, lost %d times, sees %v", i, p.Held(), p.lost, p.Others())
			}
		}
	})
}

// TestLateAnswer: a beat that is answered after the lease has ended does not extend it.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := started(t, &table{rows: map[string]Row{}}, "r1", "h:1", nil)
		time.Sleep(100 * time.Millisecond)
		a.fault(false, 5*time.Second)
		time.Sleep(4500 * time.Millisecond)
		if a.Held() {
			t.Error("it holds a lease that no answer has extended")
		}
		time.Sleep(6 * time.Second) // the answers have come
		if a.Held() {
			t.Error("a late answer has brought the lease back")
		}
		a.fault(false, 0)
		if _, err := a.Await(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestJoin: a process takes over the lease of one that was killed, at once where it has its address, and otherwise when
// the beat has stopped; it does not take that of one that runs. A lease that was released is free.
func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &table{rows: map[string]Row{}}
		began := time.Now()
		killed := replica(t, shared, "r1", "h:1", nil)
		again := replica(t, shared, "r1", "h:1", nil)
		if time.Since(began) > time.Second || again.Holder() == killed.Holder() {
			t.Errorf("at the same address after %v", time.Since(began))
		}
		moved := started(t, shared, "r1", "h:2", nil)
		if took := time.Since(began); took < 6*time.Second || took > 8*time.Second {
			t.Errorf("at another address after %v", took)
		}
		if err := again.Look(t.Context()); err != nil || again.Held() || again.lost != 1 {
			t.Errorf("the one before: held %v, lost %d times, %v", again.Held(), again.lost, err)
		}
		second := New(Options{Store: moved.connection, Kind: "replica/", Name: "r1", Address: "h:3", clock: bubble})
		wait, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		if err := second.Join(wait); !errors.Is(err, ErrTaken) || moved.lost != 0 {
			t.Errorf("the name of a process that runs: %v", err)
		}
		other := replica(t, shared, "r2", "h:4", nil)
		if row, err := moved.Find(t.Context(), "r2"); err != nil || row.Holder != other.Holder() || row.Address != "h:4" {
			t.Errorf("found %+v, %v", row, err)
		}
		if err := other.Release(t.Context()); err != nil || other.Held() {
			t.Fatal(err)
		}
		if row, err := moved.Find(t.Context(), "r2"); err != nil || row != (Row{}) {
			t.Errorf("after its release: %+v, %v", row, err)
		}
	})
}

// TestHold: of two processes one works at a time. The other goes on when the first ends its work, or is killed, or
// cannot reach the database any more, and then only after the first has stopped.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &table{rows: map[string]Row{}}
		of := func() *process {
			p := &process{connection: &connection{table: shared}}
			p.Lease = New(Options{Store: p.connection, Name: "work", clock: bubble})
			return p
		}
		var mu sync.Mutex
		working := 0
		work := func(d time.Duration) (func(context.Context), *bool) {
			ran := false
			return func(ctx context.Context) {
				mu.Lock()
				ran = true
				if working++; working > 1 {
					t.Error("two processes work")
				}
				mu.Unlock()
				select {
				case <-ctx.Done():
				case <-time.After(d):
				}
				mu.Lock()
				working--
				mu.Unlock()
			}, &ran
		}
		a, b := of(), of()
		do, ran := work(time.Hour)
		ctx, stop := context.WithCancel(t.Context())
		go a.Hold(ctx, do)
		time.Sleep(20 * time.Second)
		if again, other := work(time.Second); b.Hold(t.Context(), again) != nil || *other || !*ran {
			t.Fatal("the lease was not respected")
		}
		a.fault(true, 0)
		for range 10 {
			time.Sleep(time.Second)
			do, ran = work(time.Second)
			if err := b.Hold(t.Context(), do); err != nil {
				t.Fatal(err)
			}
			if *ran {
				break
			}
		}
		if !*ran {
			t.Error("the work was not taken over")
		}
		stop()
		a.fault(false, 0)
		do, ran = work(0)
		if err := a.Hold(t.Context(), do); err != nil || !*ran {
			t.Errorf("a lease that was freed: %v", err)
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

// TestClocks: what the clocks of other processes say has no effect, and neither has it when a machine booted.
func TestClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &table{rows: map[string]Row{}}
		fast, slow := &clock{began: time.Now(), ahead: 5 * time.Minute}, &clock{began: time.Now().Add(-1000 * time.Hour)}
		a, b := started(t, shared, "r1", "h:1", fast.read), started(t, shared, "r2", "h:2", slow.read)
		time.Sleep(1500 * time.Millisecond)
		for range 30 {
			time.Sleep(time.Second)
			if !a.Held() || !b.Held() || len(a.Others()) != 1 || len(b.Others()) != 1 {
				t.Fatal("a clock that is wrong ends a lease")
			}
		}
	})
}

// TestSuspended: a process whose machine was suspended holds no lease when it goes on, before it has asked the
// database: its clock has gone on. One whose machine was paused with its clock learns it at its first look.
func TestSuspended(t *testing.T) {
	for name, tt := range map[string]struct {
		away   time.Duration
		paused bool // the clock has stood still
		holds  bool // when it goes on
		keeps  bool // its holder's name, with its next look
	}{
		"for 2 s":                    {away: 2 * time.Second, holds: true, keeps: true},
		"for 5 s":                    {away: 5 * time.Second, keeps: true}, // no other one has it for gone
		"for 10 s":                   {away: 10 * time.Second},
		"for an hour":                {away: time.Hour},
		"with its clock, for 2 s":    {away: 2 * time.Second, paused: true, holds: true, keeps: true},
		"with its clock, for 5 s":    {away: 5 * time.Second, paused: true, holds: true, keeps: true},
		"with its clock, for 10 s":   {away: 10 * time.Second, paused: true, holds: true},
		"with its clock, for a week": {away: 7 * 24 * time.Hour, paused: true, holds: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared, c := &table{rows: map[string]Row{}}, &clock{began: time.Now()}
				p := replica(t, shared, "r1", "h:1", c.read)
				other := started(t, shared, "r2", "h:2", nil)
				time.Sleep(1100 * time.Millisecond)
				if err := p.Look(t.Context()); err != nil || !other.sees(p.Holder()) {
					t.Fatal("two replicas do not see each other", err)
				}
				first := p.Holder()
				if tt.paused {
					c.set(func(c *clock) { c.stopped = time.Since(c.began) })
				}
				time.Sleep(tt.away)
				if c.set(func(c *clock) { c.stopped, c.ahead = 0, map[bool]time.Duration{true: -tt.away}[tt.paused] }); p.Held() != tt.holds {
					t.Errorf("holds its lease: %v", !tt.holds)
				}
				if taken := !other.sees(first); taken != (tt.away > 7*time.Second) {
					t.Errorf("taken for gone: %v", taken)
				}
				for range 2 { // one look finds the lease lost, the next one claims it again
					if err := p.Look(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if (p.Holder() == first) != tt.keeps || !p.Held() || (p.lost == 0) != tt.keeps {
					t.Errorf("keeps its lease: %v, lost %d times", !tt.keeps, p.lost)
				}
				time.Sleep(1100 * time.Millisecond)
				if !other.sees(p.Holder()) || len(other.Others()) != 1 {
					t.Errorf("the other replica sees %v", other.Others())
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
