// SPDX-License-Identifier: Apache-2.0

// Package replica keeps the list of the processes that share a database, each with a lease that it renews.
//
//   - A replica raises a counter, its beat, in its own row of the database every second.
//   - Other replicas take it for gone when they have read the same beat for [Member.gone] by their own
//     clock, and one of them has removed its row while that still had this beat. Clocks of different machines
//     are never compared, and no clock is used that a person or a time server can set.
//   - A replica that could not write its beat for [Member.lease], which is shorter, knows that others may
//     take it for gone. It takes a new id before it goes on: what belonged to the old id has to be
//     claimed again. So does one whose row has been removed: its clock may have stood still with its machine.
package replica

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// A Row is what the database says of one replica.
type Row struct {
	ID         string // random, of one process; another one after a lapse of the lease
	Address    string // HOST:PORT at which the other replicas reach it
	Key        string // id of the installation's key that it uses: public
	Release    string // of the program
	Rules      string // version of the rules in force
	Generation int64  // the larger it is, the later did any replica first use these rules; the store sets it
	Started    string // RFC 3339, by its own clock, for people
	Spent      []byte // what its principals have used of their rate limits since the last beat
	Beat       int64
}

// Store is where the rows are.
type Store interface {
	// BeatReplica stores a row and returns those of all replicas. A row with another beat than 1 must be
	// there, or else the error is ErrRemoved. With first, it removes rows of the same address: the process
	// that has this address now is the only one.
	BeatReplica(ctx context.Context, row Row, first bool) ([]Row, error)
	// RemoveReplica removes a row if it has that beat still, or whatever it has if beat is Any. It reports
	// whether there was such a row.
	RemoveReplica(ctx context.Context, id string, beat int64) (removed bool, err error)
}

// ErrRemoved means that another process has removed the row of this one.
var ErrRemoved = errors.New("replica: the row of this process has been removed")

// Any stands for any beat.
const Any = -1

// Options are what a Member is made of.
type Options struct {
	Store   Store
	Address string
	Key     string
	Release string
	Log     *slog.Logger // nil: nothing is logged

	// Changed is called after the replicas that live have changed, and after a lapse. It must not block.
	Changed func()
	// Exchange gets what the principals of the other replicas have spent, by the id of the replica, the
	// same value perhaps twice. It returns what those of this one have. nil: nothing is exchanged.
	Exchange func(spent map[string][]byte) []byte

	every, lease, gone time.Duration        // 0 = 1 s, 4 s, 6 s
	clock              func() time.Duration // since any moment; nil: sinceBoot
}

// A Member is this process as one of the replicas. Its methods are safe for concurrent use.
type Member struct {
	o    Options
	wake chan struct{}

	turn sync.Mutex // held while the store is asked

	mu      sync.Mutex
	row     Row
	fresh   bool          // the row is not yet in the store
	ok      time.Duration // when the last beat began that succeeded
	joined  bool          // a beat has succeeded
	others  map[string]*other
	held    chan struct{} // closed while the lease holds
	failing bool          // the last beat failed, and the log says so
	former  string        // id that has lapsed, whose row is to be removed
}

// other is what is known of another replica.
type other struct {
	row  Row
	at   time.Duration // when its beat was first read
	gone bool
}

// Join adds this process to the replicas. Run renews its lease.
func Join(ctx context.Context, o Options) (*Member, error) {
	o.every, o.lease, o.gone = cmp.Or(o.every, time.Second), cmp.Or(o.lease, 4*time.Second), cmp.Or(o.gone, 6*time.Second)
	if o.clock == nil {
		o.clock = sinceBoot
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Changed == nil {
		o.Changed = func() {}
	}
	m := &Member{o: o, wake: make(chan struct{}, 1), others: map[string]*other{}, held: make(chan struct{}), fresh: true,
		row: Row{ID: newID(), Address: o.Address, Key: o.Key, Release: o.Release, Started: time.Now().UTC().Format(time.RFC3339)}}
	if err := m.beat(ctx); err != nil {
		return nil, fmt.Errorf("replica: join: %w", err)
	}
	return m, nil
}

func newID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// ValidID reports whether s is spelled as the id of a replica.
func ValidID(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 8 && hex.EncodeToString(b) == s
}

// Run renews the lease until ctx ends.
func (m *Member) Run(ctx context.Context) {
	tick := time.NewTicker(m.o.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-m.wake:
		}
		wait, stop := context.WithTimeout(ctx, m.o.lease/2)
		err := m.beat(wait)
		stop()
		if ctx.Err() == nil {
			m.note(err)
		}
	}
}

// note logs the first failure of a series, and its end.
func (m *Member) note(err error) {
	m.mu.Lock()
	before := m.failing
	m.failing = err != nil
	m.mu.Unlock()
	switch {
	case err != nil && !before:
		m.o.Log.Error("the database does not take the sign of life of this replica: after a few seconds other replicas take its sessions over", "error", err)
	case err == nil && before:
		m.o.Log.Info("the database takes the sign of life of this replica again", "replica", m.ID())
	}
}

// Leave removes this replica from the list. Nothing renews the lease any more.
func (m *Member) Leave(ctx context.Context) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	m.mu.Lock()
	id := m.row.ID
	m.mu.Unlock()
	_, err := m.o.Store.RemoveReplica(ctx, id, Any)
	return err
}

// Wake has the rows read soon: something has changed.
func (m *Member) Wake() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// ID is the id under which this process holds a lease, or held one last.
func (m *Member) ID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.row.ID
}

// Key is the id of the installation's key of this replica.
func (m *Member) Key() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.row.Key
}

// SetKey tells which key of the installation this replica uses from now on.
func (m *Member) SetKey(key string) {
	m.set(func(r *Row) { r.Key = key })
	m.Wake()
}

// SetRules tells which rules are in force from now on.
func (m *Member) SetRules(version string) {
	m.set(func(r *Row) { r.Rules = version })
	m.Wake()
}

func (m *Member) set(change func(*Row)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.row)
}

// Holds reports whether id is this process, and its lease holds.
func (m *Member) Holds(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return id == m.row.ID && m.holds()
}

// holds reports whether the lease holds. m.mu is held.
func (m *Member) holds() bool { return !m.fresh && m.o.clock()-m.ok < m.o.lease }

// Lease returns the id of this process once its lease holds, and waits for that no longer than ctx.
func (m *Member) Lease(ctx context.Context) (id string, err error) {
	for {
		m.mu.Lock()
		id, held, changed := m.row.ID, m.holds(), m.held
		m.mu.Unlock()
		if held {
			return id, nil
		}
		m.Wake()
		select {
		case <-changed:
		case <-ctx.Done():
			return "", ErrLapsed
		}
	}
}

// ErrLapsed means that the lease of this process does not hold: the database has not answered in time.
var ErrLapsed = errors.New("replica: the lease of this process has lapsed")

// beat writes a beat and reads all rows.
func (m *Member) beat(ctx context.Context) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	m.mu.Lock()
	began := m.o.clock()
	if !m.fresh && !m.holds() {
		m.renewID()
	}
	if m.row.Beat++; m.fresh {
		m.row.Beat = 1
	}
	row, first := m.row, !m.joined
	m.mu.Unlock()
	rows, err := m.o.Store.BeatReplica(ctx, row, first)
	if err != nil && !errors.Is(err, ErrRemoved) {
		return err
	}
	m.mu.Lock()
	if !m.fresh && (err != nil || !m.holds()) {
		// The answer came too late, or this process was suspended: others may have read the old beat for too
		// long, or have.
		m.renewID()
		m.mu.Unlock()
		m.Wake()
		return ErrLapsed
	}
	m.fresh, m.joined, m.ok = false, true, began
	close(m.held)
	m.held = make(chan struct{})
	changed, silent := m.took(rows)
	former := m.former
	changed, m.former = changed || former != "", ""
	m.mu.Unlock()
	if former != "" {
		if _, err := m.o.Store.RemoveReplica(ctx, former, Any); err != nil {
			m.leftBehind(former) // again after the next beat
		}
	}
	for _, r := range silent {
		changed = m.bury(ctx, r) || changed
	}
	if m.o.Exchange != nil {
		m.exchange(rows)
	}
	if changed {
		m.o.Changed()
	}
	return nil
}

// leftBehind notes that the row of a former id of this process is still there.
func (m *Member) leftBehind(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.former = cmp.Or(m.former, id)
}

// bury takes a replica for gone whose beat has stood still for too long, if it can remove its row: the replica
// then knows, whatever its own clock says.
func (m *Member) bury(ctx context.Context, r Row) bool {
	removed, err := m.o.Store.RemoveReplica(ctx, r.ID, r.Beat)
	if err != nil || !removed {
		return false // the next beat looks again
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if o := m.others[r.ID]; o != nil {
		o.gone = true
	}
	m.o.Log.Warn("a replica has stopped: others take its sessions over", "replica", shown(r.ID), "address", shown(r.Address))
	return true
}

// renewID takes a new id. What belonged to the old one has to be claimed. m.mu is held.
func (m *Member) renewID() {
	m.o.Log.Warn("the lease of this replica has lapsed: it takes a new id, and other replicas may have taken its sessions over", "old", m.row.ID)
	m.former = m.row.ID
	m.row.ID, m.fresh = newID(), true
}

// exchange gives what other replicas have spent to Exchange. The next beat tells what it returns.
func (m *Member) exchange(rows []Row) {
	spent := map[string][]byte{}
	self := m.ID()
	for _, r := range rows {
		if r.ID != self && len(r.Spent) > 0 {
			spent[r.ID] = r.Spent
		}
	}
	own := m.o.Exchange(spent)
	m.set(func(r *Row) { r.Spent = own })
}

// took takes the rows that were read. It returns those whose beat has stood still for too long. m.mu is held.
func (m *Member) took(rows []Row) (changed bool, silent []Row) {
	now := m.o.clock()
	for _, r := range rows {
		if r.ID == m.row.ID {
			m.row.Generation = r.Generation
		}
		if r.ID == m.row.ID || r.ID == m.former {
			continue
		}
		o := m.others[r.ID]
		switch {
		case o == nil:
			m.others[r.ID] = &other{row: r, at: now}
			changed = true
		case o.row.Beat != r.Beat:
			changed = changed || o.gone || o.row.Address != r.Address || o.row.Key != r.Key || o.row.Generation != r.Generation
			o.row, o.at, o.gone = r, now, false
		case now-o.at >= m.o.gone:
			silent = append(silent, r)
		}
	}
	for id := range m.others {
		if !slices.ContainsFunc(rows, func(r Row) bool { return r.ID == id }) {
			delete(m.others, id)
			changed = true
		}
	}
	return changed, silent
}

// shown is a value of another replica's row, for the log.
func shown(s string) string {
	if len(s) > 64 {
		s = s[:64]
	}
	return fmt.Sprintf("%+q", s)
}

// Find returns the row of another replica that lives. A replica that is not on the list may have just
// started, so the list is read again.
func (m *Member) Find(ctx context.Context, id string) (Row, bool, error) {
	if row, known, live := m.known(id); known {
		return row, live, nil
	}
	if err := m.beat(ctx); err != nil {
		return Row{}, false, err
	}
	row, _, live := m.known(id)
	return row, live, nil
}

func (m *Member) known(id string) (row Row, known, live bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.others[id]
	if o == nil {
		return Row{}, false, false
	}
	return o.row, true, !o.gone
}

// Live reports whether another replica lives, as far as is known.
func (m *Member) Live(id string) bool {
	_, _, live := m.known(id)
	return live
}

// Others are the rows of the other replicas that live, by id.
func (m *Member) Others() []Row {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Row
	for _, o := range m.others {
		if !o.gone {
			out = append(out, o.row)
		}
	}
	slices.SortFunc(out, func(a, b Row) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Namesakes is the number of other replicas that live and have the address of this one: requests for one of
// them arrive at another.
func (m *Member) Namesakes() (n int64) {
	self := m.Self()
	for _, r := range m.Others() {
		if r.Address == self.Address {
			n++
		}
	}
	return n
}

// Self is the row of this replica.
func (m *Member) Self() Row {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.row
}
