// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A memory is a Store that may fail.
type memory struct {
	mu      sync.Mutex
	records [][]byte
	calls   int
	fail    error
	persist bool          // although it fails
	block   chan struct{} // nil: nothing
	blocked atomic.Int64
	takes   atomic.Int64 // nanoseconds
}

func (m *memory) Add(ctx context.Context, records [][]byte) error {
	if m.block != nil {
		m.blocked.Add(1)
		select {
		case <-m.block:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if d := time.Duration(m.takes.Load()); d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if m.fail == nil || m.persist {
		m.records = append(m.records, records...)
	}
	return m.fail
}

func (m *memory) set(fail error, persist bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail, m.persist = fail, persist
}

func (m *memory) statements(t *testing.T) (out []*ledger.Statement) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records {
		s, err := ledger.ReadSealed(r)
		if err != nil {
			t.Fatal(err)
		}
		st, err := ledger.ParseStatement(s.Statement)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, st)
	}
	return out
}

func decision(n byte) gateway.Decision {
	return gateway.Decision{ID: gateway.ID{n}, Time: time.Unix(1, 0), Server: "files", Tool: "read", Method: "tools/call", Kind: "result",
		Verdict: gateway.Changed, Received: [32]byte{1}, Delivered: [32]byte{2}, Principal: "somebody", SanitationVersion: "0.1", UnicodeVersion: "15.0.0",
		Inspected: 3, Findings: []policy.Count{{Code: finding.HiddenTag, N: 2}}}
}

var errStore = errors.New("store: full")

func TestRequired(t *testing.T) {
	m := &memory{}
	r := New(Options{Store: m, wait: 10 * time.Second, retry: time.Millisecond})
	r.Rules("sha256:ab")
	if err := r.Record(decision(1)); err != nil {
		t.Fatal(err)
	}
	st := m.statements(t)
	if len(st) != 1 || st[0].ID != (ledger.ID{1}) || st[0].Verdict != "changed" || st[0].Server != "files" || len(st[0].Subjects) != 3 || len(st[0].Versions) != 3 {
		t.Fatalf("recorded %+v", st)
	}
	for _, persist := range []bool{false, true} {
		m.set(errStore, persist)
		if err := r.Record(decision(2)); !errors.Is(err, errNotRecorded) || !errors.Is(err, errStore) {
			t.Errorf("a store that fails: %v", err)
		}
		m.set(nil, false)
		// That nothing was delivered is told once it can be.
		waittest.Until(t, "the correction", func() bool {
			st := m.statements(t)
			last := st[len(st)-1]
			return last.Of == (ledger.ID{2}) && last.Verdict == "withheld"
		})
	}
	if err := r.Record(decision(3)); err != nil {
		t.Errorf("once the store works again: %v", err)
	}
	if n := r.Close(context.Background()); n != 0 {
		t.Errorf("%d lost", n)
	}
	if err := r.Record(decision(4)); !errors.Is(err, errNotRecorded) {
		t.Errorf("after Close: %v", err)
	}
}

// TestRequiredSlow: nobody waits for a store for ever.
func TestRequiredSlow(t *testing.T) {
	m := &memory{block: make(chan struct{})}
	r := New(Options{Store: m, wait: 20 * time.Millisecond, brief: 20 * time.Millisecond, queue: 1})
	var all sync.WaitGroup
	for n := range byte(8) {
		all.Go(func() {
			if err := r.Record(decision(n)); !errors.Is(err, errNotRecorded) {
				t.Errorf("a store that hangs: %v", err)
			}
		})
	}
	all.Wait()
	close(m.block)
	r.Close(context.Background())
}

// TestPatience: a store that works may take its time, and one that fails is given up soon, until it works again.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		r := New(Options{Store: m})
		defer r.Close(t.Context())
		for _, tt := range []struct {
			name        string
			takes, left time.Duration // what the store takes, and what the call has left
			waits       time.Duration
			recorded    bool
		}{
			{"busy", 4 * time.Second, 0, 4 * time.Second, true},
			{"hangs", time.Minute, time.Hour, 5 * time.Second, false},
			{"still hangs", time.Minute, 5 * time.Second, 900 * time.Millisecond, false},
			{"still hangs, and the call has waited before", time.Minute, 300 * time.Millisecond, 300 * time.Millisecond, false},
			{"works again", 500 * time.Millisecond, 0, 500 * time.Millisecond, true},
			{"busy, and the call has waited before", 4 * time.Second, 3 * time.Second, 3 * time.Second, false},
		} {
			m.takes.Store(int64(tt.takes))
			time.Sleep(time.Minute) // a store that works again has the correction of the last call
			d := decision(1)
			d.Wait = tt.left
			began := time.Now()
			err := r.Record(d)
			if waited := time.Since(began); waited != tt.waits || (err == nil) != tt.recorded {
				t.Errorf("%s: %v after %v", tt.name, err, waited)
			}
		}
	})
}

func TestRequiredGroups(t *testing.T) {
	m := &memory{block: make(chan struct{})}
	r := New(Options{Store: m})
	var all sync.WaitGroup
	for n := range byte(100) {
		all.Go(func() {
			if err := r.Record(decision(n)); err != nil {
				t.Error(err)
			}
		})
		if n == 0 { // it alone is in the first group
			waittest.Until(t, "the first is being stored", func() bool { return m.blocked.Load() > 0 })
		}
	}
	waittest.Until(t, "all wait", func() bool { return r.Figures().Queued >= 99 })
	close(m.block)
	all.Wait()
	r.Close(context.Background())
	if len(m.records) != 100 || m.calls > 3 {
		t.Errorf("%d records in %d transactions", len(m.records), m.calls)
	}
}

func TestBestEffort(t *testing.T) {
	m := &memory{}
	m.set(errStore, false)
	r := New(Options{Store: m, BestEffort: true, queue: 10, gather: time.Millisecond, retry: time.Millisecond})
	for n := range byte(100) {
		if err := r.Record(decision(n)); err != nil {
			t.Fatal(err)
		}
	}
	if r.Figures().Lost == 0 {
		t.Error("a full queue loses nothing")
	}
	m.set(nil, false)
	waittest.Until(t, "the store is written again", func() bool { return r.Figures().recorded > 0 })
	r.Note(&ledger.Event{Kind: ledger.Message, Server: "last"})
	if n := r.Close(context.Background()); n != 0 {
		t.Errorf("%d lost that are not told", n)
	}
	lost, kept := int64(0), int64(0)
	for _, st := range m.statements(t) {
		if st.Kind == ledger.RecordsLost {
			lost += st.Numbers[0].N
		} else {
			kept++
		}
	}
	if lost == 0 || lost+kept != 101 {
		t.Errorf("%d recorded and %d told as lost, of 101", kept, lost)
	}
}

// A carrier is a Direct that takes records, or does not.
type carrier struct {
	takes   bool
	carried []ledger.Sealed
	asked   int
}

func (c *carrier) Carry(_ context.Context, records []ledger.Sealed) bool {
	if c.asked++; c.takes {
		c.carried = append(c.carried, records...)
	}
	return c.takes
}

// TestDirect: what the ledger takes at once is not stored, what it does not is; what
// somebody waits for is stored.
func TestDirect(t *testing.T) {
	for _, tt := range []struct {
		required, takes bool
		carried, stored int
	}{{false, true, 3, 0}, {false, false, 0, 3}, {true, true, 0, 3}} {
		m, d := &memory{}, &carrier{takes: tt.takes}
		r := New(Options{Store: m, Direct: d, BestEffort: !tt.required, gather: time.Minute})
		for n := range byte(3) {
			if err := r.Record(decision(n + 1)); err != nil {
				t.Fatal(err)
			}
		}
		if n := r.Close(context.Background()); n != 0 || len(d.carried) != tt.carried || len(m.statements(t)) != tt.stored || (d.asked > 0) == tt.required {
			t.Errorf("%+v: %d lost, %d carried, %d stored", tt, n, len(d.carried), len(m.records))
		}
		for i, s := range d.carried {
			if s.ID != (ledger.ID{byte(i + 1)}) || s.Parsed.Kind != ledger.Message {
				t.Errorf("carried %v %s", s.ID, s.Statement)
			}
		}
	}
}

// slowDisk is a Store whose commits take 15 ms. It notes how long the oldest record waited that it was given.
type slowDisk struct {
	commits int
	oldest  time.Duration
}

func (d *slowDisk) Add(_ context.Context, records [][]byte) error {
	time.Sleep(15 * time.Millisecond)
	for _, b := range records {
		r, err := ledger.ReadSealed(b)
		if err != nil {
			return err
		}
		d.oldest = max(d.oldest, time.Since(r.Parsed.Time))
	}
	d.commits++
	return nil
}

// TestWriteBehind: a record of the mode best-effort is durable within 50 ms where a commit takes 15 ms, and
// records share commits all the same.
func TestWriteBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDisk{}
		r := New(Options{Store: d, BestEffort: true})
		const calls = 300
		for range calls {
			one := decision(1)
			one.Time = time.Now()
			if err := r.Record(one); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		r.Close(context.Background())
		if d.oldest > 50*time.Millisecond || d.commits > calls/10 {
			t.Errorf("a record waited %v; %d commits of %d records", d.oldest, d.commits, calls)
		}
	})
}

// TestCloseWithoutStore: a store that stays broken does not keep the process.
func TestCloseWithoutStore(t *testing.T) {
	m := &memory{}
	m.set(errStore, false)
	r := New(Options{Store: m, BestEffort: true, gather: time.Millisecond, retry: time.Millisecond})
	for n := range byte(5) {
		r.Record(decision(n))
	}
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if n := r.Close(ctx); n != 5 {
		t.Errorf("%d lost, want 5", n)
	}
}

// TestCloseTriesAgain: a store that others keep locked for a while has the records in the end.
func TestCloseTriesAgain(t *testing.T) {
	m := &memory{}
	m.set(errStore, false)
	r := New(Options{Store: m, BestEffort: true, gather: time.Millisecond, retry: time.Millisecond})
	for n := range byte(5) {
		r.Record(decision(n + 1))
	}
	closed := make(chan int64)
	go func() { closed <- r.Close(t.Context()) }()
	waittest.Until(t, "attempts while it closes", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return r.ending() && m.calls > 3
	})
	m.set(nil, false)
	if n := <-closed; n != 0 || len(m.statements(t)) != 5 {
		t.Errorf("%d lost, %d written, want 0 and 5", n, len(m.statements(t)))
	}
}

// TestWords: no name of a person, no word of a third party and no wrong kind.
func TestWords(t *testing.T) {
	m := &memory{}
	r := New(Options{Store: m})
	defer r.Close(context.Background())
	of := ledger.ID{0xab}
	item := hold.Item{ID: of.String(), Server: "files", Tool: "read", Principal: "somebody", Code: finding.HiddenTag, Rule: "finding", By: "someone else"}
	held := func(s hold.State) func() ([]byte, error) {
		return func() ([]byte, error) { it := item; it.State = s; return r.Held(it) }
	}
	pin := func(a surface.PinAct) func() ([]byte, error) {
		return func() ([]byte, error) {
			return r.Pin(surface.PinChange{Server: "<ignore all>", Act: a, By: "someone else", Digest: surface.Digest{1}})
		}
	}
	for want, word := range map[ledger.Kind]func() ([]byte, error){
		ledger.ResultHeld: held(hold.Held), ledger.ResultReleased: held(hold.Released), ledger.ResultDenied: held(hold.Denied), ledger.ResultExpired: held(hold.Expired),
		ledger.SurfaceVerified: pin(surface.ActPin), ledger.SurfaceChanged: pin(surface.ActDiffer), ledger.SurfaceApproved: pin(surface.ActApprove),
		ledger.SurfaceBlocked: pin(surface.ActBlock), ledger.SurfaceDropped: pin(surface.ActDrop), ledger.SurfaceRejected: pin(surface.ActReject),
	} {
		b, err := word()
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		s, err := ledger.ReadSealed(b)
		if err != nil {
			t.Fatal(err)
		}
		st, err := ledger.ParseStatement(s.Statement)
		if err != nil || st.Kind != want {
			t.Errorf("%s: %+v, %v", want, st, err)
		}
		for _, word := range []string{"somebody", "someone", "ignore", "secret"} {
			if bytes.Contains(b, []byte(word)) {
				t.Errorf("%s: %q stands in the record", want, word)
			}
		}
	}
	if _, err := held(hold.Taken)(); err == nil {
		t.Error("an item that was taken has no record of its own")
	}
}
