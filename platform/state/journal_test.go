// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bufio"
	"errors"
	"fmt"
	"io"
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
	if _, err := f.Write(line[:4096]); err != nil {
		t.Fatal(err)
	}
	opened, done := make(chan struct{}), make(chan error, 1)
	go func() {
		j, err := d.Journal("decisions.jsonl", nil)
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
	f.Close()
	held.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if want := string(line) + "{\"second\":1}\n"; err != nil || string(b) != want {
		t.Errorf("the journal has %d bytes, want %d: it ends with %q, %v", len(b), len(want), b[max(0, len(b)-40):], err)
	}
}

// wideJournal keeps what processes write before they are killed, however late that is.
func wideJournal(d *Dir) (*Journal, error) { return d.journalOf(1<<20, 1000) }

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
	j, err := wideJournal(d)
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
	j, err := wideJournal(d)
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

// TestJournalReadMeanwhile puts a journal aside while each of its files is being read.
func TestJournalReadMeanwhile(t *testing.T) {
	d := open(t)
	j, err := d.journalOf(100, 2)
	if err != nil {
		t.Fatal(err)
	}
	j.grows = func(err error) { t.Error(err) }
	add := func() {
		for i := range 40 {
			if err := j.Append(fmt.Appendf(nil, `{"n":%d}`, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	add()
	readers := map[*os.File]string{}
	for f, err := range files(j.path, os.O_RDONLY) {
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		readers[f] = string(b)
	}
	add()
	if len(readers) != 3 {
		t.Errorf("%d files, want 3", len(readers))
	}
	for f, was := range readers {
		if b, err := io.ReadAll(f); err != nil || was == "" || !strings.HasPrefix(string(b), was) {
			t.Errorf("%s: %q, %v; it had %q", filepath.Base(f.Name()), b, err, was)
		}
		f.Close()
	}
}

// TestJournalNotPutAside: a journal that cannot be put aside grows, says so once, and loses nothing.
func TestJournalNotPutAside(t *testing.T) {
	d := open(t)
	j, err := d.journalOf(100, 2)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	j.grows = func(error) { told++ }
	add := func() {
		for i := range 30 {
			if err := j.Append(fmt.Appendf(nil, `{"n":%d}`, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	oldest := aside(j.path, 2) // elsewhere no file is put in the place of a directory
	if err := os.Mkdir(oldest, 0o700); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(j.path) // Windows does not rename what is open in this way
	if err != nil {
		t.Fatal(err)
	}
	add()
	if err := errors.Join(reader.Close(), os.RemoveAll(oldest)); err != nil {
		t.Fatal(err)
	}
	kept := 0
	for range d.Records("decisions.jsonl") {
		kept++
	}
	if kept != 30 || told != 1 {
		t.Errorf("%d records of 30, told %d times", kept, told)
	}
	add()
	if info, err := os.Stat(j.path); err != nil || info.Size() > j.maxBytes || told != 1 {
		t.Errorf("not put aside again: %v, told %d times", err, told)
	}
}

// TestShiftAgain: a shift that failed at its last step goes on from there.
func TestShiftAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	for i, text := range []string{"new", "", "middle", "old"} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(aside(path, i), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := shift(path, 3); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "new", "middle", "old"} {
		if got, _ := os.ReadFile(aside(path, i)); string(got) != want {
			t.Errorf("file %d has %q, want %q", i, got, want)
		}
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
