// SPDX-License-Identifier: Apache-2.0

package app

import (
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

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
		name     string
		policy   *rules.Policy
		settings string // PATH=VALUE, apart by spaces
		want     string // what is open
		files    string // of the state directory
	}{
		{"nothing", nil, "admission.pins=off", "journal", "decisions.jsonl install.key"},
		{"pins", nil, "", "journal pins", "decisions.jsonl install.key"},
		{"a queue", nil, "admission.pins=off hold=hidden-tag", "journal queue store", "decisions.jsonl install.key pellucid.db"},
		{"a queue of one tool", nil, "admission.pins=off tools.a.hold=hidden-tag", "journal queue store", "decisions.jsonl install.key pellucid.db"},
		{"a queue of what is captured", nil, "admission.pins=off capture=received capture_of=changed", "journal queue store", "decisions.jsonl install.key pellucid.db"},
		{"a ledger", nil, "evidence.mode=best-effort", "pins queue records store", "install.key pellucid.db"},
		{"a ledger that is required", nil, "admission.pins=off evidence.mode=required", "queue records requires store", "install.key pellucid.db"},
		{"a policy", standard.Policy, "admission.pins=off", "journal policy queue store", "decisions.jsonl install.key pellucid.db"},
		{"a policy and a ledger", standard.Policy, "admission.pins=off evidence.mode=best-effort", "policy queue records store", "install.key pellucid.db"},
		{"classifiers", nil, "admission.pins=off classify=local", "classifiers journal", "decisions.jsonl install.key"},
		{"classifiers that hold", nil, "admission.pins=off classify=local classifiers.local.provider=local classifiers.local.mode=enforce", "classifiers journal queue store", "decisions.jsonl install.key pellucid.db"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PELLUCID_STATE", dir)
			t.Setenv("PELLUCID_INSTALL_KEY", "")
			one := rules.One{Name: "one", Command: []string{"srv"}, Policy: tt.policy}
			for spec := range strings.FieldsSeq(tt.settings) {
				path, value, _ := strings.Cut(spec, "=")
				one.Settings = append(one.Settings, rules.Setting{Flag: "--set", Path: path, Value: value})
			}
			r, _, err := rules.LoadOne("", rules.Options{}, one)
			if err != nil {
				t.Fatal(err)
			}
			r.Servers[0].Command = []string{"server"}
			w, err := OpenWrap(r, WrapOptions{Log: slog.New(slog.DiscardHandler)})
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
