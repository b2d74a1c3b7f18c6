// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
)

var exceptions = timedTable[hold.Exception]{
	name: "exception", columns: `id, server, tool, code, digest, since, until, why, granter, revoked, revoker, second, keep`, ended: "revoked", ender: "revoker",
	inForce: `revoked = '' AND (until > ? OR until = '')`,
	scan: func(r *sql.Rows) (e hold.Exception, err error) {
		err = r.Scan(&e.ID, &e.Server, &e.Tool, &e.Code, bytesIn(e.Digest[:]), stampIn{&e.Since}, stampIn{&e.Until}, &e.Why, &e.By, stampIn{&e.Revoked}, &e.Revoker, &e.Second, &e.Keep)
		e.Keep *= time.Second // as it is stored
		return e, err
	},
	values: func(e *hold.Exception) []any {
		return []any{e.ID, e.Server, e.Tool, string(e.Code), e.Digest[:], Stamp(e.Since), Stamp(e.Until), e.Why, e.By, "", "", "", int64(e.Keep / time.Second)}
	},
	lifetime: func(e *hold.Exception) lifetime { return lifetime{e.Since, e.Until, e.Revoked, e.Revoker} },
	prepare:  func(context.Context, *Tx, *hold.Exception) error { return nil },
	notify:   func(ctx context.Context, t *Tx) error { return t.tell(ctx, ExceptionsChanged) },
}

type exceptionRows struct{ timedRows[hold.Exception] }

// Exceptions returns the exceptions of the store.
func (s *Store) Exceptions() hold.ExceptionStore {
	return &exceptionRows{timedRows[hold.Exception]{&exceptions, s}}
}

// Confirm implements hold.ExceptionStore.
func (d *exceptionRows) Confirm(ctx context.Context, id, by string, now time.Time, evidence []byte) error {
	return d.change(ctx, id, now, evidence, func(t *Tx, e *hold.Exception) error {
		switch {
		case e.Second != "":
			return refusal{&hold.DecidedError{What: "exception", State: "confirmed", At: e.Since, By: e.Second}}
		case e.By == "" || hold.SamePerson(e.By, by): // whose name was erased cannot be told from another person
			return refusal{hold.ErrSecond}
		}
		until := e.Until
		if e.Proposed() {
			until = now.Add(e.Keep)
		}
		return t.Execute(ctx, `UPDATE exceptions SET second = ?, until = ?, keep = 0 WHERE id = ?`, by, Stamp(until), id)
	})
}
