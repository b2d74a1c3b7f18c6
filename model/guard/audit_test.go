// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// shelf is an AuditQueue, and keeps the records of runs.
type shelf struct {
	mu      sync.Mutex
	work    map[string][]byte
	records map[string][]byte
	saves   int
	fail    error
}

func (s *shelf) Put(_ context.Context, id string, work []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail == nil {
		s.work[id] = work
	}
	return s.fail
}

func (s *shelf) SaveRun(_ context.Context, id string, record []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[id], s.saves = record, s.saves+1
	return s.fail
}

func (s *shelf) LoadRun(_ context.Context, id string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records[id], s.fail
}

func newShelf() *shelf { return &shelf{work: map[string][]byte{}, records: map[string][]byte{}} }

var ownKey = llm.NewKey("env:K", func() (string, error) { return secret, nil })

// TestAuditQueue: what audit mode lets through is run by a worker that may be another
// process; one that is cut off records nothing and is gone on with; and what is queued
// holds no credentials.
func TestAuditQueue(t *testing.T) {
	for _, f := range formats {
		for _, stream := range []bool{false, true} {
			q := newShelf()
			r := newRig(t, obedient, func(o *guard.Options) { o.Audit, o.Audits, o.Key = true, q, ownKey })
			got, err := r.through(f, conversation(f, stream, "Sum up.", riddle), stream)
			if err != nil || len(got.Calls) != 1 {
				t.Fatalf("%s: %v, %d calls", f, err, len(got.Calls))
			}
			waittest.Until(t, "it is queued", func() bool { q.mu.Lock(); defer q.mu.Unlock(); return len(q.work) == 1 })
			if r.asked() != 1 || r.sink.n() != 0 {
				t.Fatalf("%s: asked %d times, %d records", f, r.asked(), r.sink.n())
			}
			for id, work := range q.work {
				if bytes.Contains(work, []byte(secret)) || strings.Contains(string(work), "Authorization") {
					t.Errorf("%s: the work holds credentials", f)
				}
				ctx, cancel := context.WithCancel(t.Context())
				n := 0
				cut := newRig(t, func(a ask) reply {
					if n++; n == 3 { // the plan is the first
						cancel()
					}
					return obedient(a)
				}, func(o *guard.Options) { o.Audit, o.Key, o.Concurrency = true, ownKey, 1 })
				if err := cut.guard.RunAudit(ctx, id, work, q); !errors.Is(err, context.Canceled) || cut.sink.n() != 0 || q.saves == 0 {
					t.Fatalf("%s: %v, %d records, %d saves", f, err, cut.sink.n(), q.saves)
				}
				worker := newRig(t, obedient, func(o *guard.Options) { o.Audit, o.Key = true, ownKey })
				if err := worker.guard.RunAudit(t.Context(), id, work, q); err != nil {
					t.Fatal(err)
				}
				s := worker.sink.last(t)
				if s.ID != id || !s.Audit || s.Response != "repair" || len(s.Runs) != 1 {
					t.Errorf("%s: %+v", f, s)
				}
				if whole := bytes.Count(s.Runs[0], []byte(`"replicate"`)); worker.asked() >= whole {
					t.Errorf("%s: asked %d times for %d answers: nothing of what was known was used", f, worker.asked(), whole)
				}
			}
		}
	}
}

// TestAuditQueueFails: what cannot be queued is counted; what cannot be kept or read is
// not recorded as a decision.
func TestAuditQueueFails(t *testing.T) {
	q := newShelf()
	r := newRig(t, obedient, func(o *guard.Options) { o.Audit, o.Audits, o.Key = true, q, ownKey })
	q.fail = errors.New("no")
	if got, err := r.through(format.Chat, conversation(format.Chat, false, "Sum up.", attack), false); err != nil || len(got.Calls) != 1 {
		t.Fatalf("%v, %d calls", err, len(got.Calls))
	}
	if _, metrics := r.get("/metrics"); !strings.Contains(metrics, `{result="audit-skipped"} 1`) {
		t.Errorf("not counted:\n%s", metrics)
	}
	q.fail = nil
	if _, err := r.through(format.Chat, conversation(format.Chat, false, "Sum up.", riddle), false); err != nil {
		t.Fatal(err)
	}
	q.fail = errors.New("no")
	for id, work := range q.work {
		if err := r.guard.RunAudit(t.Context(), id, work, q); err == nil || r.sink.n() != 0 {
			t.Errorf("%v, %d records", err, r.sink.n())
		}
		q.fail = nil
		r.sink.err = errors.New("no ledger")
		if err := r.guard.RunAudit(t.Context(), id, work, q); err == nil {
			t.Error("done, although it was not recorded")
		}
	}
	for _, bad := range []string{"", "{}", `{"Format":"x"}`} {
		if r.guard.RunAudit(t.Context(), "x", []byte(bad), q) == nil {
			t.Errorf("%q was run", bad)
		}
	}
	if _, err := guard.New(guard.Options{Upstream: "https://api.example", Audits: q}); err == nil {
		t.Error("queued without a key")
	}
}
