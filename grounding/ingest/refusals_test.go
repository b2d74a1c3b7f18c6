// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/state"
)

// TestRefusals: a refusal is one line of JSON, and one that cannot be written is told.
func TestRefusals(t *testing.T) {
	path := t.TempDir()
	dir, err := state.OpenAt(path)
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	r, err := OpenRefusals(dir, func(error) { failed++ })
	if err != nil {
		t.Fatal(err)
	}
	x := ground.Refused{At: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.FixedZone("", 3600)), Submitter: "lab\n\u202e", Digest: "sha256:00",
		Receipt: ground.Receipt{Code: "misshapen", Pointer: "/claim"}}
	r.Record(x)
	x.Submitter = ""
	r.Record(x)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(path, RefusalsName))
	const want = `{"at":"2026-01-02T02:04:05.006Z","submitter":"lab\n` + "\u202e" + `","digest":"sha256:00","accepted":false,"code":"misshapen","pointer":"/claim"}` + "\n" +
		`{"at":"2026-01-02T02:04:05.006Z","digest":"sha256:00","accepted":false,"code":"misshapen","pointer":"/claim"}` + "\n"
	if err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	if failed != 0 {
		t.Errorf("%d failures", failed)
	}
	x.Receipt.Pointer = string(make([]byte, state.MaxRecord))
	if r.Record(x); failed != 1 {
		t.Errorf("a line that cannot be written: %d failures", failed)
	}
	if err := (*Refusals)(nil).Close(); err != nil {
		t.Error(err)
	}
}
