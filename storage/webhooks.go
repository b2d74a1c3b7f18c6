// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/webhook"
)

var _ webhook.Store = (*Store)(nil)

// An Outbox makes the messages that tell receivers what waits for a reviewer. A *webhook.Sender
// is one.
type Outbox interface {
	// Outbox returns the messages that are stored in the transaction of e.
	Outbox(e webhook.Notice) []webhook.Message
	// Wake is called once a transaction with messages is committed.
	Wake()
	// Dropped is told of a message for which there was no room.
	Dropped(m *webhook.Message)
}

// Tell has the store keep messages with every held item, block and changed pin that it stores.
func (s *Store) Tell(box Outbox) { s.outbox.Store(&box) }

// post stores the messages of e with whatever else the transaction does.
func (t *Tx) post(ctx context.Context, e webhook.Notice) error {
	if t.outbox == nil {
		return nil
	}
	for _, m := range t.outbox.Outbox(e) {
		n := 0
		err := t.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&n) },
			`SELECT count(*) FROM (SELECT 1 FROM webhooks WHERE receiver = ? AND given_up = '' LIMIT ?) AS waiting`, m.Receiver, webhook.MaxWaiting)
		if err != nil {
			return err
		}
		if n >= webhook.MaxWaiting {
			t.outbox.Dropped(&m)
			continue
		}
		err = t.Execute(ctx, `INSERT INTO webhooks (id, receiver, event, body, at, due, tries, failure, given_up) VALUES (`+Marks(9)+`)`,
			m.ID, m.Receiver, string(m.Type), m.Body, Stamp(m.At), Stamp(m.Next), 0, "", "")
		if err != nil {
			return err
		}
		t.told = true
	}
	return nil
}

// heldNotice is what a message says of an item.
func heldNotice(it *hold.Item) webhook.Notice {
	e := webhook.Notice{Type: webhook.ResultHeld, At: it.Held, ID: it.ID, Server: it.Server, Tool: it.Tool, Rule: it.Rule,
		Code: string(it.Code), Bytes: it.Bytes, Until: it.Until}
	if it.IsCall() {
		e.Type = webhook.CallHeld
	}
	return e
}

// tellPin stores messages where a change of a pin leaves more to a reviewer than there was.
func (t *Tx) tellPin(ctx context.Context, server string, before, after []byte) error {
	if t.outbox == nil {
		return nil
	}
	n, err := surface.Compare(server, before, after)
	if err != nil {
		return nil // no binary of this schema writes such a pin, and a message is no reason not to keep one
	}
	e := webhook.Notice{Type: webhook.SurfaceChanged, At: time.Now(), Server: n.Name, Waiting: n.Waiting}
	switch {
	case n.Rejected:
		e.Type = webhook.SurfaceRejected
	case !n.More:
		return nil
	}
	return t.post(ctx, e)
}

const messageColumns = `id, receiver, event, at, due, tries, failure, given_up`

func scanMessage(r *sql.Rows, extra ...any) (m webhook.Message, err error) {
	err = r.Scan(append([]any{&m.ID, &m.Receiver, &m.Type, stampIn{&m.At}, stampIn{&m.Next}, &m.Tries, &m.Failure, stampIn{&m.GivenUp}}, extra...)...)
	return m, err
}

// messages is update without the lock of the store: each statement is whole in itself.
func (s *Store) messages(ctx context.Context, what string, f func(*Tx) error) error {
	return s.updating(ctx, what, f, func(*sql.Tx) error { return nil })
}

// MessageDue implements webhook.Store.
func (s *Store) MessageDue(ctx context.Context, receiver string, now time.Time) (due bool, err error) {
	err = s.EachRow(ctx, func(*sql.Rows) error { due = true; return nil },
		`SELECT 1 FROM webhooks WHERE receiver = ? AND given_up = '' AND due <= ? LIMIT 1`, receiver, Stamp(now))
	return due, s.Fail(ctx, "look for messages", err)
}

// NextMessage implements webhook.Store.
func (s *Store) NextMessage(ctx context.Context, receiver string, now time.Time) (*webhook.Message, error) {
	var out *webhook.Message
	err := s.messages(ctx, "take message", func(t *Tx) error {
		out = nil
		return t.EachRow(ctx, func(r *sql.Rows) error {
			var body []byte
			m, err := scanMessage(r, &body)
			m.Body, out = body, &m
			return err
		}, `UPDATE webhooks SET tries = tries + 1 WHERE id = (SELECT id FROM webhooks WHERE receiver = ? AND given_up = '' AND due <= ?
			ORDER BY due, id LIMIT 1) RETURNING `+messageColumns+`, body`, receiver, Stamp(now))
	})
	return out, err
}

// MessageDelivered implements webhook.Store. A message of which another attempt has begun since
// has arrived all the same.
func (s *Store) MessageDelivered(ctx context.Context, m *webhook.Message) error {
	return s.messages(ctx, "remove message", func(t *Tx) error { return t.Execute(ctx, `DELETE FROM webhooks WHERE id = ?`, m.ID) })
}

// MessageFailed implements webhook.Store.
func (s *Store) MessageFailed(ctx context.Context, m *webhook.Message) error {
	return s.messages(ctx, "keep message", func(t *Tx) error {
		if m.GivenUp.IsZero() {
			return t.Execute(ctx, `UPDATE webhooks SET due = ?, failure = ? WHERE id = ? AND tries = ?`, Stamp(m.Next), string(m.Failure), m.ID, m.Tries)
		}
		return t.Execute(ctx, `UPDATE webhooks SET given_up = ?, failure = ?, body = NULL WHERE id = ? AND tries = ?`,
			Stamp(m.GivenUp), string(m.Failure), m.ID, m.Tries)
	})
}

// ListMessages implements webhook.Store.
func (s *Store) ListMessages(ctx context.Context, most int) (out []webhook.Message, err error) {
	err = s.EachRow(ctx, func(r *sql.Rows) error {
		m, err := scanMessage(r)
		out = append(out, m)
		return err
	}, `SELECT `+messageColumns+` FROM webhooks ORDER BY given_up, at, id LIMIT ?`, most)
	return out, s.Fail(ctx, "list messages", err)
}

// MessageSummaries implements webhook.Store.
func (s *Store) MessageSummaries(ctx context.Context) (out []webhook.Summary, err error) {
	err = s.EachRow(ctx, func(r *sql.Rows) error {
		var m webhook.Summary
		err := r.Scan(&m.Receiver, &m.Waiting, &m.Failing, &m.GivenUp)
		out = append(out, m)
		return err
	}, `SELECT receiver, count(CASE WHEN given_up = '' THEN 1 END), count(CASE WHEN given_up = '' AND failure <> '' THEN 1 END),
		count(CASE WHEN given_up <> '' THEN 1 END) FROM webhooks GROUP BY receiver ORDER BY receiver`)
	return out, s.Fail(ctx, "count messages", err)
}

// SweepMessages implements webhook.Store.
func (s *Store) SweepMessages(ctx context.Context, now, stale, old time.Time) error {
	return s.messages(ctx, "sweep messages", func(t *Tx) error {
		err := t.Execute(ctx, `UPDATE webhooks SET given_up = ?, body = NULL, failure = CASE failure WHEN '' THEN ? ELSE failure END
			WHERE given_up = '' AND at < ?`, Stamp(now), string(webhook.NotDelivered), Stamp(stale))
		if err != nil {
			return err
		}
		return t.Execute(ctx, `DELETE FROM webhooks WHERE given_up <> '' AND given_up < ?`, Stamp(old))
	})
}
