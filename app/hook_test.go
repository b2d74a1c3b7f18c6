// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/logs"
	"github.com/pellucid-mcp/pellucid/platform/logtest"
)

func hookOptions(t *testing.T) (o HookOptions, log *logtest.Buffer, state string) {
	t.Helper()
	state = t.TempDir()
	t.Setenv("PELLUCID_STATE", state)
	log = &logtest.Buffer{}
	return HookOptions{Config: filepath.Join(t.TempDir(), "pellucid.yaml"), Log: func(*rules.Rules) *slog.Logger { return logs.New(log, false, slog.LevelInfo) }}, log, state
}

const hiddenEvent = `{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_response":{"stdout":"hel\u200blo","stderr":""}}`

// TestHooksChange: while the configuration changes, each event is decided by one of its versions, and afterwards by the last.
func TestHooksChange(t *testing.T) {
	o, _, _ := hookOptions(t)
	write := func(maxChars int) {
		if err := os.WriteFile(o.Config, fmt.Appendf(nil, "version: 1\nservers: {claude-code: {max_chars: %d}}\n", maxChars), 0o600); err != nil {
			t.Error(err)
		}
	}
	write(100_000)
	h := &Hooks{options: o, open: map[string]*Hook{}}
	defer h.Close()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				// A file that is half written gets no answer: the client runs the program.
				if a := string(h.Answer(t.Context(), "claude-code", []byte(hiddenEvent))); a != "" && !strings.Contains(a, "\\nhello\\n</pellucid-") {
					t.Error(a)
				}
			}
		})
	}
	for i := range 10 {
		write(1000 + i)
	}
	all.Wait()
	write(8)
	long := strings.Replace(hiddenEvent, "lo", "lo and more", 1)
	if a := string(h.Answer(t.Context(), "claude-code", []byte(long))); !strings.Contains(a, "cut by Pellucid") {
		t.Error(a)
	}
	for name, want := range map[string]string{"codex": "{}", "vim": ""} {
		if a := string(h.Answer(t.Context(), name, []byte(`{}`))); a != want {
			t.Errorf("%s: %q", name, a)
		}
	}
}

// TestHookUndecided: an event that cannot be decided is in the log and in the record, and the host goes on.
func TestHookUndecided(t *testing.T) {
	o, log, state := hookOptions(t)
	o.Config = ""
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	h, err := OpenHook("claude-code", o)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if a := h.Answer(t.Context(), []byte(hiddenEvent[:40])); !bytes.HasPrefix(a, []byte(`{"systemMessage":`)) {
		t.Errorf("%s", a)
	}
	records, err := os.ReadFile(filepath.Join(state, "decisions.jsonl"))
	if err != nil || !strings.Contains(string(records), `"server":"claude-code"`) || !strings.Contains(string(records), `"not_inspected":{"no-room":1}`) || !strings.Contains(log.String(), "level=WARN") {
		t.Errorf("%s %v %s", records, err, log)
	}
}
