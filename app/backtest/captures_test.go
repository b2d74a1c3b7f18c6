// SPDX-License-Identifier: Apache-2.0

package backtest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/record/captures"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// TestCaptures: a size counts where a capture of the call is kept that can be read, and is asked for only
// where a rule depends on it.
func TestCaptures(t *testing.T) {
	events := []ledger.Event{call(1, "read", "passed", nil), call(2, "read", "passed", nil), call(3, "read", "changed", nil), call(4, "read", "passed", nil),
		call(5, "read", "passed", nil), call(6, "list", "passed", nil)}
	asked := 0
	away := errors.New("the store is away")
	kept := func(_ context.Context, id string) (*captures.Capture, error) {
		asked++
		switch id {
		case events[0].ID.String():
			return &captures.Capture{Params: 40, Received: &captures.Part{Bytes: 5000}}, nil
		case events[1].ID.String():
			return &captures.Capture{Params: 900, Received: &captures.Part{Bytes: 20}}, nil
		case events[2].ID.String():
			return nil, capture.ErrSealed
		case events[3].ID.String():
			return nil, capture.ErrForeign
		}
		return nil, captures.ErrNotKept
	}
	for name, c := range map[string]struct {
		file                                         string
		held, denied, unknown, watched, read, sealed int64
		asked                                        int
	}{
		"result":    {file: "policy: {rules: [{name: big, on: result, when: size > 100 && tool == \"read\", then: hold}]}", held: 1, unknown: 3, read: 2, sealed: 1, asked: 5},
		"call":      {file: "policy: {rules: [{name: big, on: call, when: size > 100 && tool == \"read\", then: deny}]}", denied: 1, unknown: 3, read: 2, sealed: 1, asked: 5},
		"both":      {file: "policy: {rules: [{name: ask, on: call, when: size > 10, then: hold}, {name: big, on: result, when: size > 10, then: hold}]}", held: 2, unknown: 4, read: 2, sealed: 1, asked: 6},
		"watched":   {file: "policy: {mode: audit, rules: [{name: big, on: result, when: size > 100, then: hold}]}", watched: 1, read: 2, sealed: 1, asked: 6},
		"no size":   {file: "policy: {rules: [{name: all, on: result, when: tool == \"list\", then: hold}]}", held: 1},
		"not known": {file: "policy: {rules: [{name: acts, on: call, when: \"!hints.read_only\", then: hold}]}", unknown: 6},
	} {
		asked = 0
		r := run(t, events, Options{Trial: trial(t, c.file), Captures: kept})
		if r.Held.N != c.held || r.Denied.N != c.denied || r.NotEvaluable != c.unknown || r.Watched != c.watched || r.Captured != c.read || r.Sealed != c.sealed || asked != c.asked {
			t.Errorf("%s: asked %d times, %+v", name, asked, r)
		}
		var b strings.Builder
		if err := r.Write(&b); err != nil || strings.Contains(b.String(), "Captures that only reviewers can read: 1.") != (c.sealed > 0) {
			t.Errorf("%s: %v %s", name, err, &b)
		}
	}
	_, err := Run(t.Context(), memLog(func(i int64) []byte { return envelope(t, events[i]) }), Options{Size: 1,
		Trial:    trial(t, "policy: {rules: [{name: big, on: result, when: size > 100, then: hold}]}"),
		Captures: func(context.Context, string) (*captures.Capture, error) { return nil, away }})
	if !errors.Is(err, away) {
		t.Errorf("the store is away: %v", err)
	}
}
