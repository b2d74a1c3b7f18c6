// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
)

// TestTwentyWraps: as many clients start as many servers behind `pellucid wrap`, all on
// one SQLite file; a quarter of them are killed. The log holds, and has every record
// whose id a client was given, but for those of the killed whose records nobody waits for.
func TestTwentyWraps(t *testing.T) {
	t.Parallel()
	const processes, calls = 20, 8
	in := newInstall(t)
	var mu sync.Mutex
	given := map[string]bool{}
	var all sync.WaitGroup
	for n := range processes {
		mode, killed := "required", n%4 == 3
		if n%2 == 0 {
			mode = "best-effort"
		}
		m := mark()
		args := append([]string{"--name", "w", "--evidence", mode, "--"}, helperServer(t, "honest", m)...)
		t.Cleanup(func() { gone(t, m) })
		all.Go(func() {
			s := start(t, in.command(args...))
			s.initializeWith(`{}`)
			s.result("tools/list", `{}`)
			for i := range calls {
				// Twenty writers on a busy machine may keep one from its record for longer than
				// a call waits: then the result is withheld, and the client calls again.
				m := s.call("tools/call", behave)
				for tries := 0; m.Error != nil && strings.Contains(string(m.Error), `"code":7510`) && tries < 20; tries++ {
					m = s.call("tools/call", behave)
				}
				if m.Error != nil {
					t.Errorf("process %d: %s", n, m.Error)
					return
				}
				answer := m.Result
				var r struct {
					Meta map[string]json.RawMessage `json:"_meta"`
				}
				if json.Unmarshal(answer, &r) != nil || r.Meta["dev.pellucid/provenance"] == nil {
					t.Errorf("process %d: %s", n, answer)
					return
				}
				if mode == "required" || !killed {
					mu.Lock()
					given[evidenceOf(t, answer)] = true
					mu.Unlock()
				}
				if killed && i == calls/2 {
					s.cmd.Process.Kill()
					s.code()
					return
				}
			}
			if code := s.exit(); code != 0 {
				t.Errorf("process %d: exit code %d", n, code)
			}
		})
	}
	all.Wait()
	if len(given) < processes*calls*3/4 {
		t.Fatalf("%d ids", len(given))
	}
	for before := ""; ; { // the list is by time, so the record of index 0 need not be the last one
		args := []string{"ledger", "show", "--json", "--limit", "1000"}
		if before != "" {
			args = append(args, "--before", before)
		}
		rows := strings.TrimSpace(in.says(t, args...))
		if rows == "" {
			break
		}
		for row := range strings.SplitSeq(rows, "\n") {
			var r struct {
				Index     json.Number
				Statement struct{ Predicate struct{ ID string } }
			}
			if err := json.Unmarshal([]byte(row), &r); err != nil {
				t.Fatalf("%s: %v", row, err)
			}
			delete(given, r.Statement.Predicate.ID)
			before = r.Index.String()
		}
	}
	for id := range given { // what a killed process has left waits for somebody else, who is asked for it
		in.says(t, "ledger", "show", id)
	}
	keys := strings.TrimSpace(in.says(t, "ledger", "checkpoint", "--keys"))
	in.says(t, "ledger", "verify", "--key", keys)
}
