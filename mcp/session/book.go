// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/keyring"
)

// A Book is what an installation knows of its sessions. It opens their ids, and keeps in a store what
// the ids cannot hold. A call in a session that goes on makes no use of it.
type Book struct {
	tokens *Tokens
	box    *keyring.Box
	store  Store
	opt    BookOptions
}

// BookOptions are the settings of a Book.
type BookOptions struct {
	Life time.Duration // of a session from its beginning; 0 stands for Life
	// Owner is what SessionOwner says of a session that this process serves. nil: one process serves
	// the installation.
	Owner func() string
	// Label is the name of this replica, with which the ids of sessions begin. "": they have none.
	Label string
	// Principal is the name by which a person's data is erased, of a session's owner. nil: the same.
	Principal func(owner string) string
}

// NewBook returns a Book that seals with the keys of the ring.
func NewBook(ring *keyring.Ring, store Store, o BookOptions) *Book {
	return &Book{tokens: NewTokens(ring, o.Life, o.Label), box: ring.Box("pellucid session state v1"), store: store, opt: o}
}

// Open returns what the id of a session holds: see Tokens.Open.
func (b *Book) Open(token string) (*Session, error) { return b.tokens.Open(token) }

// Server returns the sessions with one server; "" stands for all servers as one.
func (b *Book) Server(name string) wire.Registry { return &registry{b, name} }

// MaxRecords is the number of records of one principal that stay, beside those of sessions that are open.
const MaxRecords = 10_000

// Sweep removes what is kept of sessions whose time is over, and what is more than MaxRecords.
func (b *Book) Sweep(ctx context.Context) error {
	return b.store.SweepSessions(ctx, b.tokens.now(), MaxRecords)
}

// registry is the wire.Registry of one server.
type registry struct {
	*Book
	server string
}

// kept is what a store holds of a session, sealed.
type kept struct {
	wire.SessionState
	Params  json.RawMessage `json:"params,omitempty"` // where the token has no room for them
	Version string          `json:"version,omitempty"`
}

// Name implements wire.Registry.
func (r *registry) Name(ctx context.Context, o wire.Opening) (string, error) {
	s := r.tokens.New(r.server, o.Principal)
	s.Version, s.Params = o.Version, o.Params
	token, fits, err := r.tokens.Seal(s)
	if fits || err != nil {
		return token, err
	}
	s.Params, s.Stored = nil, true
	if token, _, err = r.tokens.Seal(s); err != nil {
		return "", err
	}
	return token, r.put(ctx, s, o.Principal, kept{Params: o.Params, Version: o.Version})
}

// own opens a token that must be one of the principal's with this server.
func (r *registry) own(token, principal string) (*Session, error) {
	s, err := r.tokens.Open(token)
	if err != nil || s.Server != r.server || !s.Belongs(principal) {
		return nil, wire.ErrNoSession
	}
	return s, nil
}

// Find implements wire.Registry.
func (r *registry) Find(ctx context.Context, token, principal string) (k wire.Kept, err error) {
	s, err := r.own(token, principal)
	if err != nil {
		return k, err
	}
	rec, err := r.store.Session(ctx, s.ID())
	found := err == nil
	if err != nil && !errors.Is(err, ErrNotFound) {
		return k, err
	}
	if found && rec.Ended || !found && s.Stored {
		return k, wire.ErrNoSession
	}
	k.Opening = wire.Opening{Principal: principal, Params: s.Params, Version: s.Version}
	if found && rec.State != nil {
		state, err := r.unseal(&rec)
		if err != nil {
			return k, err
		}
		k.SessionState = state.SessionState
		if s.Stored {
			k.Params, k.Version = state.Params, state.Version
		}
	}
	if k.Params == nil { // swept, or erased
		return k, wire.ErrNoSession
	}
	return k, nil
}

// Keep implements wire.Registry.
func (r *registry) Keep(ctx context.Context, token, principal string, state wire.SessionState) error {
	s, err := r.own(token, principal)
	if err != nil {
		return err
	}
	next := kept{SessionState: state}
	if s.Stored {
		rec, err := r.store.Session(ctx, s.ID())
		if err != nil {
			return err
		}
		before, err := r.unseal(&rec)
		if err != nil {
			return err
		}
		next.Params, next.Version = before.Params, before.Version
	}
	return r.put(ctx, s, principal, next)
}

// End implements wire.Registry.
func (r *registry) End(ctx context.Context, token, principal string) error {
	s, err := r.own(token, principal)
	if err != nil {
		return err
	}
	return r.store.EndSession(ctx, r.record(s, principal))
}

func (r *registry) record(s *Session, owner string) Record {
	if f := r.opt.Principal; f != nil {
		owner = f(owner)
	}
	return Record{ID: s.ID(), Server: r.server, Principal: PrincipalDigest(owner), Seen: r.tokens.now(), Until: s.Until}
}

// put stores the state of a session that this process has.
func (r *registry) put(ctx context.Context, s *Session, principal string, k kept) error {
	rec := r.record(s, principal)
	plain, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("session: state: %w", err)
	}
	rec.State = r.box.Seal(plain, []byte(rec.ID))
	own, err := r.store.SessionOwner(ctx, rec.ID)
	if err != nil {
		return err
	}
	rec.Owner, rec.Fence = own.Holder, own.Fence
	if f := r.opt.Owner; rec.Fence != 0 && (f == nil || rec.Owner != f()) {
		return ErrFence
	}
	return r.store.KeepSession(ctx, rec)
}

func (r *registry) unseal(rec *Record) (k kept, err error) {
	plain, err := r.box.Open(rec.State, []byte(rec.ID))
	if err != nil {
		return k, fmt.Errorf("session: state: %w", err)
	}
	if err := json.Unmarshal(plain, &k); err != nil {
		return k, fmt.Errorf("session: state: %w", err)
	}
	return k, nil
}
