// SPDX-License-Identifier: Apache-2.0

package ground_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/conform"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("the schema refers to another document")
}

// compiled is OutputSchema, by the draft that it is written for and by the one
// that many clients' validators suppose.
func compiled(t testing.TB, d *jsonschema.Draft) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(ground.OutputSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(d)
	c.UseLoader(noLoader{})
	c.AssertFormat()
	if err := c.AddResource("answer.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("answer.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// valid wants answer to be what the schema declares.
func valid(t testing.TB, answer []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*jsonschema.Draft{jsonschema.Draft2020, jsonschema.Draft7} {
		if err := compiled(t, d).Validate(v); err != nil {
			t.Fatalf("draft %v: %v\n%s", d, err, answer)
		}
	}
}

// A declared checks every answer of an adapter against the schema.
type declared struct {
	tested
	t       *testing.T
	schema  *jsonschema.Schema
	answers int
}

func (d *declared) check(a conform.Answer) {
	if a.JSON == nil {
		return
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.JSON))
	if err == nil {
		err = d.schema.Validate(v)
	}
	if err != nil {
		d.t.Errorf("%v\n%s", err, a.JSON)
	}
	d.answers++
}

func (d *declared) Query(ctx context.Context, query string) (conform.Answer, error) {
	a, err := d.tested.Query(ctx, query)
	d.check(a)
	return a, err
}

func (d *declared) Fetch(ctx context.Context, hash string) (conform.Answer, bool, error) {
	a, ok, err := d.tested.Fetch(ctx, hash)
	d.check(a)
	return a, ok, err
}

// TestSchemaCorpus: every answer about every vector of the adversarial corpus is
// of the schema.
func TestSchemaCorpus(t *testing.T) {
	d := &declared{tested: tested{newAdapter(t, ground.Options{})}, t: t, schema: compiled(t, jsonschema.Draft2020)}
	if _, err := (&conform.Runner{Adapter: d}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d.answers < 400 {
		t.Errorf("%d answers", d.answers)
	}
}

// answersOfAllKinds returns answers in which every member that may be there is.
func answersOfAllKinds(t testing.TB) map[string][]byte {
	t.Helper()
	a := newAdapter(t, ground.Options{Now: testClock, Policy: attest.Policy{Confusables: scrub.Flag, DangerouslyRFCSetOnly: true}})
	const claim = "Bees can count."
	long := strings.Repeat("Long words. ", 400)
	rs := ingest(t, a,
		saying{by: "a", claim: claim, rationale: long, topic: "biology:bees", group: "urn:group:bees", expires: testTime.AddDate(1, 0, 0),
			quotes: []string{"One.", "Two.", "Three.", "Four.", "Five.", "Six."}},
		saying{by: "b", claim: claim, verdict: "FALSE", rationale: "p\u0430ypal 10\u2076 \ufb01ve\u202e [INST]", topic: "biology:bees"},
		saying{by: "c", claim: claim, issued: testTime.AddDate(-2, 0, 0), expires: testTime.AddDate(-1, 0, 0)},
		saying{by: "c", claim: "Bees can dance.", group: "urn:group:bees"},
		saying{by: "d", claim: claim, dependsOn: []string{"https://example.org/gone"}},
	)
	profile := []byte(`{"@context":"https://veritas-protocol.example/cpml/v0.1","@type":"ConsensusProfile","id":"urn:cpml:mine",` +
		`"version":"1","issued":"2020-01-01T00:00:00Z","domains":[{"name":"scientific-default","weight":0.123}],` +
		`"topics":{"biology":{"weights":{"scientific-default":1}}}}`)
	all := map[string][]byte{}
	for name, r := range map[string]ground.Request{
		"words": {Query: "can bees count?"}, "claim": {Query: claim}, "none": {Query: "zzz"}, "group": {Query: "urn:group:bees"},
		"domain": {Query: claim, Domain: "journalism-default"}, "limit": {Query: claim, Limit: 1},
		"profile": {Query: "topic:biology bees count", Document: profile}, "hostile": {Query: "\u202e<b>\x00[x](y) \u0440\u0430"},
	} {
		answer, err := a.Ground(t.Context(), r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = answer
	}
	for i, r := range rs {
		answer, err := a.Attestation(t.Context(), r.Hash)
		if err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprint("attestation ", i)] = answer
	}
	return all
}

func TestSchema(t *testing.T) {
	seen := ""
	for name, answer := range answersOfAllKinds(t) {
		t.Run(name, func(t *testing.T) { valid(t, answer) })
		seen += string(answer)
	}
	for _, member := range []string{"expires", "deviations", "kept", "next_expiry", "group_id", "topic", "out_end", "override", "votes_omitted"} {
		if !strings.Contains(seen, `"`+member+`":`) {
			t.Errorf("no answer has %q: the test shows less than it should", member)
		}
	}
}

// TestSchemaRefuses: the schema says something.
func TestSchemaRefuses(t *testing.T) {
	answer := string(answersOfAllKinds(t)["attestation 0"])
	s := compiled(t, jsonschema.Draft2020)
	for name, c := range map[string]struct{ old, new string }{
		"type":          {`GroundedAttestationResponse`, `Other`},
		"version":       {`"@version":"0.1"`, `"@version":"0.2"`},
		"warning":       {`MUST NOT be interpreted`, `may be interpreted`},
		"frame type":    {`veritas:UntrustedValidatorText`, `veritas:Text`},
		"no frame":      {`"_untrusted_text":`, `"text":`},
		"no quotes":     {`"_untrusted_quote":`, `"quote":`},
		"bare quote":    {`"evidence":[`, `"evidence":["bare"],"x":[`},
		"summary":       {`"validator_count":`, `"count":`},
		"member":        {`"query":`, `"note":"x","query":`},
		"meta member":   {`"_meta":{`, `"_meta":{"note":"x",`},
		"hash":          {`"hash":"sha256:`, `"hash":"sha512:`},
		"record":        {`"out_end":`, `"outEnd":`},
		"verdict":       {`"primary_verdict":"`, `"primary_verdict":"very `},
		"no provenance": {`"provenance":`, `"origins":`},
		"time":          {`"answered_at":"2026`, `"answered_at":"on 2026`},
	} {
		broken := strings.Replace(answer, c.old, c.new, 1)
		if broken == answer {
			t.Errorf("%s: nothing to break", name)
			continue
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(broken))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if s.Validate(v) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestSchemaNamesNoDialect: a validator of another draft would refuse a dialect that it does
// not know.
func TestSchemaNamesNoDialect(t *testing.T) {
	if strings.Contains(string(ground.OutputSchema()), "$schema") {
		t.Error("the schema names a dialect")
	}
}
