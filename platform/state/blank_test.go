// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestBlankRecords erases records while others append and the journal is put aside: every
// record is there, or blanked, once.
func TestBlankRecords(t *testing.T) {
	dir, err := OpenAt(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := dir.BlankRecords("none.jsonl", func([]byte) bool { return true }); n != 0 || err != nil {
		t.Fatalf("a journal that does not exist: %d, %v", n, err)
	}
	const each = 400
	record := func(who string, i int) []byte { return fmt.Appendf(nil, `{"submitter":%q,"n":%d}`, who, i) }
	var wg sync.WaitGroup
	for _, who := range []string{"alice", "bob", "carol"} {
		j, err := dir.journalOf(6<<10, 50)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer j.Close()
			for i := range each {
				if err := j.Append(record(who, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	ofAlice := func(b []byte) bool { return bytes.Contains(b, []byte(`"alice"`)) }
	erased := 0
	for range 20 {
		n, err := dir.BlankRecords("decisions.jsonl", ofAlice)
		if err != nil {
			t.Fatal(err)
		}
		erased += n
	}
	wg.Wait()
	n, err := dir.BlankRecords("decisions.jsonl", ofAlice)
	if err != nil {
		t.Fatal(err)
	}
	if erased += n; erased != each {
		t.Errorf("%d records were erased, want %d", erased, each)
	}
	files, err := filepath.Glob(filepath.Join(dir.Path(), "decisions.jsonl*"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	if strings.Contains(all.String(), "alice") {
		t.Error("a record of alice is left")
	}
	for _, who := range []string{"bob", "carol"} {
		if got := strings.Count(all.String(), who); got != each {
			t.Errorf("%d records of %s, want %d", got, who, each)
		}
	}
}

// FuzzBlankRecords holds that any file keeps its length and every line that does not match.
func FuzzBlankRecords(f *testing.F) {
	f.Add([]byte(`{"submitter":"alice","n":1}` + "\n" + `{"submitter":"bob"}` + "\n"))
	f.Add([]byte("alice\nalice alice alice alice\n\n\xff\x00alice"))
	f.Add(bytes.Repeat([]byte("a"), 3<<10))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir, err := OpenAt(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := dir.Write("decisions.jsonl", b); err != nil {
			t.Fatal(err)
		}
		match := func(record []byte) bool { return bytes.Contains(record, []byte("alice")) }
		if _, err := dir.BlankRecords("decisions.jsonl", match); err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(filepath.Join(dir.Path(), "decisions.jsonl"))
		if err != nil || len(after) != len(b) {
			t.Fatalf("%d bytes became %d: %v", len(b), len(after), err)
		}
		was, is := bytes.SplitAfter(b, []byte("\n")), bytes.SplitAfter(after, []byte("\n"))
		for i := range was {
			whole := bytes.HasSuffix(was[i], []byte("\n")) && len(was[i]) > len(blank)
			if whole && match(was[i]) {
				if !bytes.HasPrefix(is[i], []byte(blank)) || match(is[i]) {
					t.Errorf("line %d was not erased: %q", i, is[i])
				}
			} else if !bytes.Equal(was[i], is[i]) {
				t.Errorf("line %d was changed", i)
			}
		}
	})
}
