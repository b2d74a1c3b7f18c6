// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
)

// ageFile is how a body begins that is encrypted to reviewers.
var ageFile = []byte("age-encryption.org/v1\n")

// DecideManyHeld implements hold.Store.
func (s *Store) DecideManyHeld(ctx context.Context, ids []string, d hold.Choice) (out hold.Decided, err error) {
	if len(ids) == 0 {
		return out, nil
	}
	list := Pad(Anys(ids), ids[0])
	query := "SELECT " + heldColumns + ", CASE WHEN substr(body, 1, 22) = ? THEN 1 ELSE 0 END FROM held WHERE id IN (" + Marks(len(list)) + ") AND (state = 'held' AND until > ?) IS TRUE ORDER BY at, id" // IS TRUE: SQLite would read all that is held, by state
	args := append(append([]any{ageFile}, list...), Stamp(d.Now))
	err = s.Update(ctx, "decide", func(t *Tx) error {
		out = hold.Decided{}
		var todo decideAll
		err := t.EachRow(ctx, func(r *sql.Rows) error {
			sealed := 0
			it, err := scanHeld(r, d.Now, &sealed)
			if err != nil {
				return err
			}
			return todo.add(&it, sealed != 0, &d, &out)
		}, query, args...)
		if err != nil {
			return err
		}
		return todo.write(ctx, t, &d)
	})
	if d.To == hold.Denied && (err != nil || !d.More) { // a decision that fails ends there: what it has denied so far goes
		s.wipe(ctx)
	}
	if err != nil {
		return hold.Decided{}, err
	}
	return out, nil
}

// decideAll is what one transaction is to write.
type decideAll struct {
	decide, propose []any
	records         [][]byte
}

// add says what becomes of an item.
func (a *decideAll) add(it *hold.Item, sealed bool, d *hold.Choice, sum *hold.Decided) error {
	to, list, count := d.To, &a.decide, &sum.Done
	switch {
	case d.To == hold.Denied:
	case sealed:
		sum.Sealed++
		return nil
	case it.People > 1 && it.Proposer == "":
		to, list, count = hold.Proposed, &a.propose, &sum.Proposed
	case it.People > 1 && hold.SamePerson(it.Proposer, d.By):
		sum.Second++
		return nil
	}
	if d.Evidence != nil {
		it.State, it.By, it.Decided = to, d.By, d.Now.UTC()
		record, err := d.Evidence(*it)
		if err != nil {
			return err
		}
		a.records = append(a.records, record)
	}
	*list = append(*list, it.ID)
	*count++
	return nil
}

func (a *decideAll) write(ctx context.Context, t *Tx, d *hold.Choice) error {
	if err := t.AddRecords(ctx, a.records...); err != nil {
		return err
	}
	if len(a.decide) > 0 {
		set := `state = ?, decider = ?, decided = ?`
		if d.To == hold.Denied {
			set += `, ` + destroyed
		}
		ids := Pad(a.decide, a.decide[0])
		err := t.Execute(ctx, `UPDATE held SET `+set+` WHERE id IN (`+Marks(len(ids))+`)`, append([]any{string(d.To), d.By, Stamp(d.Now)}, ids...)...)
		if err != nil {
			return err
		}
	}
	if len(a.propose) == 0 {
		return nil
	}
	ids := Pad(a.propose, a.propose[0])
	return t.Execute(ctx, `UPDATE held SET proposer = ?, proposed = ? WHERE id IN (`+Marks(len(ids))+`)`, append([]any{d.By, Stamp(d.Now)}, ids...)...)
}

// ProposeHeld implements hold.Store.
func (s *Store) ProposeHeld(ctx context.Context, id, by string, now time.Time, evidence []byte) error {
	var refused error
	err := s.Update(ctx, "propose", func(t *Tx) error {
		it, err := t.heldItem(ctx, id, now, &refused)
		switch {
		case err != nil || refused != nil:
			return err
		case it.Proposer != "" && hold.SamePerson(it.Proposer, by):
			refused = hold.ErrSecond
			return nil
		case it.Proposer != "": // at the same moment: this person can confirm it now
			refused = &hold.DecidedError{What: "item", State: string(hold.Proposed), At: it.Proposed, By: it.Proposer}
			return nil
		}
		if err := t.AddRecords(ctx, evidence); err != nil {
			return err
		}
		return t.Execute(ctx, `UPDATE held SET proposer = ?, proposed = ? WHERE id = ?`, by, Stamp(now), id)
	})
	if err == nil {
		err = refused
	}
	return err
}

// heldItem returns an item that is held; else refused says why it is not.
func (t *Tx) heldItem(ctx context.Context, id string, now time.Time, refused *error) (was hold.Item, err error) {
	*refused = hold.ErrNotFound
	err = t.EachRow(ctx, func(r *sql.Rows) error {
		it, err := scanHeld(r, now)
		was, *refused = it, nil
		return err
	}, `SELECT `+heldColumns+` FROM held WHERE id = ?`, id)
	switch {
	case err != nil || *refused != nil:
	case was.State == hold.Expired:
		*refused = &hold.DecidedError{What: "item", State: string(was.State), At: was.Until}
	case was.State != hold.Held:
		*refused = &hold.DecidedError{What: "item", State: string(was.State), At: was.Decided, By: was.By}
	}
	return was, err
}
