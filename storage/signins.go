// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/signin"
)

var _ signin.Store = (*Store)(nil)

// changeSignIns runs one statement and returns how many rows it has changed. It takes no lock: each statement is
// whole by itself.
func (s *Store) changeSignIns(ctx context.Context, what, query string, args ...any) (changed int64, err error) {
	err = s.updating(ctx, what, func(t *Tx) (err error) {
		changed, err = t.change(ctx, query, args...)
		return err
	}, func(*sql.Tx) error { return nil })
	return changed, err
}

// PutSignInLink implements signin.Store.
func (s *Store) PutSignInLink(ctx context.Context, id signin.ID, person string, until time.Time) error {
	_, err := s.changeSignIns(ctx, "keep a sign-in link", `INSERT INTO signin_links (id, person, until) VALUES (?, ?, ?)`, id[:], person, Stamp(until))
	return err
}

// HasSignInLink implements signin.Store.
func (s *Store) HasSignInLink(ctx context.Context, id signin.ID, now time.Time) (found bool, err error) {
	err = s.EachRow(ctx, func(r *sql.Rows) error {
		var n int
		found = true
		return r.Scan(&n)
	}, `SELECT 1 FROM signin_links WHERE id = ? AND until > ?`, id[:], Stamp(now))
	return found, s.Fail(ctx, "find a sign-in link", err)
}

// SpendSignInLink implements signin.Store.
func (s *Store) SpendSignInLink(ctx context.Context, id signin.ID, now time.Time) (person string, err error) {
	found := false
	err = s.updating(ctx, "spend a sign-in link", func(t *Tx) error {
		found = false
		return t.EachRow(ctx, func(r *sql.Rows) error {
			found = true
			return r.Scan(&person)
		}, `DELETE FROM signin_links WHERE id = ? AND until > ? RETURNING person`, id[:], Stamp(now))
	}, func(*sql.Tx) error { return nil })
	if err == nil && !found {
		return "", signin.ErrNone
	}
	return person, err
}

const signInColumns = `id, name, person, scopes, how, source, began, seen, until, ends`

// PutSignIn implements signin.Store.
func (s *Store) PutSignIn(ctx context.Context, x signin.Session, own, most int) error {
	full := false
	err := s.Update(ctx, "keep a session of the console", func(t *Tx) error {
		if err := t.Execute(ctx, `DELETE FROM signins WHERE id IN (SELECT id FROM signins WHERE person = ? ORDER BY seen DESC, id LIMIT 1000000 OFFSET ?)`,
			x.Person, max(own-1, 0)); err != nil {
			return err
		}
		all, its := 0, 0
		if err := t.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&all, &its) },
			`SELECT COUNT(*), COALESCE(SUM(CASE WHEN person = ? THEN 1 ELSE 0 END), 0) FROM signins`, x.Person); err != nil {
			return err
		}
		over := all + 1 - most
		if full = over > its; full {
			return nil
		}
		if over > 0 {
			if err := t.Execute(ctx, `DELETE FROM signins WHERE id IN (SELECT id FROM signins WHERE person = ? ORDER BY seen, id LIMIT ?)`, x.Person, over); err != nil {
				return err
			}
		}
		return t.Execute(ctx, `INSERT INTO signins (`+signInColumns+`) VALUES (`+Marks(10)+`)`,
			x.ID[:], x.Name, x.Person, scopesJSON(x.Scopes), string(x.How), x.Source[:], Stamp(x.Began), Stamp(x.Seen), Stamp(x.Until), Stamp(x.Ends))
	})
	if err == nil && full {
		err = signin.ErrFull
	}
	return err
}

// scopesJSON is a list as it is stored: names of groups may have spaces.
func scopesJSON(list []string) string {
	b, _ := json.Marshal(list) // it does not fail for strings
	return string(b)
}

func scanSignIn(r *sql.Rows) (x signin.Session, err error) {
	var scopes string
	if err := r.Scan(bytesIn(x.ID[:]), &x.Name, &x.Person, &scopes, &x.How, bytesIn(x.Source[:]), stampIn{&x.Began}, stampIn{&x.Seen}, stampIn{&x.Until}, stampIn{&x.Ends}); err != nil {
		return x, err
	}
	return x, json.Unmarshal([]byte(scopes), &x.Scopes)
}

// SignIn implements signin.Store.
func (s *Store) SignIn(ctx context.Context, id signin.ID) (x signin.Session, err error) {
	x, found, err := queryOne(ctx, s, scanSignIn, `SELECT `+signInColumns+` FROM signins WHERE id = ?`, id[:])
	if err == nil && !found {
		return x, signin.ErrNone
	}
	return x, s.Fail(ctx, "find a session of the console", err)
}

// SeeSignIn implements signin.Store.
func (s *Store) SeeSignIn(ctx context.Context, id signin.ID, seen, ends time.Time) error {
	_, err := s.changeSignIns(ctx, "note a use of a session of the console", `UPDATE signins SET seen = ?, ends = ? WHERE id = ? AND seen < ?`, Stamp(seen), Stamp(ends), id[:], Stamp(seen))
	return err
}

// EndSignIn implements signin.Store.
func (s *Store) EndSignIn(ctx context.Context, name string) (bool, error) {
	n, err := s.changeSignIns(ctx, "end a session of the console", `DELETE FROM signins WHERE name = ?`, name)
	return n > 0, err
}

// SignIns implements signin.Store.
func (s *Store) SignIns(ctx context.Context) (out []signin.Session, err error) {
	err = s.EachRow(ctx, func(r *sql.Rows) error {
		x, err := scanSignIn(r)
		out = append(out, x)
		return err
	}, `SELECT `+signInColumns+` FROM signins ORDER BY seen DESC, id`)
	return out, s.Fail(ctx, "list the sessions of the console", err)
}

// SweepSignIns implements signin.Store.
func (s *Store) SweepSignIns(ctx context.Context, now time.Time) error {
	return s.updating(ctx, "remove sessions of the console that are over", func(t *Tx) error {
		if err := t.Execute(ctx, `DELETE FROM signin_links WHERE until <= ?`, Stamp(now)); err != nil {
			return err
		}
		return t.Execute(ctx, `DELETE FROM signins WHERE until <= ? OR ends <= ?`, Stamp(now), Stamp(now))
	}, func(*sql.Tx) error { return nil })
}

// forgetSignIns ends the sessions of a person.
func (s *Store) forgetSignIns(ctx context.Context, person string) (int, error) {
	if _, err := s.changeSignIns(ctx, "forget", `DELETE FROM signin_links WHERE person = ?`, person); err != nil {
		return 0, err
	}
	n, err := s.changeSignIns(ctx, "forget", `DELETE FROM signins WHERE person = ?`, person)
	return int(n), err
}
