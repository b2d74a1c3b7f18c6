// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"
)

// A Record is what a store keeps of a session that needs it. Nothing of it shows in clear who the
// principal is.
type Record struct {
	ID     string // Session.ID
	Server string
	// Owner is the holder of the lease of the replica that has the session's connections; "" where only one
	// process serves the installation, or where the last one has let go of the session.
	Owner string
	// Fence counts the owners. A process writes only while the fence is the one that it has seen.
	Fence     int64
	Principal [sha256.Size]byte // PrincipalDigest, to erase what is kept of a person
	State     []byte            // sealed; nil: nothing has changed since the session began
	Ended     bool              // by the client: it is not brought back
	Seen      time.Time         // when the session was last changed, claimed or brought back
	Until     time.Time         // Session.Until; the record is swept then
}

// PrincipalDigest is the form in which a record names a principal.
func PrincipalDigest(principal string) [sha256.Size]byte { return sha256.Sum256([]byte(principal)) }

// An Owner is the replica that has a session.
type Owner struct {
	Holder  string // of its lease; "": no replica has the session
	Fence   int64
	Address string // where other replicas reach it; "": its lease has ended
}

// The errors of a Store that a caller tells apart. Any other means that the store cannot be used.
var (
	ErrNotFound = errors.New("session: not in the store")
	ErrEnded    = errors.New("session: the client has ended the session")
	// ErrFence means that another process has claimed the session meanwhile.
	ErrFence = errors.New("session: another process has the session")
)

// A Store keeps records of sessions. A session of which nothing needs to be kept has no record.
type Store interface {
	// Session returns the record of a session, or ErrNotFound.
	Session(ctx context.Context, id string) (Record, error)
	// SessionOwner returns the owner of a session and the fence. A session without a record has
	// no owner, and the fence 0. The error may be ErrEnded.
	SessionOwner(ctx context.Context, id string) (Owner, error)
	// ClaimSession makes owner the owner of the session if its fence is still r.Fence, and adds 1 to
	// the fence. It reports false if another process was first, or if the lease of another owner has not ended. A
	// session without a record has the fence 0, and gets one; its State is that of r. The error may be ErrEnded.
	ClaimSession(ctx context.Context, r Record, owner string) (bool, error)
	// ReleaseSession has a session belong to no process, if owner still owns it.
	ReleaseSession(ctx context.Context, id, owner string, now time.Time) error
	// KeepSession stores r.State and r.Seen, if the fence of the session is still r.Fence. Errors:
	// ErrEnded, ErrFence.
	KeepSession(ctx context.Context, r Record) error
	// EndSession notes until r.Until that the client has ended the session, and erases its state.
	EndSession(ctx context.Context, r Record) error
	// SweepSessions removes the records whose time is over, and may remove others that hold nothing but an
	// owner that is gone. Of a principal with more than most records it removes those that are least
	// needed, and of these the oldest: first the ones that hold nothing, then those of sessions that have ended,
	// then those with a state. It leaves the records of sessions that a process has which lives.
	SweepSessions(ctx context.Context, now time.Time, most int) error
}
