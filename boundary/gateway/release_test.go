// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/pgtest"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

var database pgtest.Server

// releaseVar has the test program release an item instead of testing: a store and an id.
const releaseVar = "PELLUCID_TEST_RELEASE"

// TestReleaseElsewhere is what the other process of TestReleasedAtOnce does.
func TestReleaseElsewhere(t *testing.T) {
	t.Parallel()
	where, id, given := strings.Cut(os.Getenv(releaseVar), "\n")
	if !given {
		t.Skip("only for TestReleasedAtOnce")
	}
	s, err := storage.Open(context.Background(), where, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := hold.New(s, hold.Options{}).Release(context.Background(), id, "bob"); err != nil {
		t.Fatal(err)
	}
}

// TestReleasedAtOnce: what another process has released answers the next call, right after
// a call that found nothing; the server is not asked again.
func TestReleasedAtOnce(t *testing.T) {
	for name, where := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "held.db") },
		"postgres": func(t *testing.T) string { return database.Database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			where := where(t)
			s, err := storage.Open(context.Background(), where, storage.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			rule := &Rule{Hold: []finding.Code{finding.HiddenTag}}
			w := &ward{queue: hold.New(s, hold.Options{}), store: s}
			w.rig = newRig(t, func(c *Config) {
				c.Hold, c.Principal, c.Tools = w.queue, "ann", func(string) *Rule { return rule }
			})
			w.declare(tool("read", "") + "," + tool("look", ""))
			for range 2 {
				text, _ := w.ask(question, poisoned)
				id := w.heldID(text)
				other := exec.Command(os.Args[0], "-test.run=^TestReleaseElsewhere$")
				other.Env = append(os.Environ(), releaseVar+"="+where+"\n"+id)
				began := make(chan error, 1)
				go func() {
					out, err := other.CombinedOutput()
					if err != nil {
						t.Logf("%s", out)
					}
					began <- err
				}()
				for done := false; !done; { // a session that is busy, and knows that nothing is released
					select {
					case err := <-began:
						if done = true; err != nil {
							t.Fatal(err)
						}
					default:
					}
					if !done {
						w.ask(`{"name":"look"}`, harmless)
					}
				}
				got := w.fromQueue(question)
				if _, body, err := w.key.Open(got.text("result", "content", 0, "text"), frame.Origin{}); err != nil || body != "before" {
					t.Errorf("released: %q, %v", body, err)
				}
				if w.state(id) != hold.Taken {
					t.Errorf("state %s", w.state(id))
				}
			}
		})
	}
}

// BenchmarkNotReleased is what the queue costs a call for which nothing is released.
func BenchmarkNotReleased(b *testing.B) {
	for name, where := range map[string]func() string{
		"sqlite":   func() string { return filepath.Join(b.TempDir(), "held.db") },
		"postgres": func() string { return database.Database(b) },
	} {
		b.Run(name, func(b *testing.B) {
			s, err := storage.Open(context.Background(), where(), storage.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			q := hold.New(s, hold.Options{})
			for b.Loop() {
				if _, ok := q.Take(b.Context(), hold.Digest{1}); ok {
					b.Fatal("taken")
				}
			}
		})
	}
}
