// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/evidence"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// killed names the state directory of the process that TestKilled starts and kills.
const killed = "PELLUCID_TEST_KILLED"

// recordForever records two decisions a millisecond, and says after each that it was taken.
func recordForever(path string) {
	dir, err := state.OpenAt(path)
	if err != nil {
		panic(err)
	}
	s, err := storage.Open(ctx, filepath.Join(path, "pellucid.db"), storage.Options{})
	if err != nil {
		panic(err)
	}
	seq := sequence.New(sequence.Options{Store: s.Ledger(), Origin: "killed", Keys: &sequence.Keyring{Dir: dir}})
	go seq.Run(ctx)
	r := evidence.New(evidence.Options{Store: s.Ledger(), Direct: seq, BestEffort: true, Wake: seq.Wake})
	for n := uint64(1); ; n++ {
		if n%2 == 0 {
			time.Sleep(time.Millisecond)
		}
		d := gateway.Decision{Time: time.Now(), Server: "files", Tool: "read", Method: "tools/call", Kind: "result", Verdict: gateway.Changed, SanitationVersion: "0.1", UnicodeVersion: "15.0.0"}
		binary.BigEndian.PutUint64(d.ID[:], n)
		if err := r.Record(d); err != nil {
			panic(err)
		}
		fmt.Println(n, time.Now().UnixNano())
	}
}

// TestKilled: what a process had taken in the mode best-effort when it was killed is in the log or waits for it, but
// for the last moment. How long that was is printed: it depends on the disk.
func TestKilled(t *testing.T) {
	if path := os.Getenv(killed); path != "" {
		recordForever(path)
	}
	path := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), killed+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	const enough = 3000
	var taken []int64 // when
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var n, at int64
		if _, err := fmt.Sscan(lines.Text(), &n, &at); err != nil || n != int64(len(taken))+1 {
			t.Fatalf("%q after %d", lines.Text(), len(taken))
		}
		if taken = append(taken, at); len(taken) == enough {
			cmd.Process.Kill()
		}
	}
	cmd.Wait()
	if len(taken) < enough {
		t.Fatalf("the process ended after %d records", len(taken))
	}
	s, err := storage.Open(ctx, filepath.Join(path, "pellucid.db"), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ids := make([]ledger.ID, len(taken))
	for i := range ids {
		binary.BigEndian.PutUint64(ids[i][:], uint64(i+1))
	}
	kept, err := s.Ledger().Known(ctx, ids)
	if err != nil {
		t.Fatal(err)
	}
	waiting, err := s.Ledger().Pending(ctx, enough, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range waiting {
		r, err := ledger.ReadSealed(p.Record)
		if err != nil {
			t.Fatal(err)
		}
		kept[r.Parsed.ID] = -1
	}
	lost := 0
	for lost < len(ids) {
		if _, ok := kept[ids[len(ids)-1-lost]]; ok {
			break
		}
		lost++
	}
	for i, id := range ids[:len(ids)-lost] {
		if _, ok := kept[id]; !ok {
			t.Errorf("record %d is lost, and later ones are kept", i+1)
		}
	}
	end := taken[len(taken)-1]
	moment := time.Duration(0)
	if lost > 0 {
		moment = time.Duration(end - taken[len(taken)-lost])
	}
	t.Logf("%d of %d records are lost (%.1f %%), those of the last %v", lost, len(ids), 100*float64(lost)/float64(len(ids)), moment.Round(time.Millisecond))
	if moment > 2*time.Second || strings.Contains(os.Getenv("PELLUCID_TEST_STRICT"), "kill") && moment > 50*time.Millisecond {
		t.Errorf("the records of the last %v are lost", moment)
	}
}
