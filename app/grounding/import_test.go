// SPDX-License-Identifier: Apache-2.0

package grounding

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/grounding/demonstration"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
)

// noBar shows nothing.
func noBar(int64, func() string) (func(int64), func()) { return func(int64) {}, func() {} }

// TestRunImport: what an import says and ends with, and that its entries come out again
// as they went in.
func TestRunImport(t *testing.T) {
	dir := stateDir(t)
	db := filepath.Join(t.TempDir(), "g.db")
	all := demonstration.Attestations()
	file := filepath.Join(t.TempDir(), "in.jsonl")
	if err := os.WriteFile(file, append(bytes.Join(all, []byte("\n")), '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var of, last int64
	bar := func(n int64, _ func() string) (func(int64), func()) {
		of = n
		return func(n int64) { last = max(last, n) }, func() {}
	}
	stopped, stop := context.WithCancel(t.Context())
	defer stop()
	for _, c := range []struct {
		name string
		ctx  context.Context
		in   io.Reader
		bar  func(int64, func() string) (func(int64), func())
		code int // with no word
		says string
	}{
		{"a file", t.Context(), in, bar, 0, " 0 there already, 0 refused.\n"},
		{"again", t.Context(), bytes.NewReader(all[0]), noBar, 0, ": 0 stored, 1 there already, 0 refused.\n"},
		{"a refusal", t.Context(), strings.NewReader("{}\n"), noBar, exit.Failed, ", 1 refused.\n"},
		{"interrupted", stopped, interrupting(stop), noBar, exit.Failed, "Interrupted: "},
	} {
		var out, notice bytes.Buffer
		err := RunImport(c.ctx, dir, Plan{DB: db, Notice: &notice},
			Import{In: c.in, Out: &out, Bar: c.bar})
		if codeOf(err) != c.code || (err == nil) != (c.code == 0) || err != nil && err.Error() != "" {
			t.Errorf("%s: %d, %v", c.name, codeOf(err), err)
		}
		if !strings.Contains(notice.String(), c.says) {
			t.Errorf("%s: says %s, want %s", c.name, &notice, c.says)
		}
	}
	if info, err := in.Stat(); err != nil || of != info.Size() || last <= 0 || last >= of {
		t.Errorf("the bar went to %d of %d, %v", last, of, err)
	}
	var out bytes.Buffer
	if err := Export(t.Context(), dir, db, 1, 2, &out); err != nil {
		t.Fatal(err)
	}
	for i, line := range bytes.Split(bytes.TrimSuffix(out.Bytes(), []byte("\n")), []byte("\n")) {
		var entry struct{ Original string }
		if err := json.Unmarshal(line, &entry); err != nil || entry.Original != string(all[i+1]) {
			t.Errorf("line %d: %s, %v", i, line, err)
		}
	}
	if n := bytes.Count(out.Bytes(), []byte("\n")); n != 2 {
		t.Errorf("%d lines", n)
	}
	full := errors.New("no space left")
	if err := Export(t.Context(), dir, db, 0, 0, failingWriter{full}); !errors.Is(err, full) || codeOf(err) != 0 {
		t.Errorf("an output that takes no more: %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// interrupting is an input that has the import interrupted when it is read.
type interrupting func()

func (f interrupting) Read([]byte) (int, error) { f(); return 0, io.EOF }

// TestQuery: a question that cannot be answered ends with a code of its own.
func TestQuery(t *testing.T) {
	dir := stateDir(t)
	p := Plan{Notice: io.Discard}
	for _, c := range []struct {
		name string
		r    ground.Request
		code int
	}{
		{"known", ground.Request{Query: "sea level"}, 0},
		{"unknown", ground.Request{Query: "xyzzy"}, 0},
		{"empty", ground.Request{}, exit.Usage},
		{"no such domain", ground.Request{Query: "sea level", Domain: "no-such"}, exit.Usage},
		{"a profile that is none", ground.Request{Query: "sea level", Document: []byte("{")}, exit.Config},
	} {
		answer, err := Query(t.Context(), dir, p, c.r)
		if codeOf(err) != c.code || (err == nil) != (c.code == 0) || (answer == nil) != (c.code != 0) {
			t.Errorf("%s: %s, %d, %v", c.name, answer, codeOf(err), err)
		}
	}
}
