// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"time"
)

// WorthTurn is the number of bytes from which on a message is read and inspected in turn with others.
const WorthTurn = 256 << 10

// workPatience is how long a Room keeps its turn while it waits for the memory that its work costs: what has that
// memory may need a turn.
const workPatience = 250 * time.Millisecond

// Long messages take turns: a Budget has one turn for two processors, so that the other half of them is left for
// short messages, and its callers get them in the order that a Budget has for memory.

// WaitTurn waits until the Room has a turn, which ends after most. If it has a turn already, this one ends after
// most. The error is ErrFull or ErrGreedy, once ctx is done.
func (r *Room) WaitTurn(ctx context.Context, most time.Duration) error {
	if r == nil {
		return nil
	}
	if err := r.waitTurn(ctx); err != nil {
		return err
	}
	if r.turnEnd == nil {
		r.turnEnd = time.AfterFunc(most, r.turn.giveAll)
	} else {
		r.turnEnd.Reset(most)
	}
	return nil
}

// waitTurn waits for a turn without end.
func (r *Room) waitTurn(ctx context.Context) error {
	if r.turnEnd != nil {
		r.turnEnd.Stop()
	}
	r.turn.budget.mu.Lock()
	has := r.turn.has > 0
	r.turn.budget.mu.Unlock()
	if has {
		return nil
	}
	if err := r.turn.add(ctx, 1); err != nil {
		return err
	}
	r.budget.mu.Lock()
	defer r.budget.mu.Unlock()
	r.long = true
	return nil
}

// Work waits for a turn without end, and makes the Room larger as Add does.
func (r *Room) Work(ctx context.Context, n int64) error {
	if r == nil {
		return nil
	}
	if err := r.WaitTurn(ctx, workPatience); err != nil {
		return err
	}
	if err := r.Add(ctx, n); err != nil {
		return err
	}
	return r.waitTurn(ctx)
}

// HasRivals reports whether another Room of the Budget waits for a turn.
func (r *Room) HasRivals() bool {
	turns := r.turn.budget
	turns.mu.Lock()
	defer turns.mu.Unlock()
	return len(turns.waiting) > 0
}

// EndTurn ends the turn of the Room, if it has one.
func (r *Room) EndTurn() {
	if r == nil {
		return
	}
	if r.turnEnd != nil {
		r.turnEnd.Stop()
	}
	r.turn.giveAll()
}
