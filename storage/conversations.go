// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"time"

	"github.com/pellucid-mcp/pellucid/record/conversation"
)

var _ conversation.Store = (*Store)(nil)

// PutConversation implements conversation.Store.
func (s *Store) PutConversation(ctx context.Context, r conversation.Row) error {
	return s.update(ctx, "keep conversation", func(t *tx) error {
		if err := t.exec(ctx, `DELETE FROM conversations WHERE id = ?`, r.Key[:]); err != nil {
			return err
		}
		return t.exec(ctx, `INSERT INTO conversations (id, principal, at, until, size, sealed) VALUES (`+marks(6)+`)`,
			r.Key[:], r.Principal[:], stamp(r.At), stamp(r.Until), max(len(r.Sealed), conversation.LeastSize), r.Sealed)
	})
}

// GetConversation implements conversation.Store.
func (s *Store) GetConversation(ctx context.Context, key conversation.Key, now time.Time) (sealed []byte, err error) {
	found := false
	err = s.query(ctx, func(r *sql.Rows) error {
		found = true
		return r.Scan(&sealed)
	}, `SELECT sealed FROM conversations WHERE id = ? AND until > ?`, key[:], stamp(now))
	if err == nil && !found {
		return nil, conversation.ErrNotFound
	}
	return sealed, s.fail(ctx, "find conversation", err)
}

// DropConversation implements conversation.Store.
func (s *Store) DropConversation(ctx context.Context, key conversation.Key) error {
	return s.update(ctx, "drop conversation", func(t *tx) error {
		return t.exec(ctx, `DELETE FROM conversations WHERE id = ?`, key[:])
	})
}

// SweepConversations implements conversation.Store.
func (s *Store) SweepConversations(ctx context.Context, now time.Time, most int64) error {
	return s.update(ctx, "sweep conversations", func(t *tx) error {
		if err := t.exec(ctx, `DELETE FROM conversations WHERE until <= ?`, stamp(now)); err != nil {
			return err
		}
		sizes := map[string]int64{}
		over := -most
		err := t.query(ctx, func(r *sql.Rows) error {
			var who []byte
			var n int64
			err := r.Scan(&who, &n)
			sizes[string(who)] = n
			over += n
			return err
		}, `SELECT principal, CAST(sum(size) AS BIGINT) FROM conversations GROUP BY principal`)
		for err == nil && over > 0 {
			var who string
			for name, n := range sizes {
				if n > sizes[who] || n == sizes[who] && name < who {
					who = name
				}
			}
			var gone int64
			gone, err = t.dropOldest(ctx, who, min(over, max(sizes[who]/4, 1)))
			if gone == 0 {
				break
			}
			sizes[who] -= gone
			over -= gone
		}
		return err
	})
}

// dropOldest removes the oldest conversations of a principal, which count for size bytes
// together, or a little more.
func (t *tx) dropOldest(ctx context.Context, principal string, size int64) (gone int64, err error) {
	var ids [][]byte
	err = t.query(ctx, func(r *sql.Rows) error {
		var id []byte
		var n int64
		err := r.Scan(&id, &n)
		if err == nil && gone < size {
			ids = append(ids, id)
			gone += n
		}
		return err
	}, `SELECT id, size FROM conversations WHERE principal = ? ORDER BY at, id LIMIT 1000`, []byte(principal))
	for _, id := range ids {
		if err == nil {
			err = t.exec(ctx, `DELETE FROM conversations WHERE id = ?`, id)
		}
	}
	return gone, err
}

// forgetConversations removes the conversations of a principal.
func (s *Store) forgetConversations(ctx context.Context, principal string) (erased int, err error) {
	digest := conversation.PrincipalDigest(principal)
	err = s.update(ctx, "forget", func(t *tx) error {
		erased = 0
		if err := t.query(ctx, func(r *sql.Rows) error { return r.Scan(&erased) }, `SELECT count(*) FROM conversations WHERE principal = ?`, digest[:]); err != nil {
			return err
		}
		return t.exec(ctx, `DELETE FROM conversations WHERE principal = ?`, digest[:])
	})
	return erased, err
}
