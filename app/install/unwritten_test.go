// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/audit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
)

// toKill names the state directory of the process that TestKilledIsTold kills.
const toKill = "PELLUCID_TEST_TO_KILL"

func openAt(t *testing.T, path string) (*state.Dir, *storage.Store, *install.Records) {
	t.Helper()
	dir, err := state.OpenAt(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := storage.Open(t.Context(), filepath.Join(path, "pellucid.db"), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := install.OpenRecords(s, dir, &rules.Evidence{Origin: "killed"}, install.PollSeldom, slog.New(slog.DiscardHandler))
	return dir, s, r
}

// countFiles counts the processes, dead ones included, whose files say that all is written, and that records wait.
func countFiles(path string) (written, waiting int) {
	files, _ := filepath.Glob(filepath.Join(path, "unwritten-*"))
	for _, f := range files {
		if b, _ := os.ReadFile(f); strings.HasPrefix(string(b), "-") {
			written++
		} else if len(b) > 0 {
			waiting++
		}
	}
	return written, waiting
}

// TestKilledIsTold: what verifies a log says that a process was killed with records which it had not written, first
// by its file, then by the record that the next process makes. It says nothing of a process that lives, or that has
// closed, or that was killed with nothing to write.
func TestKilledIsTold(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a locked file cannot be read there while it is held")
	}
	note := func(r *install.Records) { r.Note(&ledger.Event{Kind: ledger.RulesLoaded}) }
	if path := os.Getenv(toKill); path != "" {
		_, _, r := openAt(t, path)
		note(r)
		fmt.Println("begun")
		bufio.NewReader(os.Stdin).ReadString('\n')
		note(r)
		select {}
	}
	path := t.TempDir()
	dir, s, r := openAt(t, path)
	note(r)
	waittest.Until(t, "the log begins", func() bool { _ = r.Seq.Flush(t.Context()); return r.Seq.Figures().Size > 0 })
	told := func() string {
		t.Helper()
		if err := r.Seq.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		report, _, err := audit.Verify(context.Background(), s.Ledger(), dir, audit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !report.OK() {
			t.Errorf("%+v", report.Problems)
		}
		for _, s := range report.NotChecked {
			if strings.Contains(s, "kill") {
				return s
			}
		}
		return ""
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(path, "pellucid.db")+"?_txlock=immediate&_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	kill := func(busy bool) {
		t.Helper()
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledIsTold$")
		cmd.Env = append(os.Environ(), toKill+"="+path)
		in, _ := cmd.StdinPipe()
		out, _ := cmd.StdoutPipe()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if lines := bufio.NewScanner(out); !lines.Scan() || lines.Text() != "begun" {
			t.Fatalf("%q", lines.Text())
		}
		if busy {
			lock, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Rollback()
			fmt.Fprintln(in)
			waittest.Until(t, "a record waits", func() bool { _, waiting := countFiles(path); return waiting == 1 })
		} else {
			waittest.Until(t, "all is written", func() bool { written, _ := countFiles(path); return written == 2 })
			if said := told(); said != "" {
				t.Errorf("of a process that lives: %s", said)
			}
		}
		cmd.Process.Kill()
		cmd.Wait()
	}
	kill(false)
	if said := told(); said != "" {
		t.Errorf("of a process with nothing to write: %s", said)
	}
	kill(true)
	if said := told(); !strings.Contains(said, "before 1 kill of a process") {
		t.Errorf("%q", said)
	}
	r.Close()
	s.Close()
	for range 2 { // each says the same: it is told once
		dir, s, r = openAt(t, path)
		if killed, err := install.Killed(dir, "killed"); err != nil || len(killed) != 0 {
			t.Errorf("%v, %v", killed, err)
		}
		if said := told(); !strings.Contains(said, "before 1 kill of a process") {
			t.Errorf("%q", said)
		}
		r.Close()
		s.Close()
	}
	if names, _ := dir.Names(); strings.Contains(fmt.Sprint(names), "unwritten-") {
		t.Errorf("closed, and there is %v", names)
	}
}
