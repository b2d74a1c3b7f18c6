// SPDX-License-Identifier: Apache-2.0

// Package conversation keeps, sealed, what a response id of a model's provider stands for.
//
// A client of such a provider sends the id of the last response in the place of the
// conversation. A program between the two, which has to know the conversation, keeps it here.
package conversation

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/keyring"
)

// Errors, to be compared with errors.Is.
var (
	ErrNotFound = errors.New("conversation: not kept, or expired")
	ErrTooLong  = errors.New("conversation: longer than may be kept")
)

// An Owner is whose conversation it is. Another owner never finds it, whatever id it names.
type Owner struct {
	Principal  string // that has been authenticated; ""
	Credential string // with which the provider is asked, where it is the client's own
}

// A Turn is all that was said in a conversation up to a response.
type Turn struct {
	Items []byte // a JSON array in the words of the provider's format
	// Own: the response is not the provider's, which knows no response of that id, or another one.
	Own bool
}

// A Key identifies a Turn in a Store. It shows neither the id nor the owner.
type Key [sha256.Size]byte

// A Row is a sealed Turn.
type Row struct {
	Key       Key
	Principal [sha256.Size]byte // see PrincipalDigest
	Sealed    []byte
	At, Until time.Time
}

// PrincipalDigest is what a row has in the place of a principal's name.
func PrincipalDigest(principal string) [sha256.Size]byte { return sha256.Sum256([]byte(principal)) }

// A Store keeps Rows. Its methods may be called at the same time, also from several processes.
type Store interface {
	// PutConversation stores r in the place of a row with that key.
	PutConversation(ctx context.Context, r Row) error
	// GetConversation returns what is sealed under a key; ErrNotFound, also where it has ended.
	GetConversation(ctx context.Context, key Key, now time.Time) ([]byte, error)
	// DropConversation removes one, if it is there.
	DropConversation(ctx context.Context, key Key) error
	// SweepConversations removes what has ended, and then, until the rest counts for most bytes,
	// the oldest rows of the principal that has the most. A row counts for LeastSize at least.
	SweepConversations(ctx context.Context, now time.Time, most int64) error
}

// LeastSize is what a row counts for at least, in bytes, so that the number of rows is bounded.
const LeastSize = 4 << 10

// MaxTurn is how long a turn may be, in bytes.
const MaxTurn = 4 << 20

// Options are the bounds of Conversations; a zero member is its default.
type Options struct {
	// Keys are shared by the processes that find each other's turns. They have to be set.
	Keys  *keyring.Ring
	For   time.Duration // how long a turn is kept; 7 days
	Total int64         // bytes of all turns; 1 GiB
	Now   func() time.Time
}

// Conversations are the Turns of a Store. They are safe for concurrent use.
type Conversations struct {
	store Store
	o     Options
	box   *keyring.Box

	mu    sync.Mutex
	swept time.Time
	since int64 // bytes that were stored since then
}

// New makes Conversations.
func New(s Store, o Options) *Conversations {
	if o.For <= 0 {
		o.For = 7 * 24 * time.Hour
	}
	if o.Total <= 0 {
		o.Total = 1 << 30
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Conversations{store: s, o: o, box: o.Keys.Box("pellucid conversation v1")}
}

// key is under which the turn of an id is stored, by one of the keys of the installation.
func key(by keyring.Key, of Owner, id string) (k Key) {
	mac := hmac.New(sha256.New, by.Derive("pellucid conversation name v1"))
	for _, s := range []string{of.Principal, of.Credential, id} {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(s))))
		mac.Write([]byte(s))
	}
	mac.Sum(k[:0])
	return k
}

// sweepEvery is how much time may pass, and sweepBytes how much may be stored, between two
// looks for what has to go.
const (
	sweepEvery = time.Minute
	sweepBytes = 64 << 20
)

// Keep stores a turn under the id of its response; ErrTooLong.
func (c *Conversations) Keep(ctx context.Context, of Owner, id string, t Turn) error {
	if len(t.Items) > MaxTurn {
		return ErrTooLong
	}
	key, now := key(c.o.Keys.Current(), of, id), c.o.Now().UTC()
	plain := make([]byte, 1, 1+len(t.Items))
	if t.Own {
		plain[0] = 1
	}
	sealed := c.box.Seal(append(plain, t.Items...), key[:])
	if err := c.store.PutConversation(ctx, Row{Key: key, Principal: PrincipalDigest(of.Principal), Sealed: sealed, At: now, Until: now.Add(c.o.For)}); err != nil {
		return fmt.Errorf("conversation: keep: %w", err)
	}
	c.mu.Lock()
	c.since += max(int64(len(sealed)), LeastSize)
	due := now.Sub(c.swept) >= sweepEvery || c.since >= sweepBytes
	if due {
		c.swept, c.since = now, 0
	}
	c.mu.Unlock()
	if due {
		if err := c.store.SweepConversations(ctx, now, c.o.Total); err != nil {
			return fmt.Errorf("conversation: remove old ones: %w", err)
		}
	}
	return nil
}

// Find returns the turn that ends with the response of that id; ErrNotFound.
func (c *Conversations) Find(ctx context.Context, of Owner, id string) (Turn, error) {
	for _, k := range c.o.Keys.Keys() { // the current one first
		key := key(k, of, id)
		sealed, err := c.store.GetConversation(ctx, key, c.o.Now().UTC())
		if errors.Is(err, ErrNotFound) {
			continue
		}
		var plain []byte
		if err == nil {
			plain, err = c.box.Open(sealed, key[:])
		}
		if err != nil {
			return Turn{}, fmt.Errorf("conversation: find: %w", err)
		}
		if len(plain) == 0 {
			return Turn{}, errors.New("conversation: find: nothing is sealed there")
		}
		return Turn{Items: plain[1:], Own: plain[0] == 1}, nil
	}
	return Turn{}, ErrNotFound
}

// Drop forgets the turn of an id, if it is kept.
func (c *Conversations) Drop(ctx context.Context, of Owner, id string) error {
	for _, k := range c.o.Keys.Keys() {
		if err := c.store.DropConversation(ctx, key(k, of, id)); err != nil {
			return fmt.Errorf("conversation: drop: %w", err)
		}
	}
	return nil
}
