// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/webhook"
)

// The usage of the queue is counted from its items, in the transaction that adds one, so that no counter has to follow
// deliveries, denials, erasures and expiries. The lock of the store keeps the other replicas out meanwhile.
const (
	taken        = `, count(*), COALESCE(SUM(octets), 0) FROM held WHERE state IN ('held', 'released')`
	takenBy      = `SELECT server` + taken + ` AND server = ? AND until > ? GROUP BY server`
	takenFor     = `SELECT principal` + taken + ` AND principal = ? AND until > ? GROUP BY principal`
	takenAll     = `SELECT ''` + taken + ` AND until > ?`
	takenServers = `SELECT server` + taken + ` AND until > ? GROUP BY server ORDER BY server`
	takenPersons = `SELECT principal` + taken + ` AND principal <> '' AND until > ? GROUP BY principal ORDER BY principal`
)

func scanUsage(of hold.Share, to *[]hold.Usage) func(*sql.Rows) error {
	return func(r *sql.Rows) error {
		x := hold.Usage{Of: of}
		err := r.Scan(&x.Name, &x.Items, &x.Bytes)
		*to = append(*to, x)
		return err
	}
}

// checkRoom refuses an item for which there is no room. It returns the shares that the item fills: the one after it may
// be refused.
func (t *Tx) checkRoom(ctx context.Context, it *hold.Item, room hold.Room) (fills []hold.Usage, err error) {
	now := Stamp(it.Held)
	for _, q := range []struct {
		of    hold.Share
		name  string
		query string
		args  []any
	}{
		{hold.OfServer, it.Server, takenBy, []any{it.Server, now}},
		{hold.OfPrincipal, it.Principal, takenFor, []any{it.Principal, now}},
		{hold.OfAll, "", takenAll, []any{now}},
	} {
		if q.of == hold.OfPrincipal && it.Principal == "" {
			continue
		}
		var list []hold.Usage
		if err := t.EachRow(ctx, scanUsage(q.of, &list), q.query, q.args...); err != nil {
			return nil, err
		}
		x := hold.Usage{Of: q.of, Name: q.name}
		if len(list) > 0 {
			x = list[0]
		}
		was := room.IsFull(x)
		x.Items, x.Bytes = x.Items+1, x.Bytes+int64(it.Bytes)
		if !room.Fits(x) {
			return nil, &hold.FullError{Of: q.of}
		}
		if !was && room.IsFull(x) {
			fills = append(fills, x)
		}
	}
	return fills, nil
}

// postFull stores the messages about the shares that an item has filled. They name no principal.
func (t *Tx) postFull(ctx context.Context, it *hold.Item, fills []hold.Usage) error {
	for _, x := range fills {
		e := webhook.Notice{Type: webhook.QueueFull, At: it.Held, Scope: string(x.Of), Waiting: x.Items, Bytes: int(x.Bytes)}
		if x.Of == hold.OfServer {
			e.Server = x.Name
		}
		if err := t.post(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// HeldUsage implements hold.Store.
func (s *Store) HeldUsage(ctx context.Context, now time.Time) (list []hold.Usage, err error) {
	for _, q := range []struct {
		of    hold.Share
		query string
	}{{hold.OfAll, takenAll}, {hold.OfServer, takenServers}, {hold.OfPrincipal, takenPersons}} {
		if err := s.EachRow(ctx, scanUsage(q.of, &list), q.query, Stamp(now)); err != nil {
			return nil, s.Fail(ctx, "count what is held", err)
		}
	}
	return list, nil
}
