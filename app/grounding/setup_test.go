// SPDX-License-Identifier: Apache-2.0

package grounding

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

const pressProfile = `{"@context":"https://veritas-protocol.example/cpml/v0.1","@type":"ConsensusProfile","id":"urn:cpml:press",` +
	`"version":"1","issued":"2026-01-01T00:00:00Z","domains":[{"name":"journalism-default","weight":1}]}`

// TestSetup: flags say what an adapter is made of, and every mistake is told with its flag.
func TestSetup(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	press, validators, scores := write("press.json", pressProfile), write("validators.json", `{"version":"0.1"}`), write("scores.jsonl", "")
	all := Setup{Policy: "reject", Scope: "mixed", Verdicts: []string{"MISLEADING"}, Profiles: []string{press}, Default: "urn:cpml:press", Validators: validators,
		Scores: scores, Issuers: []string{"did:web:i.example"}, DangerouslyIngestUntyped: true, DangerouslyRFCSetOnly: true}
	o, err := all.compile(nil)
	if err != nil || o.Policy.Confusables != scrub.Reject || o.Policy.Scope != scrub.Mixed || !o.Policy.DangerouslyRFCSetOnly || !o.DangerouslyIngestUntyped ||
		o.Default == nil || o.Default.ID() != "urn:cpml:press" || len(o.Profiles) != 1 || o.Validators == nil || o.Scores == nil || !o.Verdicts.Has("MISLEADING") ||
		!slices.Equal(o.Issuers, []string{"did:web:i.example"}) {
		t.Errorf("%+v, %v", o, err)
	}
	if !slices.Equal(all.Deviations(), []string{"dangerously_ingest_untyped", "dangerously_rfc_set_only"}) {
		t.Errorf("deviations: %q", all.Deviations())
	}
	if o, err := (&Setup{}).compile(nil); err != nil || o.Policy.Confusables != scrub.Replace || o.Scores != nil || (&Setup{}).Deviations() != nil {
		t.Errorf("empty: %+v, %v", o, err)
	}
	for want, setup := range map[string]Setup{
		`ground: --profile: file "` + dir + `/none.json" cannot be read: there is no such file`: {Profiles: []string{press, dir + "/none.json"}},
		`ground: --profile: another profile has the same identifier`:                            {Profiles: []string{press, press}},
		`ground: --profile: consensus: document refused`:                                        {Profiles: []string{validators}},
		`ground: --default-profile: no --profile has that identifier`:                           {Default: "urn:cpml:press"},
		`ground: --validators: ground: validators`:                                              {Validators: press},
		`ground: --scores: trust scores: line 1`:                                                {Scores: press},
		`ground: --domains: consensus`:                                                          {Domains: press},
		`ground: --verdict: attest: verdict name`:                                               {Verdicts: []string{"a b"}},
		`ground: --issuer: this is not a DID`:                                                   {Issuers: []string{"you"}},
	} {
		if _, err := setup.compile(nil); err == nil || !strings.Contains(err.Error(), want) || codeOf(err) != exit.Config {
			t.Errorf("want %s: %v", want, err)
		}
	}
}

// TestFaultMakesNoStore: flags with a fault leave no store behind.
func TestFaultMakesNoStore(t *testing.T) {
	dir := stateDir(t)
	p := testPlan(t, dir)
	p.Setup.Issuers = []string{"you"}
	for name, open := range map[string]func() (*Adapter, error){
		"serve":  func() (*Adapter, error) { return Open(t.Context(), dir, p) },
		"import": func() (*Adapter, error) { return openImport(t.Context(), dir, p, nil) },
		"query":  func() (*Adapter, error) { return openQuery(t.Context(), dir, p) },
	} {
		if _, err := open(); codeOf(err) != exit.Config {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(p.DB); err == nil {
			t.Errorf("%s has made a store", name)
		}
	}
}
