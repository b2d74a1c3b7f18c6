// SPDX-License-Identifier: Apache-2.0

package standing_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
)

// TestCurrent: the scores of a log are those of a replay, with a snapshot and without, and a
// snapshot that was changed is found.
func TestCurrent(t *testing.T) {
	w := newWorld(t)
	w.events(40)
	if err := w.sequencer(w.Store, nil).Flush(ctx); err != nil {
		t.Fatal(err)
	}
	l := w.Ledger()
	state, size, err := standing.Current(ctx, l)
	if err != nil || size < 40 {
		t.Fatalf("%d records: %v", size, err)
	}
	w.gives("without a snapshot", state.Snapshot(), size)
	if at, found, err := standing.CheckSnapshot(ctx, l, size); at != 0 || found || err != nil {
		t.Errorf("without a snapshot: %d, %v, %v", at, found, err)
	}
	o, err := standing.Latest(ctx, l, size)
	if err != nil {
		t.Fatal(err)
	}
	early, err := standing.Replay(ctx, l, 20, &o)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		what     string
		snapshot []byte
		at       int64
		changed  bool
	}{
		{"of the beginning", early.Snapshot(), 20, false},
		{"of another size", early.Snapshot(), 30, true},
		{"of the whole", state.Snapshot(), size, false},
		{"ahead of the log", state.Snapshot(), size + 1, true},
	} {
		if err := l.SaveScores(ctx, o.Name(), tt.snapshot, tt.at); err != nil {
			t.Fatal(err)
		}
		at, found, err := standing.CheckSnapshot(ctx, l, size)
		if at != tt.at || !found || errors.Is(err, standing.ErrSnapshot) != tt.changed || !tt.changed && err != nil {
			t.Errorf("%s: %d, %v, %v", tt.what, at, found, err)
		}
		if tt.what == "of another size" { // what is believed is the snapshot: trust replay is for this
			continue
		}
		if state, _, err := standing.Current(ctx, l); err != nil {
			t.Error(err)
		} else {
			w.gives(tt.what, state.Snapshot(), size)
		}
	}
}

// TestTable: scores for a person and for a program.
func TestTable(t *testing.T) {
	s := trust.New(trust.Options{})
	for _, o := range []trust.Origin{{Server: "a"}, {Server: "b", Tool: "t"}, {Validator: "ab"}} {
		s.Apply(trust.Observation{Kind: trust.Clean, Time: 1000, Origin: o, Proven: o.Validator != ""})
	}
	s.Apply(trust.Observation{Kind: trust.Hijack, Time: 1000, Origin: trust.Origin{Server: "b", Tool: "t"}})
	var people, program strings.Builder
	at := time.Unix(1000, 0)
	n, err := standing.WriteTable(&people, s, at)
	m, err2 := standing.WriteRows(&program, s, 9, at)
	if err != nil || err2 != nil || n != m || n != 4 {
		t.Fatalf("%d and %d scores: %v, %v: %s", n, m, err, err2, &people)
	}
	if got := people.String(); !strings.HasPrefix(got, "SCORE") || strings.Count(got, "\n") != n+1 || !strings.Contains(got, "  b/t           hijack 1970-01-01T00:16:40Z\n") || !strings.Contains(got, "  validator ab  -\n") {
		t.Errorf("%q", got)
	}
	if got := program.String(); strings.Count(got, "\n") != n || !strings.Contains(got, `{"validator":"ab","score":"`) || !strings.Contains(got, `"log_size":9,"at":"1970-01-01T00:16:40Z","trust":"`+(trust.Options{}).Name()+`"}`) || !strings.Contains(got, `"tool":"t","score":"0.301000","lowered_by":"hijack","lowered_at":"1970-01-01T00:16:40Z"`) {
		t.Errorf("%q", got)
	}
	people.Reset()
	if n, err := standing.WriteTable(&people, trust.New(trust.Options{}), at); n != 0 || err != nil || people.Len() > 0 {
		t.Errorf("without scores: %d, %v: %q", n, err, people.String())
	}
}
