// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"context"
	"errors"
	"time"

	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
)

// findings writes the events of one batch, and begins every finding before it updates it. The log may have them the
// other way round: an item is stored in the queue before the decision about its message is recorded.
type findings struct {
	store Store
	begun map[ledger.ID]bool // findings of which the batch has an event
	early map[int64]bool     // records that the batch already has, before their place
}

func (f *findings) append(ctx context.Context, body []byte, index int64, st *ledger.Statement) ([]byte, error) {
	d, ok := detectionOf(index, st)
	if !ok || f.early[index] {
		return body, nil
	}
	if about(d, st) && !f.begun[st.Of] {
		e, begins, err := f.beginning(ctx, st.Of)
		switch {
		case err != nil:
			return body, err
		case begins == nil:
			d.Activity = activityCreate // no other record begins this finding
		case e.Index > index:
			// The record is sent again at its place if that is in another batch: receivers know it by its id.
			body, f.early[e.Index] = mustAppend(begins, body), true
		}
	}
	if st.Of != (ledger.ID{}) {
		f.begun[st.Of] = true
	} else {
		f.begun[st.ID] = true
	}
	return mustAppend(d, body), nil
}

func mustAppend(d *detection, body []byte) []byte {
	body, _ = d.append(body)
	return body
}

// about reports whether an event updates a finding whose first record may stand behind it in the log.
func about(d *detection, st *ledger.Statement) bool {
	return d.Activity == activityUpdate && st.Kind != ledger.ResultReleased && st.Of != (ledger.ID{})
}

// beginning is the event that begins a finding, and the record of which it is made; nil: no record does.
func (f *findings) beginning(ctx context.Context, id ledger.ID) (sequence.Entry, *detection, error) {
	e, err := f.store.Get(ctx, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return e, nil, nil
	} else if err != nil {
		return e, nil, err
	}
	st, err := ledger.UnverifiedStatement(e.Envelope)
	if err != nil {
		return e, nil, nil // body counts it among those that cannot be read
	}
	d, ok := detectionOf(e.Index, st)
	if !ok || d.Activity != activityCreate {
		return e, nil, nil
	}
	return e, d, nil
}

// settleTime is how long an export waits for the record that begins a finding.
const settleTime = 10 * time.Second

// settled cuts a batch before a new record about a finding whose first record is not in the log yet.
func (s *Sender) settled(ctx context.Context, list [][]byte) ([][]byte, error) {
	if s.o.Format != FormatOCSF {
		return list, nil
	}
	for i, raw := range list {
		st, err := ledger.UnverifiedStatement(raw)
		if err != nil || time.Since(st.Time).Abs() > settleTime {
			continue
		}
		if d, ok := detectionOf(0, st); !ok || !about(d, st) {
			continue
		}
		if _, err := s.o.Store.Get(ctx, st.Of); errors.Is(err, ledger.ErrNotFound) {
			return list[:i], nil
		} else if err != nil {
			return nil, err
		}
	}
	return list, nil
}
