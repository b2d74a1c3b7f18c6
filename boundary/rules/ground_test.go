// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// TestGround: the section says what an adapter is made of, and every mistake is told at its
// place.
func TestGround(t *testing.T) {
	g := parse(t, everything).Ground
	o := g.Options()
	if o.Policy.Confusables != scrub.Reject || o.Policy.Scope != scrub.Mixed || !o.Policy.DangerouslyRFCSetOnly || !o.DangerouslyIngestUntyped ||
		o.Default == nil || o.Default.ID() != "urn:cpml:press" || len(o.Profiles) != 1 || o.Validators == nil || o.Domains == nil || !o.Verdicts.Has("MISLEADING") ||
		!slices.Equal(o.Issuers, []string{"did:web:i.example"}) || g.Store.Path != "/var/g.db" || !g.DIDWeb {
		t.Errorf("%+v of %+v", o, g)
	}
	if !slices.Equal(g.Deviations(), []string{"dangerously_ingest_untyped", "dangerously_rfc_set_only"}) {
		t.Errorf("deviations: %q", g.Deviations())
	}
	if g := parse(t, "version: 1\n").Ground; g != nil {
		t.Errorf("without the section: %+v", g)
	}
	if g := parse(t, "version: 1\nground: {}\n").Ground; g == nil || g.Options().Policy.Confusables != scrub.Replace || g.Deviations() != nil {
		t.Errorf("empty: %+v", g)
	}
	for section, want := range map[string]string{
		"{profiles: [press.json]}":                           `ground.profiles[0]: want file:PATH`,
		`{profiles: ["file:press.json", "file:none.json"]}`:  `ground.profiles[1]: file "/etc/p/none.json" cannot be read`,
		`{profiles: ["file:press.json", "file:press.json"]}`: `ground.profiles[1]: another profile has the same identifier`,
		`{profiles: ["file:validators.json"]}`:               `ground.profiles[0]: consensus: document refused`,
		"{default_profile: urn:cpml:press}":                  `ground.default_profile: no profile of this configuration`,
		"{validators: file:press.json}":                      `ground.validators: ground: validators`,
		"{domains: file:press.json}":                         `ground.domains: consensus`,
		"{verdicts: [a b]}":                                  `ground.verdicts: attest: verdict name`,
		"{issuers: [you]}":                                   `ground.issuers[0]: this is not a DID`,
		"{policy: drop}":                                     `ground.policy: want replace, reject or flag`,
		"{dangerously_unframed: true}":                       `ground.dangerously_unframed: there is no such member`,
	} {
		_, err := Parse([]byte("version: 1\nground: "+section+"\n"), newFixed().options())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", section, err)
		}
	}
	w := newFixed()
	before, err := Parse([]byte("version: 1\nground: {validators: file:validators.json}\n"), w.options())
	if err != nil {
		t.Fatal(err)
	}
	w.files["/etc/p/validators.json"] = `{"version":"0.1"}`
	after, err := Parse([]byte("version: 1\nground: {validators: file:validators.json}\n"), w.options())
	if err != nil || Equal(before, after) || !slices.Equal(Diff(before, after).Sections, []string{"ground"}) {
		t.Errorf("a changed file: %v, %+v", err, Diff(before, after))
	}
}
