// SPDX-License-Identifier: Apache-2.0

package ground_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/grounding/store/storetest"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// testTime is what the adapters of the tests take for now.
var testTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func testClock() time.Time { return testTime }

// validator returns the key of a validator of that name.
func validator(t testing.TB, name string) attest.Key {
	t.Helper()
	seed := sha256.Sum256([]byte("validator " + name))
	k, err := attest.GenerateKey(bytes.NewReader(seed[:]))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A saying is an attestation to be; what is empty gets a default.
type saying struct {
	by, claim, verdict, domain, rationale, topic, group string

	issued, expires time.Time
	quotes          []string
	dependsOn       []string
}

// sign makes the attestation.
func (s saying) sign(t testing.TB) []byte {
	t.Helper()
	or := func(v, other string) string {
		if v == "" {
			return other
		}
		return v
	}
	if s.issued.IsZero() {
		s.issued = testTime.AddDate(0, -1, 0)
	}
	claim := map[string]any{"text": s.claim}
	if s.topic != "" {
		claim["topic"] = s.topic
	}
	if s.group != "" {
		claim["group_id"] = s.group
	}
	key := validator(t, s.by)
	doc := map[string]any{
		"@context": attest.Context, "@type": "veritas:Attestation", "canonicalisation_version": "0.3",
		"id":    fmt.Sprintf("urn:test:%x", sha256.Sum256(fmt.Append(nil, s))),
		"claim": claim, "verdict": or(s.verdict, "SUPPORTED"), "consensus_domain": or(s.domain, "scientific-default"),
		"rationale": s.rationale, "issued": s.issued.Format(time.RFC3339),
	}
	if !s.expires.IsZero() {
		doc["expires"] = s.expires.Format(time.RFC3339)
	}
	if len(s.dependsOn) > 0 {
		doc["depends_on"] = s.dependsOn
	}
	var evidence []any
	for _, q := range s.quotes {
		evidence = append(evidence, map[string]any{"quote": q, "uri": "https://example.org/source"})
	}
	if evidence != nil {
		doc["evidence"] = evidence
	}
	src, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if src, err = attest.Complete(src, key.DID()); err != nil {
		t.Fatal(err)
	}
	signed, err := attest.Sign(src, key, attest.SignOptions{Created: s.issued})
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// ingest hands in what is said, and wants it accepted.
func ingest(t testing.TB, a *ground.Adapter, all ...saying) []ground.Receipt {
	t.Helper()
	bodies := make([][]byte, len(all))
	for i, s := range all {
		bodies[i] = s.sign(t)
	}
	rs, err := a.Ingest(t.Context(), "test", bodies)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rs {
		if !r.Accepted {
			t.Fatalf("attestation %d: %+v", i, r)
		}
	}
	return rs
}

// An answered is an envelope as a client reads it.
type answered struct {
	Query   string
	Domain  string `json:"consensus_domain"`
	Summary struct {
		Verdict      string `json:"primary_verdict"`
		Validators   int    `json:"validator_count"`
		Disagreement bool   `json:"disagreement_present"`
	} `json:"verdict_summary"`
	Attestations []struct {
		Validator string `json:"validator_did"`
		Verdict   string
		Domain    string `json:"consensus_domain"`
		Text      struct {
			Type      string `json:"@type"`
			Warning   string
			Rationale string
			Evidence  []struct {
				Quote struct {
					Type    string `json:"@type"`
					Warning string
					Quote   string
					Source  string `json:"source_uri"`
				} `json:"_untrusted_quote"`
			}
		} `json:"_untrusted_text"`
	}
	Meta struct {
		Version  string           `json:"sanitation_version"`
		Stripped []map[string]any `json:"stripped_positions"`
		Claim    *struct {
			Hash  string `json:"claim_hash"`
			Match float64
			Text  struct{ Claim string } `json:"_untrusted_text"`
		}
		Others []struct {
			Hash string `json:"claim_hash"`
		} `json:"other_claims"`
		Provenance []struct{ Hash string }
		Withheld   []struct{ Hash, Reason string }
		Cut        struct{ Claims, Attestations, Votes bool }
		Freshness  struct {
			Answered time.Time `json:"answered_at"`
			Newest   time.Time `json:"newest_issued"`
			Expiry   time.Time `json:"next_expiry"`
		}
		Explanation struct {
			Outcome string
			Reasons map[string]int
			Omitted int `json:"votes_omitted"`
			Votes   []struct{ ID, Reason string }
		}
	} `json:"_meta"`
}

func decode(t testing.TB, b []byte) answered {
	t.Helper()
	var a answered
	if err := json.Unmarshal(b, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func ask(t testing.TB, a *ground.Adapter, r ground.Request) answered {
	t.Helper()
	b, err := a.Ground(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, b)
}

func verdicts(a answered) (out []string) {
	for _, e := range a.Attestations {
		out = append(out, e.Verdict)
	}
	return out
}

func TestGround(t *testing.T) {
	a := newAdapter(t, ground.Options{Now: testClock})
	const claim = "Water boils at a lower temperature on a mountain."
	ingest(t, a,
		saying{by: "a", claim: claim, rationale: "Pressure is lower.", quotes: []string{"It boils at 93 degrees."}},
		saying{by: "b", claim: claim},
		saying{by: "c", claim: claim, verdict: "FALSE"},
		saying{by: "d", claim: claim, verdict: "FALSE", issued: testTime.AddDate(-2, 0, 0), expires: testTime.AddDate(-1, 0, 0)},
		saying{by: "e", claim: claim, domain: "journalism-default"},
		saying{by: "a", claim: "Mountain goats are antelopes.", verdict: "FALSE"},
	)
	got := ask(t, a, ground.Request{Query: "does water boil at lower temperature on a mountain?"})
	if s := got.Summary; s.Verdict != "SUPPORTED" || s.Validators != 4 || !s.Disagreement {
		t.Errorf("summary: %+v", s)
	}
	if got.Domain != ground.EveryDomain {
		t.Errorf("domain: %q", got.Domain)
	}
	if got.Meta.Claim == nil || got.Meta.Claim.Text.Claim != claim {
		t.Errorf("claim: %+v", got.Meta.Claim)
	}
	if n := len(got.Meta.Others); n != 1 {
		t.Errorf("%d other claims", n)
	}
	if diff := cmp.Diff(map[string]int{"counted": 4, "expired": 1}, got.Meta.Explanation.Reasons); diff != "" {
		t.Error(diff)
	}
	if len(got.Meta.Provenance) != len(got.Attestations) {
		t.Errorf("provenance of %d for %d", len(got.Meta.Provenance), len(got.Attestations))
	}
	i := slices.IndexFunc(got.Meta.Provenance, func(p struct{ Hash string }) bool { return true })
	one := decode(t, must(a.Attestation(t.Context(), got.Meta.Provenance[i].Hash)))
	if diff := cmp.Diff(got.Attestations[i], one.Attestations[0]); diff != "" {
		t.Errorf("the tools disagree: %s", diff)
	}

	got = ask(t, a, ground.Request{Query: claim, Domain: "cpml:JournalismConsensus"})
	if got.Summary.Validators != 1 || got.Domain != "journalism-default" || got.Attestations[0].Domain != "journalism-default" {
		t.Errorf("in one domain: %+v", got.Summary)
	}
	// A limit lets every verdict have its say.
	got = ask(t, a, ground.Request{Query: claim, Limit: 2})
	if v := verdicts(got); !slices.Equal(v, []string{"SUPPORTED", "FALSE"}) || !got.Meta.Cut.Attestations || got.Summary.Validators != 4 {
		t.Errorf("limited: %v, cut %t", v, got.Meta.Cut.Attestations)
	}
	// What merely shares a word is listed; the verdict is not on it.
	got = ask(t, a, ground.Request{Query: "Which antiquarian bookshops of the lower Loire sell incunabula?"})
	if got.Meta.Claim != nil || got.Summary.Verdict != "UNVERIFIED" || len(got.Attestations) != 0 || len(got.Meta.Others) != 1 {
		t.Errorf("another question: %+v, %d others", got.Summary, len(got.Meta.Others))
	}
	got = ask(t, a, ground.Request{Query: "zzz"})
	if got.Meta.Claim != nil || got.Summary.Verdict != "UNVERIFIED" || got.Summary.Validators != 0 {
		t.Errorf("nothing: %+v", got.Summary)
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func TestQueryForms(t *testing.T) {
	a := newAdapter(t, ground.Options{Now: testClock})
	ingest(t, a,
		saying{by: "a", claim: "The sea level rises.", group: "urn:group:sea", topic: "science:climate:sea"},
		saying{by: "b", claim: "Sea levels have risen.", group: "urn:group:sea", topic: "science:climate:sea", verdict: "VERIFIED"},
		saying{by: "c", claim: "The sea level of an atlas is blue.", topic: "art:maps", verdict: "FALSE"},
	)
	for _, c := range []struct {
		name, query string
		validators  int
		verdict     string
	}{
		{"text", "The sea level rises", 1, "SUPPORTED"},
		{"group", "urn:group:sea", 2, "SUPPORTED"},
		{"unknown group", "urn:group:land", 0, "UNVERIFIED"},
		{"topic and text", "topic:art sea level", 1, "FALSE"},
		{"topic below", "topic:science:climate sea levels risen", 1, "VERIFIED"},
		{"topic alone", "topic:art:maps", 1, "FALSE"},
		{"topic that is none", "topic:art:", 0, "UNVERIFIED"},
		{"other topic", "topic:law sea level", 0, "UNVERIFIED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ask(t, a, ground.Request{Query: c.query})
			if got.Summary.Validators != c.validators || got.Summary.Verdict != c.verdict {
				t.Errorf("%+v", got.Summary)
			}
		})
	}
	text := ask(t, a, ground.Request{Query: "The sea level rises"})
	byHash := ask(t, a, ground.Request{Query: text.Meta.Claim.Hash})
	if diff := cmp.Diff(text.Attestations, byHash.Attestations); diff != "" {
		t.Error(diff)
	}
}

func TestProblems(t *testing.T) {
	a := newAdapter(t, ground.Options{Now: testClock})
	doc := []byte(`{"@context":"https://veritas-protocol.example/cpml/v0.1","@type":"ConsensusProfile","id":"urn:cpml:mine",` +
		`"version":"1","issued":"2020-01-01T00:00:00Z","domains":[{"name":"journalism-default","weight":1}]}`)
	for name, c := range map[string]struct {
		r    ground.Request
		want error
	}{
		"empty":         {ground.Request{Query: " \n\t"}, ground.QueryEmpty},
		"too long":      {ground.Request{Query: strings.Repeat("a", ground.MaxQuery+1)}, ground.QueryTooLong},
		"domain":        {ground.Request{Query: "x", Domain: "scientific"}, ground.DomainUnknown},
		"not believed":  {ground.Request{Query: "x", Document: doc, Domain: "scientific-default"}, ground.DomainNotBelieved},
		"profile":       {ground.Request{Query: "x", Profile: "urn:cpml:none"}, ground.ProfileUnknown},
		"document":      {ground.Request{Query: "x", Document: []byte(`{}`)}, ground.ProfileRefused},
		"long document": {ground.Request{Query: "x", Document: bytes.Repeat([]byte(" "), ground.MaxDocument+1)}, ground.ProfileRefused},
		"hash":          {ground.Request{Query: "sha256:abc"}, ground.HashMalformed},
		"limit":         {ground.Request{Query: "x", Limit: 101}, ground.LimitOutOfRange},
		"good":          {ground.Request{Query: "x", Document: doc}, nil},
	} {
		if _, err := a.Ground(t.Context(), c.r); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	for hash, want := range map[string]error{"": ground.HashMalformed, strings.Repeat("0", 64): ground.NotFound} {
		if _, err := a.Attestation(t.Context(), hash); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

// TestProfiles: a consumer's own profile decides, as the same one that the adapter
// holds does.
func TestProfiles(t *testing.T) {
	doc := []byte(`{"@context":"https://veritas-protocol.example/cpml/v0.1","@type":"ConsensusProfile","id":"urn:cpml:mine",` +
		`"version":"1","issued":"2020-01-01T00:00:00Z","domains":[{"name":"scientific-default","weight":1},` +
		`{"name":"journalism-default","weight":0.1}],"validators":{"trust":{"default":1}}}`)
	p, err := consensus.Compile(doc, nil)
	if err != nil {
		t.Fatal(err)
	}
	known, err := ground.ParseValidators(fmt.Appendf(nil,
		`{"version":"0.1","default":{"reputation":0.5},"validators":{%q:{"reputation":0}}}`, validator(t, "liar").DID()))
	if err != nil {
		t.Fatal(err)
	}
	a := newAdapter(t, ground.Options{Now: testClock, Profiles: []*consensus.Profile{p}, Validators: known})
	ingest(t, a,
		saying{by: "a", claim: "Tea is grown."},
		saying{by: "liar", claim: "Tea is grown.", verdict: "FALSE", rationale: "Believe me."},
		saying{by: "b", claim: "Tea is grown.", domain: "journalism-default", verdict: "FALSE"},
		saying{by: "c", claim: "Tea is grown.", domain: "journalism-default", verdict: "FALSE"},
	)
	own := ask(t, a, ground.Request{Query: "tea is grown", Document: doc})
	held := ask(t, a, ground.Request{Query: "tea is grown", Profile: "urn:cpml:mine"})
	if diff := cmp.Diff(own, held); diff != "" {
		t.Error(diff)
	}
	if own.Summary.Verdict != "SUPPORTED" || own.Domain != "urn:cpml:mine" {
		t.Errorf("%+v", own.Summary)
	}
	if v := verdicts(own); len(v) != 3 {
		t.Errorf("shown: %v: what does not count must not be", v)
	}
}

// TestEscapes: no byte of an answer is markup, and what was dropped is recorded.
func TestEscapes(t *testing.T) {
	a := newAdapter(t, ground.Options{Now: testClock})
	ingest(t, a, saying{by: "a", claim: "A < B and\u200b C > D & so on.", rationale: "x\u202e < y"})
	b := must(a.Ground(t.Context(), ground.Request{Query: "<b>a</b> b c\u200b d"}))
	if i := bytes.IndexAny(b, "<>&"); i >= 0 {
		t.Errorf("raw markup at %d: %.40q", i, b[i:])
	}
	got := decode(t, b)
	var fields []string
	for _, r := range got.Meta.Stripped {
		fields = append(fields, r["field"].(string))
	}
	slices.Sort(fields)
	fields = slices.Compact(fields)
	if diff := cmp.Diff([]string{"attestations/0/claim/text", "attestations/0/rationale", "query"}, fields); diff != "" {
		t.Error(diff)
	}
}

// TestStale: what another policy has projected is projected anew, and what the
// policy of today refuses is withheld.
func TestStale(t *testing.T) {
	s := storetest.Open(t)
	old := newAdapter(t, ground.Options{Store: s, Now: testClock, Policy: attest.Policy{Confusables: scrub.Flag}})
	ingest(t, old, saying{by: "a", claim: "Coffee is a drink.", rationale: "p\u0430ypal"}, saying{by: "b", claim: "Coffee is a drink."})

	replace := newAdapter(t, ground.Options{Store: s, Now: testClock})
	got := ask(t, replace, ground.Request{Query: "coffee is a drink"})
	if !slices.ContainsFunc([]int{0, 1}, func(i int) bool { return got.Attestations[i].Text.Rationale == "paypal" }) {
		t.Errorf("not projected anew: %+v", got.Attestations)
	}
	reject := newAdapter(t, ground.Options{Store: s, Now: testClock, Policy: attest.Policy{Confusables: scrub.Reject}})
	got = ask(t, reject, ground.Request{Query: "coffee is a drink"})
	if len(got.Attestations) != 1 || len(got.Meta.Withheld) != 1 || got.Meta.Withheld[0].Reason != "confusable" {
		t.Errorf("shown %d, withheld %+v", len(got.Attestations), got.Meta.Withheld)
	}
	// What is withheld does not count, and does not appear as dissent.
	if got.Summary.Validators != 1 || got.Meta.Explanation.Reasons["refused-by-policy"] != 1 || got.Meta.Explanation.Reasons["counted"] != 1 {
		t.Errorf("%+v, %v", got.Summary, got.Meta.Explanation.Reasons)
	}
}

// TestAnswerSize: validators who fill every field with what has to be recorded
// make no answer too large, and push nobody else out of it.
func TestAnswerSize(t *testing.T) {
	a := newAdapter(t, ground.Options{Now: testClock})
	const claim = "Lead is heavier than water."
	flood := strings.Repeat("\u200b\u0430", 400)
	for i := range 40 {
		ingest(t, a, saying{by: fmt.Sprint("flood", i), claim: claim, rationale: flood + fmt.Sprint(i), quotes: []string{flood, flood, flood, flood, flood}})
	}
	ingest(t, a, saying{by: "honest", claim: claim, verdict: "FALSE", rationale: "It is."})
	b := must(a.Ground(t.Context(), ground.Request{Query: claim, Limit: ground.MaxLimit}))
	if len(b) > 2<<20 {
		t.Errorf("%d bytes", len(b))
	}
	got := decode(t, b)
	if !got.Meta.Cut.Attestations || got.Summary.Validators != 41 || len(got.Attestations) < 2 {
		t.Errorf("shown %d of %d, cut %t", len(got.Attestations), got.Summary.Validators, got.Meta.Cut.Attestations)
	}
	if !slices.Contains(verdicts(got), "FALSE") {
		t.Error("the honest validator is not heard")
	}
}
