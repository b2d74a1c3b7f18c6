// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"context"
	"errors"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/lease"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// A Store keeps a log and the records that wait for it. Its methods are safe for concurrent
// use, also by several processes on one store. A change is durable when its method has
// returned nil.
type Store interface {
	ledger.Source

	// Add stores sealed records (ledger.Sealed.Bytes) that belong to no other change.
	// A record that is stored twice comes into the log once.
	Add(ctx context.Context, records [][]byte) error
	// Pending returns the records that wait, the oldest first: at most limit records, and not
	// much more than size bytes.
	Pending(ctx context.Context, limit, size int) ([]Pending, error)
	// Waiting is how many records wait; at most limit are counted.
	Waiting(ctx context.Context, limit int) (int, error)

	// Head returns the state of the log; ErrNoLog before Begin.
	Head(ctx context.Context) (Head, error)
	// Epoch names the server that answers, and its copy of the log: another text after a failover or a
	// restore. "": the store has one copy.
	Epoch(ctx context.Context) (string, error)
	// Halt has no record added to the log from now on, in any process, and says why. Where the log is
	// stopped already, the reason of the larger checkpoint stands.
	Halt(ctx context.Context, why Stop) error
	// Resume takes the reason back.
	Resume(ctx context.Context) error
	// Begin makes an empty log, unless the store has one already.
	Begin(ctx context.Context, origin, signer string) error
	// Claim takes the lease for holder if the head is still as the caller has seen it,
	// and returns the new one; ErrLost if it is not.
	Claim(ctx context.Context, holder string, seen Head) (Head, error)
	// Release gives the lease back, if the caller still holds it.
	Release(ctx context.Context, held Head) error
	// Known returns the ids that the log contains, with their indices.
	Known(ctx context.Context, ids []ledger.ID) (map[ledger.ID]int64, error)
	// Integrate adds a batch to the log after the head that the caller holds, whole or not
	// at all, and returns the new head. ErrLost: another process holds the lease by now.
	Integrate(ctx context.Context, held Head, b *Batch) (Head, error)
}

// The errors of a Store, to be compared with errors.Is.
var (
	ErrNoLog = errors.New("sequence: there is no log yet")
	ErrLost  = errors.New("sequence: another process writes to the log")
)

// A Head is the state of a log, and the process that holds its lease.
type Head struct {
	Origin     string
	Signer     string // keyid of the key that signs the next record
	Size       int64
	Checkpoint []byte // nil before the first
	Lease      lease.Row
	Stop       *Stop // why no record is added; nil: records are added
}

// A Stop says why no record is added to a log: a checkpoint was seen that the stored log contradicts.
type Stop struct {
	Reason     Reason
	Size       int64  // of the log that was seen
	Checkpoint []byte // that was seen; nil: only its size is known
	At         time.Time
}

// A Reason says who has seen the checkpoint.
type Reason string

// The reasons.
const (
	SeenHere      Reason = "replica" // a process of this installation
	SeenByWitness Reason = "witness"
)

// A Pending is a record that waits.
type Pending struct {
	Seq    int64
	Record []byte // ledger.Sealed.Bytes
	Link   Link
}

// A Linked is a link whose record is in the log.
type Linked struct {
	Link
	Index int64
}

// A Batch is what the log grows by.
type Batch struct {
	Done       []int64 // what no longer waits
	Entries    []Entry
	Links      []Linked
	Tiles      []ledger.TileData
	Checkpoint []byte
	Signer     string // from now on
}

// An Entry is a record of the log.
type Entry struct {
	Index    int64
	ID       ledger.ID
	Time     time.Time
	Server   string
	Kind     ledger.Kind
	Envelope []byte
	Opening  []byte // nil once it was erased, and where it is not asked for

	Statement *ledger.Statement // of Envelope, where it was integrated this moment
}

// A Filter selects entries. Members that are set must all hold.
type Filter struct {
	Since, Until time.Time // Until is not part of it
	Server       string
	Kind         ledger.Kind
	Before       int64 // only of a lower index; 0: all
	Limit        int   // 0 stands for 100, the most is 1,000
}
