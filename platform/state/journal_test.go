// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestJournalOpenedDuringWrite opens a journal at the moment when another process has
// written the first half of its line: the system shows a long line page by page. The
// second process must neither end that line nor begin its own inside it.
func TestJournalOpenedDuringWrite(t *testing.T) {
	d := open(t)
	path := filepath.Join(d.Path(), "decisions.jsonl")
	line := []byte(`{"pad":"` + strings.Repeat("p", 5000) + `"}` + "\n")
	held, err := lock(path+".lock", true) // as a process that appends holds it
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(line[:4096]); err != nil {
		t.Fatal(err)
	}
	opened, done := make(chan struct{}), make(chan error, 1)
	go func() {
		j, err := d.Journal("decisions.jsonl", JournalOptions{})
		close(opened)
		if err == nil {
			err = j.Append([]byte(`{"second":1}`))
		}
		done <- err
	}()
	<-opened
	time.Sleep(50 * time.Millisecond) // Append either waits for the lock by now or has written
	if _, err := f.Write(line[4096:]); err != nil {
		t.Fatal(err)
	}
	held.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if want := string(line) + "{\"second\":1}\n"; err != nil || string(b) != want {
		t.Errorf("the journal has %d bytes, want %d: it ends with %q, %v", len(b), len(want), b[max(0, len(b)-40):], err)
	}
}

// wideJournal keeps whatever processes write before they are killed, however late that is.
var wideJournal = JournalOptions{maxBytes: 1 << 20, keep: 1000}

// TestJournalKilledProcesses kills processes while they append, again and again. No line
// of the journal is empty or half afterwards, and none that was acknowledged is missing.
func TestJournalKilledProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pellucid")
	acknowledged := map[string]bool{}
	for range 12 {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "STATE_ROLE=endless", "PELLUCID_STATE="+dir)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			acknowledged[lines.Text()] = true
			if n == 40 {
				c.Process.Kill()
			}
		}
		c.Wait()
	}
	d, err := OpenAt(dir)
	if err != nil {
		t.Fatal(err)
	}
	j, err := d.Journal("decisions.jsonl", wideJournal)
	if err == nil { // what the last process may have left half is mended by the next one
		err = j.Append([]byte(`{"pid":0,"n":0}`))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	all, _ := records(t, dir)
	for _, r := range all {
		delete(acknowledged, fmt.Sprint(r["pid"], "/", r["n"]))
	}
	if len(acknowledged) > 0 {
		t.Errorf("%d acknowledged records are missing", len(acknowledged))
	}
}

// endless appends until it is killed, and prints what was acknowledged.
func endless(d *Dir) error {
	j, err := d.Journal("decisions.jsonl", wideJournal)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		if err := j.Append(fmt.Appendf(nil, `{"pid":%d,"n":%d,"pad":%q}`, os.Getpid(), i, strings.Repeat("p", 9000))); err != nil {
			return err
		}
		fmt.Printf("%d/%d\n", os.Getpid(), i)
	}
}

// TestJournalRecords reads a journal and the files that were put aside, while a record at
// the end is half-written and lines that are no records stand in the middle.
func TestJournalRecords(t *testing.T) {
	d := open(t)
	for name, text := range map[string]string{
		"decisions.jsonl":      "{\"n\":5}\n\n{\"n\":6}\n{\"n\":7",
		"decisions.jsonl.1":    "{\"n\":3}\n" + strings.Repeat("x", 2*MaxRecord+10) + "\n{\"n\":4}\n",
		"decisions.jsonl.2":    "{\"n\":1}\n{\"n\":2}\n",
		"decisions.jsonl.lock": "{\"n\":9}\n",
	} {
		if err := os.WriteFile(filepath.Join(d.Path(), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for record, err := range d.Records("decisions.jsonl") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(record))
	}
	if want := `[{"n":5} {"n":6} {"n":3} {"n":4} {"n":1} {"n":2}]`; fmt.Sprint(got) != want {
		t.Errorf("records %.200v, want %v", got, want)
	}
	for range d.Records("absent.jsonl") {
		t.Error("a journal that does not exist has a record")
	}
}
