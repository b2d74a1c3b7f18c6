// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

type listSink struct {
	mu  sync.Mutex
	all []Decision
}

func (s *listSink) Record(d Decision) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, d)
	return nil
}

// sums are how many records there are, and how many messages they stand for.
func (s *listSink) sums() (records, messages, withheld int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.all {
		messages += max(1, d.Repeated)
		for _, c := range d.Withheld {
			withheld += c.N
		}
	}
	return len(s.all), messages, withheld
}

// TestRepeats: what a server sends 30,000 times is a few records, which count all of it;
// what a client has asked for is a record each time.
func TestRepeats(t *testing.T) {
	t.Parallel()
	to := &listSink{}
	s := NewRepeats(to)
	drop := func(server string, code finding.Code) Decision {
		return Decision{Server: server, Kind: "result", Method: "other", Verdict: Dropped, Withheld: []policy.Count{{Code: code, N: 1}}}
	}
	var work sync.WaitGroup
	for range 3 {
		work.Go(func() {
			for range 10_000 {
				_ = s.Record(drop("a", finding.Unsolicited))
			}
		})
	}
	work.Wait()
	_ = s.Record(drop("b", finding.Unsolicited))
	for range 100 {
		_ = s.Record(Decision{Server: "a", Kind: "notification", Verdict: Changed, Inspected: 2, Findings: []policy.Count{{Code: "nfkc", N: 3}}})
		_ = s.Record(Decision{Server: "a", Kind: "result", Verdict: Withheld, Withheld: []policy.Count{{Code: finding.Violation, N: 1}}})
		_ = s.Record(drop("a", finding.Unapproved))
	}
	s.Close()
	_ = s.Record(drop("a", finding.Unsolicited)) // behind the end
	records, messages, withheld := to.sums()
	// Of 30,000 a second may have ended in between.
	if messages != 30_302 || withheld != 30_202 || records < 202+33 || records > 202+40*(repeatsAfter+2) {
		t.Errorf("%d records of %d messages, %d withheld", records, messages, withheld)
	}
	t.Logf("%d records of %d messages", records, messages)
}

// TestRepeatsKinds: kinds are counted apart, and so many of them at most; what is counted
// comes at the second's end without anyone's doing.
func TestRepeatsKinds(t *testing.T) {
	t.Parallel()
	to := &listSink{}
	s := NewRepeats(to)
	for i := range 500 {
		_ = s.Record(Decision{Server: "a", Kind: "notification", Method: fmt.Sprint("m", i), Verdict: Dropped, Withheld: []policy.Count{{Code: finding.Misshapen, N: 1}}})
	}
	for range 3000 {
		if _, messages, _ := to.sums(); messages == 500 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.Close()
	if records, messages, withheld := to.sums(); records > repeatsAfter+maxRepeats+1 || messages != 500 || withheld != 500 {
		t.Errorf("%d records of %d messages, %d withheld", records, messages, withheld)
	}
}

// TestRepeatsErrors: what has to be recorded fails as before.
func TestRepeatsErrors(t *testing.T) {
	t.Parallel()
	s := NewRepeats(brokenSink{})
	defer s.Close()
	if s.Record(Decision{Kind: "result", Method: "tools/call", Verdict: Passed}) == nil || s.Record(Decision{Kind: "error", Method: "tools/call", Verdict: Withheld}) == nil {
		t.Error("a record that is lost is not told of")
	}
}
