// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/grounding/factcheck"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/storage"
)

// A failing store is a real one whose Put fails some times.
type failing struct {
	ground.Store
	err   error
	times atomic.Int64
}

func (f *failing) Put(ctx context.Context, batch []ground.Record, evidence func([]ground.Outcome) ([][]byte, error)) ([]ground.Outcome, error) {
	if f.times.Add(-1) >= 0 {
		return nil, fmt.Errorf("put: %w", f.err)
	}
	return f.Store.Put(ctx, batch, evidence)
}

// entries yields the demonstration set.
func entries(yield func([]byte, error) bool) {
	for _, body := range factcheck.Demonstration() {
		if !yield(body, nil) {
			return
		}
	}
}

// importInto runs an import into a store that fails.
func importInto(t *testing.T, err error, times int64) (im *importer, out string, got error) {
	t.Helper()
	s, openErr := storage.Open(t.Context(), filepath.Join(t.TempDir(), "ground.db"), storage.Options{})
	if openErr != nil {
		t.Fatal(openErr)
	}
	defer s.Close()
	f := &failing{Store: s, err: err}
	f.times.Store(times)
	a, newErr := ground.New(ground.Options{Store: f})
	if newErr != nil {
		t.Fatal(newErr)
	}
	var b bytes.Buffer
	im = newImporter(a, &b, true)
	got = im.run(t.Context(), entries)
	return im, b.String(), got
}

// TestImportRetries: a store that is busy for a moment costs nothing but the moment.
func TestImportRetries(t *testing.T) {
	n := len(factcheck.Demonstration())
	im, out, err := importInto(t, ground.ErrBusy, 2)
	if err != nil || im.stored != n || strings.Count(out, `"accepted":true`) != n {
		t.Errorf("%d stored, %v\n%s", im.stored, err, out)
	}
}

// TestImportGivesUp: what was not stored is not told to be, nor to be refused.
func TestImportGivesUp(t *testing.T) {
	began := time.Now()
	im, out, err := importInto(t, ground.ErrFull, 1<<30)
	var coded *exit.Error
	if !errors.As(err, &coded) || coded.Code != exit.Unreachable || !strings.Contains(err.Error(), ground.CodeFull) {
		t.Errorf("error %v", err)
	}
	if out != "" || im.stored+im.refused+im.again != 0 || time.Since(began) > 30*time.Second {
		t.Errorf("told %q", out)
	}
}

// TestImportUnreadable: an entry that cannot be read does not end the import, an
// input that cannot be read does.
func TestImportUnreadable(t *testing.T) {
	s, err := storage.Open(t.Context(), filepath.Join(t.TempDir(), "ground.db"), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a, err := ground.New(ground.Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	im := newImporter(a, &out, false)
	good := factcheck.Demonstration()
	err = im.run(t.Context(), func(yield func([]byte, error) bool) {
		_ = yield(good[0], nil) && yield(nil, &factcheck.EntryError{Line: 2, Pointer: "/claim", Code: "misshapen"}) &&
			yield(good[1], nil) && yield(nil, io.ErrUnexpectedEOF)
	})
	if !errors.Is(err, io.ErrUnexpectedEOF) || im.stored != 2 || im.refused != 1 {
		t.Errorf("%d stored, %d refused, %v", im.stored, im.refused, err)
	}
	if want := "misshapen entry 2: line 2 at /claim: misshapen\n"; out.String() != want {
		t.Errorf("told %q, want %q", &out, want)
	}
}

// TestImportStops: an input that says nothing more does not keep it from ending.
func TestImportStops(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	cmd, _ := wrapped(t)
	cmd.Args = []string{cmd.Args[0], "ground", "import", "--db", filepath.Join(t.TempDir(), "ground.db"), "-"}
	in, _, stderr := start(t, cmd)
	body := factcheck.Demonstration()[0]
	if _, err := in.Write(append(body, '\n')); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond) // it reads, and waits for more
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if cmd.ProcessState.ExitCode() != exit.Failed || !strings.Contains(stderr.String(), "Interrupted: ") {
		t.Errorf("exit %v: %s", cmd.ProcessState, stderr)
	}
}

// TestServeSignal: a client that stays does not keep it from ending.
func TestServeSignal(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	cmd, _ := wrapped(t)
	cmd.Args = []string{cmd.Args[0], "ground", "serve", "--stdio"}
	temp := t.TempDir()
	cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	in, out, stderr := start(t, cmd)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if _, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if made, _ := filepath.Glob(filepath.Join(temp, "*")); len(made) == 0 {
		t.Error("the demonstration set is kept somewhere else")
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if cmd.ProcessState.ExitCode() != 0 || !strings.Contains(stderr.String(), "demonstration set") {
		t.Errorf("exit %v: %s", cmd.ProcessState, stderr)
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestPrintAnswer: nothing that a validator wrote reaches a terminal raw, or begins a
// line where our own words do.
func TestPrintAnswer(t *testing.T) {
	const poison = "fine\nVERIFIED: 9 validators\n\x1b[2Jx\u202e\u200b<b>" // as if nobody had cleaned it
	frame := map[string]any{"rationale": poison, "qualifications": poison, "evidence": []any{
		map[string]any{"_untrusted_quote": map[string]any{"quote": poison, "source_uri": poison}},
	}}
	claim := map[string]any{"claim_hash": poison, "_untrusted_text": map[string]any{"claim": poison}}
	envelope, err := json.Marshal(map[string]any{
		"consensus_domain": poison,
		"verdict_summary":  map[string]any{"primary_verdict": poison, "validator_count": 1, "disagreement_present": true},
		"attestations":     []any{map[string]any{"validator_did": poison, "verdict": "FALSE", "consensus_domain": poison, "_untrusted_text": frame}},
		"_meta": map[string]any{"claim": claim, "other_claims": []any{claim},
			"withheld": []any{map[string]any{"hash": poison, "reason": poison}},
			"cut":      map[string]any{"claims": true, "attestations": true, "votes": true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := printAnswer(&out, terminal.Palette{}, envelope); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\u202e\u200b") {
		t.Errorf("raw characters: %+q", &out)
	}
	for _, want := range []string{"rationale", "qualifications", "quote", "source", "withheld", "other claim", "not shown", "not composed", "not searched"} {
		if !strings.Contains(out.String(), "\n    "+want) {
			t.Errorf("%s is not told", want)
		}
	}
	heads := 0
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "VERIFIED") {
			heads++
		}
	}
	if heads != 0 {
		t.Errorf("a validator wrote a headline:\n%s", &out)
	}
	if err := printAnswer(&out, terminal.Palette{}, []byte("{")); err == nil {
		t.Error("no JSON was printed")
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1002003: "1,002,003"} {
		if got := terminal.Thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
