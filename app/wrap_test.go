// SPDX-License-Identifier: Apache-2.0

package app

import (
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// TestOpenWrap: a wrap opens what its rules ask for, and nothing else: it is one of many
// processes, and each part costs memory.
func TestOpenWrap(t *testing.T) {
	standard, err := rules.Parse([]byte("version: 1\npolicy: {preset: standard}\n"), rules.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		base  *rules.Rules
		pins  policy.Mode
		mode  rules.Recording
		judge bool
		opt   WrapOptions
		want  string // what is open
		files string // of the state directory
	}{
		{"nothing", nil, policy.Off, rules.NoEvidence, false, WrapOptions{}, "journal", "decisions.jsonl install.key"},
		{"pins", nil, policy.Enforce, rules.NoEvidence, false, WrapOptions{}, "journal pins", "decisions.jsonl install.key"},
		{"a queue", nil, policy.Off, rules.NoEvidence, false, WrapOptions{Hold: true}, "journal queue store", "decisions.jsonl install.key pellucid.db"},
		{"a ledger", nil, policy.Enforce, rules.BestEffort, false, WrapOptions{}, "pins records store", "install.key pellucid.db"},
		{"a ledger that is required", nil, policy.Off, rules.Required, false, WrapOptions{}, "records requires store", "install.key pellucid.db"},
		{"a policy", standard, policy.Off, rules.NoEvidence, false, WrapOptions{}, "journal policy", "decisions.jsonl install.key"},
		{"a policy and a ledger", standard, policy.Off, rules.BestEffort, false, WrapOptions{}, "policy records store", "install.key pellucid.db"},
		{"classifiers", nil, policy.Off, rules.NoEvidence, true, WrapOptions{}, "classifiers journal", "decisions.jsonl install.key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PELLUCID_STATE", dir)
			t.Setenv("PELLUCID_INSTALL_KEY", "")
			var tool rules.Tool
			if tt.judge {
				tool.Classifiers = []string{rules.Local}
			}
			s := rules.Server{Name: "one", Command: []string{"server"}, Admission: rules.Admission{Pins: tt.pins}}
			r := rules.Sole(tt.base, s, tool)
			r.Evidence.Mode = tt.mode
			tt.opt.Log = slog.New(slog.DiscardHandler)
			w, err := OpenWrap(r, tt.opt)
			if err != nil {
				t.Fatal(err)
			}
			cfg := w.treatment(r, w.server, w.log)
			var open []string
			for name, is := range map[string]bool{
				"journal": w.journal != nil, "pins": w.pins != nil, "queue": w.queue != nil && w.blocks != nil, "store": w.store != nil,
				"records": w.records != nil, "requires": cfg.RequireEvidence, "policy": cfg.Policy != nil && w.book() != nil, "classifiers": cfg.Classifiers != nil && w.shadow != nil,
			} {
				if is {
					open = append(open, name)
				}
			}
			slices.Sort(open)
			if got := strings.Join(open, " "); got != tt.want {
				t.Errorf("open: %s, want %s", got, tt.want)
			}
			if cfg.Frame != frame.KindFence || cfg.Sink == nil || cfg.Memory == nil || cfg.Observer != nil {
				t.Errorf("%+v", cfg)
			}
			w.Close()
			var files []string
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if name := e.Name(); slices.Contains(strings.Fields("decisions.jsonl install.key pellucid.db trust"), name) {
					files = append(files, name)
				}
			}
			if got := strings.Join(files, " "); got != tt.files {
				t.Errorf("files: %s, want %s", got, tt.files)
			}
		})
	}
}
