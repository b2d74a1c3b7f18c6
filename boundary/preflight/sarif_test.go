// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/pinview"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
)

// readSARIF reads a file and holds it to what the schema of SARIF 2.1.0 requires of the
// members that are used, and to what its prose adds.
func readSARIF(t *testing.T, path string) *sarifLog {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range b {
		if c != '\n' && c < ' ' {
			t.Fatalf("byte %d is a control character", i)
		}
	}
	var log sarifLog
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.DisallowUnknownFields()
	if err := d.Decode(&log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || !strings.HasSuffix(log.Schema, "/sarif-2.1.0.json") || len(log.Runs) != 1 {
		t.Errorf("version %q, schema %q, %d runs", log.Version, log.Schema, len(log.Runs))
	}
	run := log.Runs[0]
	driver := run.Tool.Driver
	if driver.Name == "" || len(run.Invocations) != 1 || run.Results == nil {
		t.Error("no name of the tool, no invocation, or results that are null")
	}
	levels := []string{"none", "note", "warning", "error"}
	for i, r := range driver.Rules {
		if r.ID == "" || r.ShortDescription.Text == "" || !slices.Contains(levels, r.Default.Level) ||
			slices.ContainsFunc(driver.Rules[:i], func(o sarifRule) bool { return o.ID == r.ID }) {
			t.Errorf("rule %+v", r)
		}
	}
	names := map[string]bool{}
	for i, l := range run.LogicalLocations {
		if l.Name == "" || l.Kind == "" || names[l.FullyQualifiedName] || l.ParentIndex != nil && (*l.ParentIndex < 0 || *l.ParentIndex >= i) {
			t.Errorf("logical location %d: %+v", i, l)
		}
		names[l.FullyQualifiedName] = true
	}
	for _, r := range run.Results {
		if r.RuleIndex >= len(driver.Rules) || driver.Rules[r.RuleIndex].ID != r.RuleID || r.Message.Text == "" ||
			!slices.Contains(levels, r.Level) || len(r.Fingerprints) == 0 || len(r.Locations) != 1 || len(r.Locations[0].Logical) != 1 {
			t.Errorf("result %+v", r)
			continue
		}
		at := r.Locations[0].Logical[0]
		if at.Index >= len(run.LogicalLocations) || run.LogicalLocations[at.Index].FullyQualifiedName != at.FullyQualifiedName {
			t.Errorf("result at %+v", at)
		}
	}
	return &log
}

// TestSARIF: every finding has its rule and its place: server, item and field.
func TestSARIF(t *testing.T) {
	digest := surface.Digest{1}
	field := surface.Key{Kind: surface.Tool, Name: "n\u202ew"}
	r := &Report{Servers: []*Server{
		{Name: "a/b", File: "dir x/mcp.json", Conclusion: string(surface.Rejected), Fingerprint: &digest, Why: "why",
			Hidden:       []Hidden{{Code: "hidden-tag", Shown: `"x"`, Messages: []string{"say [this](https://e.example)\u202e"}, Kind: field.Kind, Item: field.Name, path: "/inputSchema/properties/a/default"}},
			MoreHidden:   2,
			Wording:      []Wording{{Place: "server /instructions", Family: "authority", Score: 10, Shown: `"y"`, path: "/instructions"}},
			NotInspected: []string{"blob"}},
		{Name: "c", Conclusion: string(surface.Differs), Fingerprint: &digest, Changes: []pinview.Change{
			{Verdict: surface.Changed, State: surface.Pending, Kind: field.Kind, Item: field.Name, Fields: []pinview.Field{{Path: "/description", Verdict: surface.Changed, Old: "old", New: "new\x1b[2J"}}},
			{Verdict: surface.Changed, State: surface.Approved, Kind: surface.Tool, Item: "fine"},
			{Verdict: surface.Added, State: surface.Blocked, Kind: surface.Tool, Item: "new"},
		}},
		{Name: "d", Conclusion: string(surface.Rejected), Why: "surface: refused"},
		{Name: "e", Conclusion: Unreachable, Why: "gone"},
		{Name: "f", Conclusion: skipped, Why: "disabled"},
		{Name: "g", Conclusion: string(surface.Rejected), Fingerprint: &digest, Why: "flagged", Said: "no", review: true},
		{Name: "h", Conclusion: string(surface.Clean), Fingerprint: &digest},
	}, Shadows: []Shadow{{How: string(surface.SameName), Server: "a/b", Other: "c", Tool: "now", key: field}}}
	path := t.TempDir() + "/x.sarif"
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.WriteSARIF(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	run := readSARIF(t, path).Runs[0]
	var got []string
	for _, x := range run.Results {
		got = append(got, x.RuleID+" "+x.Level+" "+x.Locations[0].Logical[0].FullyQualifiedName)
	}
	want := []string{
		`hidden-text error "a/b"/tool "n\u202ew"/inputSchema/properties/a/default`,
		`hidden-text error "a/b"`,
		`wording warning "a/b"/server/instructions`,
		`not-inspected note "a/b"`,
		`surface-changed error "c"/tool "n\u202ew"/description`,
		`surface-changed error "c"/tool new`,
		`surface-refused error "d"`,
		`server-unreachable error "e"`,
		`not-inspected note "f"`,
		`review-rejected error "g"`,
		`shadowing warning "a/b"/tool "n\u202ew"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	first := run.Results[0]
	if at := first.Locations[0].Physical; at == nil || at.Artifact.URI != "dir%20x/mcp.json" {
		t.Errorf("%+v", at)
	}
	if text := first.Message.Text; !strings.Contains(text, `\[this\](https`) || strings.ContainsRune(text, '\u202e') {
		t.Errorf("%q", text)
	}
}
