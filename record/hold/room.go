// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"context"
	"fmt"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Share is a part of the queue that has a bound of its own.
type Share string

// The shares.
const (
	OfAll       Share = "queue"
	OfServer    Share = "server"
	OfPrincipal Share = "principal"
)

// A Usage is what the items that are held or released use of a share.
type Usage struct {
	Of    Share
	Name  string // of the server or the principal
	Items int
	Bytes int64 // of their bodies
}

// String describes a share that is full.
func (t Usage) String() string {
	whose := ""
	if t.Of != OfAll {
		whose = " for the " + string(t.Of) + " " + finding.Quote(t.Name)
	}
	return fmt.Sprintf("the queue is full%s, with %d items of %d bytes: further items are withheld for good; decide about items, or wait until they expire", whose, t.Items, t.Bytes)
}

// A Room bounds the queue. A server has a quarter of the bytes, and a principal that is known a quarter of the places and
// the bytes of a server: neither keeps the results of others out.
type Room struct {
	PerServer int   // items held or released of a server; 1,000
	Bytes     int64 // of all items; 2 GiB
	maxBody   int   // bytes of one item; a 64th of all
}

// limitsOf returns how many items and bytes a share has.
func (r Room) limitsOf(s Share) (items int, bytes int64) {
	switch s {
	case OfServer:
		return r.PerServer, r.Bytes / 4
	case OfPrincipal:
		return max(r.PerServer/4, 1), r.Bytes / 16
	}
	return int(^uint(0) >> 1), r.Bytes
}

// Fits reports whether the usage is within the bounds.
func (r Room) Fits(t Usage) bool {
	items, bytes := r.limitsOf(t.Of)
	return t.Items <= items && t.Bytes <= bytes
}

// IsFull reports whether the next item may be refused: no place is left, or no room for the longest item.
func (r Room) IsFull(t Usage) bool {
	items, bytes := r.limitsOf(t.Of)
	return t.Items >= items || t.Bytes+int64(r.maxBody) > bytes
}

// A FullError is ErrFull with the share that has no room.
type FullError struct{ Of Share }

func (e *FullError) Error() string {
	switch e.Of {
	case OfServer:
		return ErrFull.Error() + " for this server"
	case OfPrincipal:
		return ErrFull.Error() + " for this principal"
	}
	return ErrFull.Error()
}

// Is makes it an ErrFull.
func (e *FullError) Is(target error) bool { return target == ErrFull }

// FullShares returns the shares that are full.
func (q *Queue) FullShares(ctx context.Context) (full []Usage, err error) {
	list, err := q.store.HeldUsage(ctx, q.o.Now())
	for _, t := range list {
		if q.o.Room.IsFull(t) {
			full = append(full, t)
		}
	}
	return full, err
}
