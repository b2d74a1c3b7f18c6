// SPDX-License-Identifier: Apache-2.0

// Package captures keeps, sealed and for a time, the text of calls that passed, where the operator asks for it.
//
// A capture is a help to a reviewer and never a condition: what cannot be kept is counted and lost,
// and the call goes on. It is found by the evidence id of the decision that it belongs to.
package captures

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/capture"
)

// Errors, to be compared with errors.Is.
var (
	ErrNotKept = errors.New("captures: not kept, or its time is over")
	ErrDamaged = errors.New("captures: not what was kept for this decision")
)

// A Capture is the text of one call. All three parts are third-party text.
type Capture struct {
	ID        string    `json:"id"` // of the decision
	Time      time.Time `json:"time"`
	Server    string    `json:"server"`
	Tool      string    `json:"tool,omitempty"`
	Principal string    `json:"principal,omitempty"`
	Verdict   string    `json:"verdict"`
	Params    int       `json:"params,omitempty"` // bytes of all parameters of the call; 0: the arguments were not asked for
	Arguments *Part     `json:"arguments,omitempty"`
	Received  *Part     `json:"received,omitempty"`
	Delivered *Part     `json:"delivered,omitempty"`

	Until time.Time `json:"-"` // when it ends; set by Read
}

// A Part is one text of a Capture; nil where it was not asked for.
type Part struct {
	Bytes int    `json:"bytes"`          // of all of it
	Text  string `json:"text,omitempty"` // "" where it is longer than MaxPart
}

// MaxPart is how many bytes of one text are kept.
const MaxPart = 1 << 20

// NewPart copies text, unless it is too long to be kept.
func NewPart(text []byte) *Part {
	p := &Part{Bytes: len(text)}
	if len(text) <= MaxPart {
		p.Text = string(text)
	}
	return p
}

// size is what c counts for in memory.
func (c *Capture) size() int64 {
	n := int64(512)
	for _, p := range []*Part{c.Arguments, c.Received, c.Delivered} {
		if p != nil {
			n += int64(len(p.Text))
		}
	}
	return n
}

// A Row is a sealed Capture.
type Row struct {
	ID        string
	Principal [sha256.Size]byte // see PrincipalDigest
	At, Until time.Time
	Sealed    []byte
}

// PrincipalDigest is what a row has in the place of a principal's name.
func PrincipalDigest(principal string) [sha256.Size]byte { return sha256.Sum256([]byte(principal)) }

// A Store keeps Rows. Its methods may be called at the same time, also from several processes.
type Store interface {
	// PutCaptures stores all rows; a row whose ID is there already is left out.
	PutCaptures(ctx context.Context, rows []Row) error
	// GetCapture returns a row that has not ended; ErrNotKept.
	GetCapture(ctx context.Context, id string, now time.Time) (Row, error)
	// SweepCaptures removes what has ended, and then the oldest until the rest has most bytes.
	SweepCaptures(ctx context.Context, now time.Time, most int64) error
}

// Limits are how long captures are kept and how much of them. A zero member is its default.
type Limits struct {
	For   time.Duration // 7 days
	Total int           // bytes of all; 1 GiB
}

// Options make a Keeper; Store and Sealer have to be set.
type Options struct {
	Store  Store
	Sealer *capture.Sealer
	Limits func() Limits // in force; nil: the defaults
	Log    *slog.Logger
	Now    func() time.Time // nil: time.Now
	room   int64            // bytes that wait to be stored; 0: maxWaiting
}

// Bounds of a Keeper.
const (
	maxWaiting = 32 << 20 // bytes that wait to be stored
	maxQueue   = 1024     // captures that wait
	maxBatch   = 64       // rows of one transaction
	storeWait  = 10 * time.Second
	sweepEvery = time.Minute
)

// A Keeper stores captures beside the calls: Keep returns at once. It is safe for concurrent use.
type Keeper struct {
	o       Options
	queue   chan Capture
	waiting atomic.Int64
	lost    atomic.Int64
	done    chan struct{}

	mu     sync.RWMutex // held by Keep while it sends, so that Close can close the queue
	closed bool

	swept time.Time
	told  time.Time
	known int64 // of lost, what the log has been told
}

// New makes a Keeper, which stores until Close.
func New(o Options) *Keeper {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.room <= 0 {
		o.room = maxWaiting
	}
	k := &Keeper{o: o, queue: make(chan Capture, maxQueue), done: make(chan struct{})}
	go k.run()
	return k
}

// Room reports whether n more bytes can wait to be stored, and takes them. A caller asks before it
// copies a text, and then calls Keep. What there is no room for is counted as lost.
func (k *Keeper) Room(n int) bool {
	if k.waiting.Add(int64(n)) > k.o.room {
		k.waiting.Add(-int64(n))
		k.lost.Add(1)
		return false
	}
	return true
}

// Keep gives c, for which n bytes of Room were taken, to be stored.
func (k *Keeper) Keep(c Capture, n int) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if !k.closed {
		select {
		case k.queue <- c:
			k.waiting.Add(c.size() - int64(n))
			return
		default:
		}
	}
	k.waiting.Add(-int64(n))
	k.lost.Add(1)
}

// Lost is how many captures were not kept since the start.
func (k *Keeper) Lost() int64 { return k.lost.Load() }

// Close stores what waits, and ends the Keeper.
func (k *Keeper) Close() {
	k.mu.Lock()
	if !k.closed {
		k.closed = true
		close(k.queue)
	}
	k.mu.Unlock()
	<-k.done
}

func (k *Keeper) limits() Limits {
	var l Limits
	if k.o.Limits != nil {
		l = k.o.Limits()
	}
	if l.For <= 0 {
		l.For = 7 * 24 * time.Hour
	}
	if l.Total <= 0 {
		l.Total = 1 << 30
	}
	return l
}

// run stores what comes, many at a time where many wait, and sweeps.
func (k *Keeper) run() {
	defer close(k.done)
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	k.sweep()
	for {
		select {
		case c, more := <-k.queue:
			if !more {
				return
			}
			k.store(k.batch(c))
			if k.o.Now().Sub(k.swept) >= sweepEvery {
				k.sweep()
			}
		case <-tick.C:
			k.sweep()
		}
	}
}

func (k *Keeper) batch(first Capture) []Capture {
	list := []Capture{first}
	for len(list) < maxBatch {
		select {
		case c, more := <-k.queue:
			if !more {
				return list
			}
			list = append(list, c)
		default:
			return list
		}
	}
	return list
}

func (k *Keeper) store(list []Capture) {
	ctx, done := context.WithTimeout(context.Background(), storeWait)
	defer done()
	var rows []Row
	until := k.limits().For
	var err error
	for i := range list {
		c := &list[i]
		document, bad := json.Marshal(c)
		var sealed []byte
		if bad == nil {
			sealed, bad = k.o.Sealer.Seal(document, c.ID)
		}
		if bad != nil {
			err = bad
			k.lost.Add(1)
			continue
		}
		rows = append(rows, Row{ID: c.ID, Principal: PrincipalDigest(c.Principal), At: c.Time.UTC(), Until: c.Time.UTC().Add(until), Sealed: sealed})
	}
	if bad := k.o.Store.PutCaptures(ctx, rows); bad != nil {
		err = bad
		k.lost.Add(int64(len(rows)))
	}
	for i := range list {
		k.waiting.Add(-list[i].size())
	}
	k.tell(err)
}

// errNoRoom is why a capture is lost that the store was not asked to keep.
var errNoRoom = errors.New("captures: more calls than the store keeps up with")

// tell warns of captures that were lost, once a minute.
func (k *Keeper) tell(err error) {
	lost := k.lost.Load()
	if err == nil && lost > k.known {
		err = errNoRoom
	}
	if now := k.o.Now(); err != nil && now.Sub(k.told) >= time.Minute {
		k.told, k.known = now, lost
		k.o.Log.Warn("captures of calls could not be kept; the calls are not affected", "error", err, "lost", lost)
	}
}

func (k *Keeper) sweep() {
	k.swept = k.o.Now()
	ctx, done := context.WithTimeout(context.Background(), storeWait)
	defer done()
	k.tell(k.o.Store.SweepCaptures(ctx, k.swept, int64(k.limits().Total)))
}

// Read returns the capture of a decision: ErrNotKept, or an error of capture.Sealer. identities are those
// of a reviewer, or "".
func Read(ctx context.Context, s Store, by *capture.Sealer, id, identities string, now time.Time) (*Capture, error) {
	row, err := s.GetCapture(ctx, id, now)
	if err != nil {
		return nil, err
	}
	document, err := by.Open(row.Sealed, id, identities)
	if err != nil {
		return nil, err
	}
	var c Capture
	if json.Unmarshal(document, &c) != nil || c.ID != id {
		return nil, ErrDamaged
	}
	c.Until = row.Until
	return &c, nil
}
