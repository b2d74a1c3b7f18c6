// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/href"
)

var (
	testKey = mustKey(1)
	issued  = time.Date(2026, 4, 25, 10, 0, 0, 0, time.UTC)
	now     = issued.Add(time.Hour)
)

func mustKey(n byte) Key {
	k, err := GenerateKey(bytes.NewReader(bytes.Repeat([]byte{n}, 32)))
	if err != nil {
		panic(err)
	}
	return k
}

func mustURI(s string) href.URI {
	u, err := href.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

// sample is a statement in which every member is set.
func sample() *Statement {
	return &Statement{
		ID:      "urn:uuid:58172aac-d8ba-11ed-83dd-0b3aef56cc33",
		Version: V03,
		Claim: Claim{
			Text: "Sea level rose by 20 cm in the last century.", Language: "en",
			Topic: "climate:sea-level", Type: "FACT", GroupID: "urn:claim:sea-level-20",
		},
		Validator: testKey.DID(), Verdict: Supported, Domain: "scientific-default",
		Rationale:      "Tide gauges and altimetry agree.",
		Qualifications: "Global mean; regions differ.",
		Evidence: []Evidence{
			{Quote: "Global mean sea level increased by 0.20 m between 1901 and 2018.", URI: mustURI("https://www.ipcc.ch/report/ar6/wg1/"), Role: "primary"},
			{Quote: "Only a quote."},
		},
		CitedWorks: []CitedWork{{URI: mustURI("urn:isbn:9780131103627"), Title: "A book"}},
		Issued:     issued, Expires: issued.AddDate(1, 0, 0),
		DependsOn: []string{"https://www.ipcc.ch/report/ar6/wg1/", "urn:uuid:0", Hash{1}.String()},
	}
}

func signed(t testing.TB, doc []byte) []byte {
	t.Helper()
	b, err := Sign(doc, testKey, SignOptions{Created: issued})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustParse(t testing.TB, src []byte) *Attestation {
	t.Helper()
	a, err := Parse(src, Options{})
	if err != nil {
		t.Fatalf("Parse: %v\n%s", err, src)
	}
	return a
}

func TestRoundTrip(t *testing.T) {
	want := sample()
	src := signed(t, want.AppendJSON(nil))
	a := mustParse(t, src)
	if diff := cmp.Diff(want, &a.Statement, cmpopts.EquateComparable(href.URI{})); diff != "" {
		t.Errorf("what was written differs from what is read:\n%s", diff)
	}
	if !bytes.Equal(a.Source(), src) || !a.Signed() {
		t.Error("the source was not kept")
	}
	if a.ClaimHash != want.Claim.Hash(V03) {
		t.Error("another claim hash")
	}
	if err := a.Verify(context.Background(), now, DIDKey{}); err != nil {
		t.Error(err)
	}
	src[20] ^= 1
	if err := a.Verify(context.Background(), now, DIDKey{}); err != nil {
		t.Errorf("the source was not copied: %v", err)
	}
}

// The two contexts spell the same statement.
func TestFactcheckSpelling(t *testing.T) {
	snake := string(sample().AppendJSON(nil))
	camel := strings.NewReplacer(
		Context, FactcheckContext, `"text"`, `"claimText"`, `"type":"FACT"`, `"claimType":"FACT"`, `"group_id"`, `"claimGroupId"`,
		`"canonicalisation_version"`, `"canonicalisationVersion"`, `"claim_hash"`, `"claimHash"`,
		`"validator_did"`, `"validatorDid"`, `"verdict"`, `"primaryVerdict"`, `"consensus_domain"`, `"consensusDomain"`,
		`"evidence"`, `"sources"`, `"cited_works"`, `"citedWorks"`, `"issued"`, `"datePublished"`, `"depends_on"`, `"dependsOn"`,
	).Replace(snake)
	a, b := mustParse(t, signed(t, []byte(snake))), mustParse(t, signed(t, []byte(camel)))
	if diff := cmp.Diff(a.Statement, b.Statement, cmpopts.EquateComparable(href.URI{})); diff != "" {
		t.Error(diff)
	}
	if a.ClaimHash != b.ClaimHash || a.DedupKey() != b.DedupKey() {
		t.Error("the spelling changes the claim hash or the dedup key")
	}
	if a.Hash() == b.Hash() {
		t.Error("the canonical hash is that of the envelope as spelled, so it must differ")
	}
	if err := b.Verify(context.Background(), now, DIDKey{}); err != nil {
		t.Error(err)
	}
	// A name of the other spelling is undefined.
	_, err := Parse([]byte(strings.Replace(camel, `"claimHash"`, `"claim_hash"`, 1)), Options{})
	wantRefusal(t, err, Refusal{Code: finding.UndefinedTerm}, "a name of the other context")
}

// wantRefusal compares what want sets.
func wantRefusal(t *testing.T, err error, want Refusal, what string) {
	t.Helper()
	var r *Refusal
	if !errors.As(err, &r) {
		t.Errorf("%s: error %v, want a refusal for %s", what, err, want.Code)
		return
	}
	if r.Code != want.Code || want.Pointer != "" && r.Pointer != want.Pointer || want.Offset != 0 && r.Offset != want.Offset || want.Text != r.Text {
		t.Errorf("%s: refused for %s at %q byte %d (text %v), want %+v", what, r.Code, r.Pointer, r.Offset, r.Text, want)
	}
	if !r.Code.Known() {
		t.Errorf("%s: code %q is of no vocabulary", what, r.Code)
	}
}

func TestRefusals(t *testing.T) {
	base := string(sample().AppendJSON(nil))
	replace := func(old, new string) string {
		if !strings.Contains(base, old) {
			t.Fatalf("the sample has no %q", old)
		}
		return strings.Replace(base, old, new, 1)
	}
	deep := strings.Repeat("[", 20) + strings.Repeat("]", 20)
	for _, tt := range []struct {
		name, src string
		want      Refusal
	}{
		{"empty", "", Refusal{Code: finding.NotJSON}},
		{"array", "[]", Refusal{Code: finding.Misshapen}},
		{"no object", `"x"`, Refusal{Code: finding.Misshapen}},
		{"trailing", base + "x", Refusal{Code: finding.NotJSON, Offset: len(base)}},
		{"bad utf-8", replace("Tide", "\xff"), Refusal{Code: finding.NotJSON}},
		{"lone surrogate", replace("Tide", `\ud800`), Refusal{Code: finding.NotJSON}},
		{"duplicate member", replace(`"rationale":`, `"rationale":"","rationale":`), Refusal{Code: finding.NotJSON}},
		{"duplicate but for case", replace(`"rationale":`, `"Rationale":"","rationale":`), Refusal{Code: finding.NotJSON}},
		{"too large", strings.Repeat(" ", MaxBytes) + base, Refusal{Code: finding.TooLong}},
		{"too deep", replace(`"Tide gauges and altimetry agree."`, deep), Refusal{Code: finding.TooDeep}},
		{"too many values", `[` + strings.Repeat("1,", maxValues) + `1]`, Refusal{Code: finding.TooMany}},
		{"no context", replace(`"@context":"`+Context+`",`, ""), Refusal{Code: finding.MissingMember, Pointer: "/@context"}},
		{"other context", replace(Context, "https://evil.example/"), Refusal{Code: finding.UnknownContext, Pointer: "/@context"}},
		{"context object", replace(`"`+Context+`"`, `{"id":"@id"}`), Refusal{Code: finding.UnknownContext}},
		{"two contexts", replace(`"`+Context+`"`, `["`+Context+`","https://evil.example/"]`), Refusal{Code: finding.UnknownContext}},
		{"both our contexts", replace(`"`+Context+`"`, `["`+Context+`","`+FactcheckContext+`"]`), Refusal{Code: finding.UnknownContext}},
		{"no type", replace(`"@type":"veritas:Attestation",`, ""), Refusal{Code: finding.MissingMember, Pointer: "/@type"}},
		{"other type", replace(`veritas:Attestation`, "veritas:Other"), Refusal{Code: finding.Misshapen, Pointer: "/@type"}},
		{"undefined term", replace(`"rationale":`, `"evil\n":"","rationale":`), Refusal{Code: finding.UndefinedTerm}},
		{"undefined term inside", replace(`"role":`, `"extra":1,"role":`), Refusal{Code: finding.UndefinedTerm, Pointer: "/evidence/0"}},
		{"keyword", replace(`"rationale":`, `"@id":"","rationale":`), Refusal{Code: finding.UndefinedTerm}},
		{"keyword inside", replace(`"role":`, `"@type":"x","role":`), Refusal{Code: finding.UndefinedTerm, Pointer: "/evidence/0"}},
		{"null", replace(`"Global mean; regions differ."`, "null"), Refusal{Code: finding.Misshapen, Pointer: "/qualifications"}},
		{"number", replace(`"Global mean; regions differ."`, "1"), Refusal{Code: finding.Misshapen, Pointer: "/qualifications"}},
		{"list for text", replace(`"Global mean; regions differ."`, `["x"]`), Refusal{Code: finding.Misshapen, Pointer: "/qualifications"}},
		{"evidence object", strings.Replace(base, base[strings.Index(base, `[{"quote"`):strings.Index(base, `,"cited_works"`)], `{"quote":"x"}`, 1), Refusal{Code: finding.Misshapen, Pointer: "/evidence"}},
		{"evidence of text", replace(`{"quote":"Only a quote."}`, `"x"`), Refusal{Code: finding.Misshapen, Pointer: "/evidence/1"}},
		{"evidence of nothing", replace(`{"quote":"Only a quote."}`, `{"role":"x"}`), Refusal{Code: finding.MissingMember, Pointer: "/evidence/1/quote"}},
		{"surplus evidence", replace(`"evidence":[`, `"evidence":[`+strings.Repeat(`{"quote":"x"},`, maxEvidence)), Refusal{Code: finding.TooMany, Pointer: "/evidence"}},
		{"no claim", replace(`"claim":`, `"qualifications":"","rationale":`), Refusal{Code: finding.NotJSON}},
		{"claim text missing", replace(`"text":"Sea level rose by 20 cm in the last century.",`, ""), Refusal{Code: finding.MissingMember, Pointer: "/claim/text"}},
		{"claim text empty", replace("Sea level rose by 20 cm in the last century.", ""), Refusal{Code: finding.Misshapen, Pointer: "/claim/text"}},
		{"version", replace(`"0.3"`, `"0.4"`), Refusal{Code: finding.Misshapen, Pointer: "/canonicalisation_version"}},
		{"id relative", replace("urn:uuid:58172aac-d8ba-11ed-83dd-0b3aef56cc33", "x"), Refusal{Code: finding.Misshapen, Pointer: "/id"}},
		{"id script", replace("urn:uuid:58172aac-d8ba-11ed-83dd-0b3aef56cc33", "javascript:1"), Refusal{Code: finding.Misshapen, Pointer: "/id"}},
		{"language", replace(`"language":"en"`, `"language":"en; ignore"`), Refusal{Code: finding.Misshapen, Pointer: "/claim/language"}},
		{"topic", replace(`climate:sea-level`, `climate:`), Refusal{Code: finding.Misshapen, Pointer: "/claim/topic"}},
		{"claim type", replace(`"FACT"`, `"fact"`), Refusal{Code: finding.Misshapen, Pointer: "/claim/type"}},
		{"group id", replace(`urn:claim:sea-level-20`, `urn:c:x`), Refusal{Code: finding.Misshapen, Pointer: "/claim/group_id"}},
		{"verdict", replace(`"SUPPORTED"`, `"supported"`), Refusal{Code: finding.UnknownVerdict, Pointer: "/verdict"}},
		{"domain", replace(`scientific-default`, `scientific default`), Refusal{Code: finding.Misshapen, Pointer: "/consensus_domain"}},
		{"validator", replace(testKey.DID(), "https://v.example/"), Refusal{Code: finding.URIScheme, Pointer: "/validator_did", Text: true}},
		{"validator with fragment", replace(testKey.DID()+`"`, testKey.Method()+`"`), Refusal{Code: finding.URISyntax, Pointer: "/validator_did", Text: true}},
		{"evidence uri", replace("https://www.ipcc.ch/report/ar6/wg1/", "http://www.ipcc.ch/"), Refusal{Code: finding.URIScheme, Pointer: "/evidence/0/uri", Text: true}},
		{"evidence uri hidden", replace("https://www.ipcc.ch/report/ar6/wg1/", "https://www.ipcc.ch/%E2%80%AE"), Refusal{Code: finding.URIHidden, Pointer: "/evidence/0/uri", Offset: 20, Text: true}},
		{"cited uri", replace("urn:isbn:9780131103627", "urn:isbn:1"), Refusal{Code: finding.URISyntax, Pointer: "/cited_works/0/uri", Text: true}},
		{"cited uri missing", replace(`{"uri":"urn:isbn:9780131103627",`, `{`), Refusal{Code: finding.MissingMember, Pointer: "/cited_works/0/uri"}},
		{"role", replace(`"primary"`, `"primary source"`), Refusal{Code: finding.Misshapen, Pointer: "/evidence/0/role"}},
		{"issued", replace(`2026-04-25T10:00:00Z`, `2026-04-25`), Refusal{Code: finding.Misshapen, Pointer: "/issued"}},
		{"issued with a comma", replace(`2026-04-25T10:00:00Z`, `2026-04-25T10:00:00,5Z`), Refusal{Code: finding.Misshapen, Pointer: "/issued"}},
		{"issued with a zone of 99 hours", replace(`2026-04-25T10:00:00Z`, `2026-04-25T10:00:00+99:00`), Refusal{Code: finding.Misshapen, Pointer: "/issued"}},
		{"issued on no day", replace(`2026-04-25T10:00:00Z`, `2026-02-30T10:00:00Z`), Refusal{Code: finding.Misshapen, Pointer: "/issued"}},
		{"issued spelled laxly", replace(`2026-04-25T10:00:00Z`, `2026-04-25T1:00:00Z`), Refusal{Code: finding.Misshapen, Pointer: "/issued"}},
		{"expires before it is issued", replace(`2027-04-25T10:00:00Z`, `2026-04-25T10:00:00Z`), Refusal{Code: finding.Misshapen, Pointer: "/expires"}},
		{"dependency", replace(`"urn:uuid:0"`, `"see there"`), Refusal{Code: finding.Misshapen, Pointer: "/depends_on/1"}},
		{"rationale of markup", replace("Tide", "1 <b>Tide</b>"), Refusal{Code: finding.TypedTag, Pointer: "/rationale", Offset: 2, Text: true}},
		{"quote of markup", replace("Only", "See [x](https://e.example/)"), Refusal{Code: finding.TypedLink, Pointer: "/evidence/1/quote", Offset: 4, Text: true}},
		{"title of markup", replace("A book", "<script>"), Refusal{Code: finding.TypedTag, Pointer: "/cited_works/0/title", Text: true}},
		{"claim of markup", replace("Sea level", "<i>Sea</i> level"), Refusal{Code: finding.TypedTag, Pointer: "/claim/text", Text: true}},
		{"claim hash of another", replace("Sea level rose", "Sea level fell"), Refusal{Code: finding.ClaimHashMismatch, Pointer: "/claim_hash"}},
		{"claim hash no hash", replace(`"claim_hash":"sha256:`, `"claim_hash":"md5:`), Refusal{Code: finding.Misshapen, Pointer: "/claim_hash"}},
		{"proof list", strings.TrimSuffix(base, "}") + `,"proof":[]}`, Refusal{Code: finding.Misshapen, Pointer: "/proof"}},
		{"proof with another term", strings.TrimSuffix(base, "}") + `,"proof":{"domain":"x"}}`, Refusal{Code: finding.UndefinedTerm, Pointer: "/proof"}},
	} {
		_, err := Parse([]byte(tt.src), Options{})
		wantRefusal(t, err, tt.want, tt.name)
	}
}

func TestLargeRationaleIsAccepted(t *testing.T) {
	s := sample()
	s.Rationale = strings.Repeat("word ", 10_000)
	for range 12 {
		s.Evidence = append(s.Evidence, Evidence{Quote: strings.Repeat("quote ", 500)})
	}
	a := mustParse(t, signed(t, s.AppendJSON(nil)))
	if len(a.Rationale) != 50_000 || len(a.Evidence) != 14 {
		t.Errorf("%d bytes, %d quotes", len(a.Rationale), len(a.Evidence))
	}
}

func TestHashSpellings(t *testing.T) {
	src := string(sample().AppendJSON(nil))
	for _, prefix := range []string{"", "0x", "sha256:"} {
		mustParse(t, []byte(strings.Replace(src, `"claim_hash":"sha256:`, `"claim_hash":"`+prefix, 1)))
	}
	for _, s := range []string{"", "0x", "sha256:", strings.Repeat("A", 64), strings.Repeat("g", 64), "sha256:0x" + strings.Repeat("0", 62), strings.Repeat("0", 63), strings.Repeat("0", 66)} {
		if h, ok := ParseHash(s); ok {
			t.Errorf("ParseHash(%q) = %v", s, h)
		}
	}
}

func TestOptions(t *testing.T) {
	s := sample()
	s.Verdict, s.Domain, s.Rationale = "RETRACTED", "cpml:Scientific", "<b>bold</b>"
	src := s.AppendJSON(nil)
	reg, err := NewRegistry("RETRACTED", "FALSE")
	if err != nil {
		t.Fatal(err)
	}
	domain := func(name string) (string, bool) { return "scientific-default", name == "cpml:Scientific" }
	_, err = Parse(src, Options{Domain: domain, DangerouslyIngestUntyped: true})
	wantRefusal(t, err, Refusal{Code: finding.UnknownVerdict, Pointer: "/verdict"}, "unregistered verdict")
	_, err = Parse(src, Options{Verdicts: reg, DangerouslyIngestUntyped: true, Domain: func(string) (string, bool) { return "", false }})
	wantRefusal(t, err, Refusal{Code: finding.UnknownDomain, Pointer: "/consensus_domain"}, "unregistered domain")
	_, err = Parse(src, Options{Verdicts: reg, Domain: domain})
	wantRefusal(t, err, Refusal{Code: finding.TypedTag, Pointer: "/rationale", Text: true}, "untyped")
	a, err := Parse(src, Options{Verdicts: reg, Domain: domain, DangerouslyIngestUntyped: true})
	if err != nil {
		t.Fatal(err)
	}
	if a.Domain != "scientific-default" || a.Untyped == nil || a.Untyped.Code != finding.TypedTag {
		t.Errorf("domain %q, untyped %v", a.Domain, a.Untyped)
	}
	if mustParse(t, sample().AppendJSON(nil)).Untyped != nil {
		t.Error("plain text counts as untyped")
	}
}

func TestRegistry(t *testing.T) {
	for _, name := range []string{"", "lower", "A B", "1A", "A\u202e", strings.Repeat("A", 65)} {
		if _, err := NewRegistry(name); err == nil || strings.Contains(err.Error(), "\u202e") {
			t.Errorf("NewRegistry(%+q): %v", name, err)
		}
	}
	r, err := NewRegistry("Z_1", "A", "FALSE", "A")
	if err != nil {
		t.Fatal(err)
	}
	want := []Verdict{Verified, Supported, Qualified, Unverified, Disputed, False, "A", "Z_1"}
	if diff := cmp.Diff(want, r.Verdicts()); diff != "" {
		t.Error(diff)
	}
	for _, reg := range []*Registry{nil, {}} {
		if !reg.Has(False) || reg.Has("A") || len(reg.Verdicts()) != 6 {
			t.Error("a registry without additions is not the built-in one")
		}
	}
}

// The bundled contexts define the same properties, each once.
func TestContexts(t *testing.T) {
	var props func(s *scope, at string) map[string]kind
	props = func(s *scope, at string) map[string]kind {
		m := map[string]kind{}
		for _, tm := range s.terms {
			p := at + "/" + tm.prop
			if _, twice := m[p]; twice {
				t.Errorf("%s is defined twice", p)
			}
			m[p] = tm.kind
			if tm.in != nil {
				for q, k := range props(tm.in, p) {
					m[q] = k
				}
			}
		}
		return m
	}
	if diff := cmp.Diff(props(contexts()[Context], ""), props(contexts()[FactcheckContext], "")); diff != "" {
		t.Error(diff)
	}
	for _, url := range []string{Context, FactcheckContext} {
		if !json.Valid(ContextDocument(url)) {
			t.Errorf("the context %s is no JSON", url)
		}
	}
	if ContextDocument("https://w3id.org/") != nil {
		t.Error("a context that is not bundled")
	}
	if len(contexts()[Context].terms) != 15 || contexts()[Context].find("evidence").in.find("uri").kind != iri {
		t.Errorf("%d terms", len(contexts()[Context].terms))
	}
}

func TestIntegrityContext(t *testing.T) {
	src := bytes.Replace(sample().AppendJSON(nil), []byte(`"`+Context+`"`), []byte(`["`+Context+`", "`+integrityContext+`"]`), 1)
	a := mustParse(t, signed(t, src))
	if err := a.Verify(context.Background(), now, DIDKey{}); err != nil {
		t.Error(err)
	}
}

func TestComplete(t *testing.T) {
	full := string(sample().AppendJSON(nil))
	short := strings.Replace(full, `"claim_hash":"`+sample().Claim.Hash(V03).String()+`",`, "", 1)
	short = strings.Replace(short, `"validator_did":"`+testKey.DID()+`",`, "", 1)
	b, err := Complete([]byte(short), testKey.DID())
	if err != nil {
		t.Fatal(err)
	}
	if a := mustParse(t, signed(t, b)); a.Validator != testKey.DID() {
		t.Errorf("validator %s", a.Validator)
	}
	if b, err := Complete([]byte(full), "did:web:e.example"); err != nil || string(b) != full {
		t.Errorf("an envelope that lacks nothing becomes %s, %v", b, err)
	}
	camel := `{"@context":"` + FactcheckContext + `","@type":"veritas:Attestation","claim":{"claimText":"x"}}`
	if b, err := Complete([]byte(camel), testKey.DID()); err != nil || !strings.Contains(string(b), `"claimHash":"sha256:`) {
		t.Errorf("%s, %v", b, err)
	}
	for _, doc := range []string{"", "{}", strings.Replace(camel, `"claimText":"x"`, "", 1), strings.Replace(camel, `,"claim":{"claimText":"x"}`, "", 1)} {
		_, err := Complete([]byte(doc), testKey.DID())
		var r *Refusal
		if !errors.As(err, &r) {
			t.Errorf("Complete(%s): %v", doc, err)
		}
	}
}
