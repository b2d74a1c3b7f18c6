// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/session"
)

var _ session.Store = (*Store)(nil)

const sessionColumns = `id, server, owner, fence, principal, state, ended, seen, until`

func scanSession(r *sql.Rows) (s session.Record, err error) {
	var ended int
	if err := r.Scan(&s.ID, &s.Server, &s.Owner, &s.Fence, bytesIn(s.Principal[:]), &s.State, &ended, stampIn{&s.Seen}, stampIn{&s.Until}); err != nil {
		return s, err
	}
	if s.Ended = ended != 0; len(s.State) == 0 {
		s.State = nil
	}
	return s, nil
}

// Session implements session.Store.
func (s *Store) Session(ctx context.Context, id string) (out session.Record, err error) {
	out, found, err := queryOne(ctx, s, scanSession, `SELECT `+sessionColumns+` FROM sessions WHERE id = ?`, id)
	if err == nil && !found {
		return out, session.ErrNotFound
	}
	return out, s.Fail(ctx, "find session", err)
}

// SessionOwner implements session.Store.
func (s *Store) SessionOwner(ctx context.Context, id string) (o session.Owner, err error) {
	ended := 0
	err = s.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&o.Holder, &o.Fence, &ended, &o.Address) },
		`SELECT owner, fence, ended, COALESCE((SELECT address FROM leases WHERE `+ofOwner+`), '') FROM sessions WHERE id = ?`, id)
	if err == nil && ended != 0 {
		return session.Owner{Fence: o.Fence}, session.ErrEnded
	}
	return o, s.Fail(ctx, "find the owner of a session", err)
}

// ofOwner is the condition of the lease of a session's owner. Where there is none, the owner has ended: no holder's name
// comes back.
const ofOwner = `leases.holder = sessions.owner AND leases.holder <> ''`

// sessionUnless is how a session is changed: in one statement, which does nothing unless the session is
// as the caller has seen it. No lock keeps other sessions waiting.
const sessionUnless = `INSERT INTO sessions (` + sessionColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET `

// putSession runs such a statement: r is the record where there was none, and args are those of the
// rest of the statement. It reports whether it has changed anything.
func (s *Store) putSession(ctx context.Context, what string, r session.Record, rest string, args ...any) (changed bool, err error) {
	ended := 0
	if r.Ended {
		ended = 1
	}
	all := append([]any{r.ID, r.Server, r.Owner, r.Fence, r.Principal[:], Blob(r.State), ended, Stamp(r.Seen), Stamp(r.Until)}, args...)
	err = s.updating(ctx, what, func(t *Tx) error {
		n, err := t.change(ctx, sessionUnless+rest, all...)
		changed = n > 0
		return err
	}, func(*sql.Tx) error { return nil })
	return changed, err
}

// ClaimSession implements session.Store.
func (s *Store) ClaimSession(ctx context.Context, r session.Record, owner string) (bool, error) {
	seen := r.Fence
	r.Owner, r.Ended = owner, false
	r.Fence++
	claimed, err := s.putSession(ctx, "claim session", r, `owner = ?, fence = ?, seen = ? WHERE sessions.fence = ? AND sessions.ended = 0
		AND (sessions.owner = ? OR NOT EXISTS (SELECT 1 FROM leases WHERE `+ofOwner+`))`, owner, r.Fence, Stamp(r.Seen), seen, owner)
	if err == nil && !claimed {
		_, err = s.SessionOwner(ctx, r.ID)
	}
	return claimed, err
}

// KeepSession implements session.Store.
func (s *Store) KeepSession(ctx context.Context, r session.Record) error {
	r.Ended = false
	kept, err := s.putSession(ctx, "keep session", r,
		`state = ?, seen = ? WHERE sessions.fence = ? AND sessions.ended = 0`, Blob(r.State), Stamp(r.Seen), r.Fence)
	if err == nil && !kept {
		if _, err = s.SessionOwner(ctx, r.ID); err == nil {
			err = session.ErrFence
		}
	}
	return err
}

// EndSession implements session.Store.
func (s *Store) EndSession(ctx context.Context, r session.Record) error {
	r.Ended, r.State, r.Owner = true, nil, ""
	_, err := s.putSession(ctx, "end session", r, `owner = '', state = ?, ended = 1, seen = ?`, []byte{}, Stamp(r.Seen))
	return err
}

// How long the record of a session stays that says only which process had it.
const (
	claimKept    = 24 * time.Hour   // where the process is gone
	releasedKept = 10 * time.Minute // where the process has let go of it: no other one remembers an owner for as long
)

// bare is the condition of a record that holds nothing but an owner: the id of the session alone brings it back.
const bare = `ended = 0 AND length(state) = 0`

// SweepSessions implements session.Store.
func (s *Store) SweepSessions(ctx context.Context, now time.Time, most int) error {
	var over [][]byte
	err := s.EachRow(ctx, func(r *sql.Rows) error {
		var principal []byte
		err := r.Scan(&principal)
		over = append(over, principal)
		return err
	}, `SELECT principal FROM sessions GROUP BY principal HAVING count(*) > ?`, most)
	if err != nil {
		return s.Fail(ctx, "count sessions", err)
	}
	return s.updating(ctx, "sweep sessions", func(t *Tx) error {
		err := t.Execute(ctx, `DELETE FROM sessions WHERE until <= ? OR `+bare+` AND (owner = '' AND seen <= ? OR seen <= ?
  AND NOT EXISTS (SELECT 1 FROM leases WHERE `+ofOwner+`))`, Stamp(now), Stamp(now.Add(-releasedKept)), Stamp(now.Add(-claimKept)))
		for i := 0; err == nil && i < len(over); i++ {
			err = t.Execute(ctx, deleteSessionsOver, over[i], forgotten[:], most)
		}
		return err
	}, func(*sql.Tx) error { return nil })
}

// forgotten stands for the principal of sessions of a person whose data was erased: these must stay ended.
var forgotten = session.Record{}.Principal

// deleteSessionsOver removes what a principal has too much, and no session that a process has which lives. One
// that was claimed or changed meanwhile has another time.
const deleteSessionsOver = `DELETE FROM sessions WHERE (id, seen) IN (SELECT id, seen FROM (
  SELECT id, seen, use, row_number() OVER (ORDER BY use, seen DESC, id) AS n FROM (
    SELECT id, seen, CASE WHEN EXISTS (SELECT 1 FROM leases WHERE ` + ofOwner + `) THEN 0
      WHEN ended <> 0 THEN 2 WHEN length(state) > 0 THEN 1 ELSE 3 END AS use
    FROM sessions WHERE principal = ? AND principal <> ?) AS used) AS numbered
  WHERE n > ? AND use > 0)`

// ReleaseSession implements session.Store.
func (s *Store) ReleaseSession(ctx context.Context, id, owner string, now time.Time) error {
	return s.updating(ctx, "release session", func(t *Tx) error {
		return t.Execute(ctx, `UPDATE sessions SET owner = '', seen = ? WHERE id = ? AND owner = ?`, Stamp(now), id, owner)
	}, func(*sql.Tx) error { return nil })
}

// maxReleased bounds the sessions that a process lets go of at once.
const maxReleased = 2000

// ReleaseSessions lets go of the sessions of owner that were last claimed or changed before a time, and that it
// does not use.
func (s *Store) ReleaseSessions(ctx context.Context, owner string, now, before time.Time, used func(id string) bool) error {
	var unused []string
	err := s.EachRow(ctx, func(r *sql.Rows) error {
		var id string
		if err := r.Scan(&id); err != nil {
			return err
		}
		if !used(id) && len(unused) < maxReleased {
			unused = append(unused, id)
		}
		return nil
	}, `SELECT id FROM sessions WHERE owner = ? AND seen <= ?`, owner, Stamp(before))
	if err != nil || len(unused) == 0 {
		return s.Fail(ctx, "find sessions of a replica", err)
	}
	return s.updating(ctx, "release sessions", func(t *Tx) error {
		for _, id := range unused { // one that was used meanwhile stays
			if err := t.Execute(ctx, `UPDATE sessions SET owner = '', seen = ? WHERE id = ? AND owner = ? AND seen <= ?`, Stamp(now), id, owner, Stamp(before)); err != nil {
				return err
			}
		}
		return nil
	}, func(*sql.Tx) error { return nil })
}
