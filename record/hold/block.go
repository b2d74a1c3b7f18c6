// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// A Block withholds what a source delivers, for every caller, because text of that
// source has taken control of a model. It is of one text, of a tool, or of a server.
type Block struct {
	ID       string // 32 hex digits
	Server   string // label
	Tool     string // label; "": every tool
	Text     Digest // of a text as it was delivered; zero: every text
	Evidence string // id of the decision that it follows from
	Severity int    // of that, in thousandths

	Since  time.Time
	Until  time.Time // when it ends by itself
	Lifted time.Time // zero: not before
	By     string    // who lifted it
}

// Scope is how much a Block withholds: "text", "tool" or "server".
func (b *Block) Scope() string {
	switch {
	case b.Text != (Digest{}):
		return "text"
	case b.Tool != "":
		return "tool"
	}
	return "server"
}

// covers reports whether b withholds an answer with these texts.
func (b *Block) covers(server, tool string, texts []Digest) bool {
	return b.Server == server && (b.Tool == "" || b.Tool == tool) && (b.Text == Digest{} || slices.Contains(texts, b.Text))
}

// BlockOptions are the bounds of Blocks; a zero member is its default.
type BlockOptions struct {
	Keep     time.Duration // until a Block ends; 24 h
	remember time.Duration // how long one that has ended is still listed; 30 days
	Most     int           // in force; 10,000
	recheck  time.Duration // how long what is in force is believed; 1 s
	wait     time.Duration // for the store, while a result waits for its delivery; 1 s
	Now      func() time.Time

	// Evidence returns the ledger's record of a Block that comes to be, or is lifted.
	// What cannot be recorded does not happen. nil: nothing is recorded.
	Evidence func(Block) ([]byte, error)
}

// Blocks are the Blocks of a store. They are safe for concurrent use.
type Blocks struct {
	timed[Block]
	o BlockOptions

	mu     sync.Mutex
	list   []Block   // in force when it was read
	read   time.Time // zero: to be read again
	known  bool      // list has been read
	asking bool
}

// NewBlocks makes Blocks.
func NewBlocks(s TimedStore[Block], o BlockOptions) *Blocks {
	setDefault(&o.Keep, 24*time.Hour)
	setDefault(&o.remember, Remembered)
	setDefault(&o.recheck, time.Second)
	setDefault(&o.wait, time.Second)
	setDefault(&o.Most, 10_000)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Blocks{timed: timed[Block]{s, o.Most, o.remember, o.Now, o.Evidence}, o: o}
}

// Add puts b in force; Since and Until are set here. One of the same source that is in
// force already suffices.
func (bs *Blocks) Add(ctx context.Context, b Block) error {
	b.Since = bs.o.Now().UTC()
	b.Until = b.Since.Add(bs.o.Keep)
	if err := bs.Sweep(ctx); err != nil {
		return err
	}
	err := bs.add(ctx, b)
	if errors.Is(err, ErrExists) {
		return nil
	}
	bs.Forget()
	return err
}

// Lift ends a Block. by names the person.
func (bs *Blocks) Lift(ctx context.Context, id, by string) error {
	defer bs.Forget()
	return bs.end(ctx, id, by, func(b *Block, now time.Time) { b.Lifted, b.By = now, by })
}

// Forget has the next Covering look into the store: another process may have changed it.
func (bs *Blocks) Forget() {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.read = time.Time{}
}

// Covering returns the Block that withholds an answer, or false. It costs a query once
// in a while, for one caller at a time; the others use what is known, and wait for the
// first answer, before which nothing is. A store that does not answer ends no Block: what
// was in force stays so until its time.
func (bs *Blocks) Covering(ctx context.Context, server, tool string, texts []Digest) (Block, bool) {
	now := bs.o.Now()
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if !bs.asking && (bs.read.IsZero() || now.Sub(bs.read).Abs() >= bs.o.recheck) {
		bs.asking = true
		others := bs.known
		if others {
			bs.mu.Unlock()
		}
		ctx, stop := context.WithTimeout(ctx, bs.o.wait)
		list, err := bs.store.List(ctx, now, false)
		stop()
		if others {
			bs.mu.Lock()
		}
		bs.asking, bs.read = false, now
		if err == nil {
			bs.list, bs.known = list, true
		}
	}
	for _, b := range bs.list {
		if now.Before(b.Until) && b.covers(server, tool, texts) {
			return b, true
		}
	}
	return Block{}, false
}
