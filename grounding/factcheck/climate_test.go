// SPDX-License-Identifier: Apache-2.0

package factcheck_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/grounding/factcheck"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// climateLine is a claim with n sentences of two votes each.
func climateLine(id string, n int) string {
	var s []string
	for i := range n {
		s = append(s, fmt.Sprintf(`{"evidence_id":"Ice:%d","article":"Sea ice","evidence":"Sentence %d.","entropy":0.5,"votes":["SUPPORTS",null,"REFUTES"]}`, i, i))
	}
	return fmt.Sprintf(`{"claim_id":%q,"claim":"Ice floats.","claim_label":"SUPPORTS","evidences":[%s]}`, id, strings.Join(s, ","))
}

func TestClimateFever(t *testing.T) {
	as, errs := attestations(t, factcheck.ClimateFever, climateLine("7", 2))
	if len(errs) > 0 || len(as) != 4 {
		t.Fatalf("%d, %v", len(as), errs)
	}
	a := as[1]
	if a.ID != "urn:climate-fever:vote:7:0:2" || a.Verdict != attest.False || a.Claim.Text != "Ice floats." ||
		a.Claim.GroupID != "urn:climate-fever:claim:7" || a.Domain != "scientific-default" || a.Version != attest.V03 ||
		len(a.Evidence) != 1 || a.Evidence[0].Quote != "Sentence 0." ||
		a.Evidence[0].URI.String() != "https://en.wikipedia.org/wiki/Sea_ice" || a.DependsOn[0] != a.Evidence[0].URI.String() {
		t.Errorf("%+v", a.Statement)
	}
	validators := map[string]bool{}
	for _, a := range as {
		validators[a.Validator] = true
	}
	if len(validators) != 4 {
		t.Errorf("%d validators, want one for each place of a vote", len(validators))
	}
	o := seeded
	o.Domain = "journalism-default"
	bodies, _ := readAll(t, factcheck.ClimateFever, climateLine("7", 1), o)
	if b := verified(t, bodies[0]); b.Domain != o.Domain || b.Validator != as[0].Validator {
		t.Errorf("domain %s, validator %s", b.Domain, b.Validator)
	}
	o.Seed[0]++
	bodies, _ = readAll(t, factcheck.ClimateFever, climateLine("7", 1), o)
	if b := verified(t, bodies[0]); b.Validator == as[0].Validator {
		t.Error("another seed, the same key")
	}
}

func TestClimateFeverArticles(t *testing.T) {
	for article, want := range map[string]string{
		"Sea ice":                 "https://en.wikipedia.org/wiki/Sea_ice",
		"Watts Up With That?":     "https://en.wikipedia.org/w/index.php?title=Watts_Up_With_That?",
		"OSTM/Jason-2":            "https://en.wikipedia.org/wiki/OSTM/Jason-2",
		"Kīlauea":                 "https://en.wikipedia.org/wiki/K%C4%ABlauea",
		"Carbon (disambiguation)": "https://en.wikipedia.org/wiki/Carbon_(disambiguation)",
		"AT&T":                    "https://en.wikipedia.org/wiki/AT%26T",
		`The \"Ice\"`:             "https://en.wikipedia.org/wiki/The_%22Ice%22",
	} {
		as, errs := attestations(t, factcheck.ClimateFever, strings.Replace(climateLine("7", 1), "Sea ice", article, 1))
		if len(as) != 2 || as[0].Evidence[0].URI.String() != want {
			t.Errorf("%s: %v", article, errs)
		}
	}
}

func TestClimateFeverHostile(t *testing.T) {
	good := climateLine("7", 1)
	for _, tt := range []struct {
		name, in string
		n        int
		errs     string
	}{
		{"no id", strings.Replace(good, `"claim_id"`, `"x"`, 1), 0, "1 /claim_id missing-member"},
		{"an id with prose", strings.Replace(good, `"7"`, `"`+marker+` !"`, 1), 0, "1 /claim_id misshapen"},
		{"an id that is a number", strings.Replace(good, `"7"`, `7`, 1), 0, "1 /claim_id misshapen"},
		{"no claim", strings.Replace(good, `"Ice floats."`, `""`, 1), 0, "1 /claim misshapen"},
		{"an object for a list", `{"claim_id":"7","claim":"x","evidences":{}}`, 0, "1 /evidences misshapen"},
		{"a list of strings", `{"claim_id":"7","claim":"x","evidences":["x"]}`, 0, "1 /evidences/0/article missing-member"},
		{"no votes", strings.Replace(good, `"votes"`, `"x"`, 1), 0, "1 /evidences/0/votes missing-member"},
		{"no quote", strings.Replace(good, `"Sentence 0."`, `5`, 1), 0, "1 /evidences/0/evidence misshapen"},
		{"an unknown vote", strings.Replace(good, `"SUPPORTS",null`, `"`+marker+`",null`, 1), 1, "1 /evidences/0/votes/0 unknown-verdict"},
		{"a vote of another type", strings.Replace(good, `null`, `{}`, 1), 2, "1 /evidences/0/votes/1 unknown-verdict"},
		{"many sentences", climateLine("7", 65), 0, "1 /evidences too-many"},
		{"many votes", strings.Replace(good, `["SUPPORTS"`, `[`+strings.Repeat(`"SUPPORTS",`, 64)+`"SUPPORTS"`, 1), 0, "1 /evidences/0/votes too-many"},
		{"a million sentences", `{"evidences":[` + strings.Repeat("1,", 100_000) + "1]}\n" + good, 2, "1 too-many"},
		{"a tag", strings.Replace(good, `Sentence 0.`, `<script>x</script>`, 1), 0, "1 /evidences/0/votes/0 typed-tag|1 /evidences/0/votes/2 typed-tag"},
		{"a hidden article", strings.Replace(good, `Sea ice`, `Sea\u200bice`, 1), 0, "1 /evidences/0/article uri-hidden-character"},
		{"100 MB", `{"claim_id":"` + strings.Repeat("7", 100<<20) + "\"}\n" + good, 2, "1 too-long"},
		{"deep", strings.Repeat(`{"a":`, 50_000) + "1" + strings.Repeat("}", 50_000) + "\n" + good, 2, "1 too-deep"},
		{"null", "null\n" + good, 2, "1 misshapen"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			as, errs := attestations(t, factcheck.ClimateFever, tt.in)
			if got := strings.Join(errs, "|"); got != tt.errs || len(as) != tt.n {
				t.Errorf("%d with %q, want %d with %q", len(as), got, tt.n, tt.errs)
			}
		})
	}
}

// TestClimateFeverData imports the whole set: every vote is an attestation that
// verifies, repeats none, and counts.
func TestClimateFeverData(t *testing.T) {
	raw, err := os.ReadFile(dataFile(t, "climate-fever/climate-fever.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	var bodies [][]byte
	for b, err := range factcheck.Read(factcheck.ClimateFever, bytes.NewReader(raw), seeded) {
		if err != nil {
			t.Error(err)
			continue
		}
		bodies = append(bodies, b)
	}
	took := time.Since(start)

	votes := map[string][]consensus.Vote{} // by group
	hashes, texts, lookalikes := map[attest.Hash]bool{}, map[attest.Hash]bool{}, map[attest.Hash]bool{}
	repeats := 0
	for _, b := range bodies {
		a := verified(t, b)
		id := a.Identity()
		if hashes[id.Hash] || texts[id.Key.Text] || lookalikes[id.Key.Skeleton] {
			repeats++
		}
		hashes[id.Hash], texts[id.Key.Text], lookalikes[id.Key.Skeleton] = true, true, true
		votes[a.Claim.GroupID] = append(votes[a.Claim.GroupID], consensus.Vote{
			ID: id.Hash.String(), Validator: a.Validator, Verdict: a.Verdict, Domain: consensus.Domain(a.Domain),
			Topic: a.Claim.Topic, Issued: a.Issued, Status: consensus.Live, Reputation: consensus.One, Trust: consensus.One,
		})
	}
	counted, agree, disputed := 0, 0, 0
	labels := climateLabels(t, raw)
	profile := consensus.ForDomain("scientific-default")
	for group, vs := range votes {
		verdict, explained := consensus.Compose(profile, "", now, vs)
		for _, e := range explained.Votes {
			if e.Reason == consensus.Counted {
				counted++
			}
		}
		if verdict.Primary == labels[group] {
			agree++
		}
		if verdict.Disagreement {
			disputed++
		}
	}
	t.Logf("%d attestations in %v; %d of %d claims as labelled, %d with disagreement", len(bodies), took, agree, len(votes), disputed)
	if len(bodies) != 18_486 || len(votes) != 1535 || repeats > 0 || counted != len(bodies) || agree < 1000 {
		t.Errorf("%d attestations on %d claims, %d repeat, %d counted, %d agree", len(bodies), len(votes), repeats, counted, agree)
	}
}

// climateLabels reads what the dataset itself says of its claims.
func climateLabels(t *testing.T, raw []byte) map[string]attest.Verdict {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]attest.Verdict{}
	var d strictjson.Doc
	for line := range bytes.Lines(text) {
		if err := d.Reset(line, strictjson.Limits{}); err != nil {
			t.Fatal(err)
		}
		labels["urn:climate-fever:claim:"+d.Root().Get("claim_id").Text()] = map[string]attest.Verdict{
			"SUPPORTS": attest.Supported, "REFUTES": attest.False,
			"NOT_ENOUGH_INFO": attest.Unverified, "DISPUTED": attest.Disputed,
		}[d.Root().Get("claim_label").Text()]
	}
	return labels
}

func FuzzClimateFever(f *testing.F) {
	f.Add(climateLine("7", 2))
	f.Add(climateLine("7", 1) + "\n{\n" + climateLine("8", 1))
	f.Add(`{"claim_id":"7","claim":"x","evidences":[{"article":"Is it?","evidence":"y","votes":["NOT_ENOUGH_INFO"]}]}`)
	f.Fuzz(fuzz(factcheck.ClimateFever))
}

// fuzz checks that whatever is yielded verifies, and the same each time.
func fuzz(format factcheck.Format) func(*testing.T, string) {
	return func(t *testing.T, in string) {
		once := sha256.New()
		as, errs := attestations(t, format, in)
		for _, a := range as {
			once.Write(a.Source())
		}
		bodies, again := readAll(t, format, in, seeded)
		twice := sha256.New()
		for _, b := range bodies {
			twice.Write(b)
		}
		if !bytes.Equal(once.Sum(nil), twice.Sum(nil)) || len(errs) != len(again) {
			t.Fatal("not the same each time")
		}
	}
}

func BenchmarkClimateFever(b *testing.B) {
	raw, err := os.ReadFile(dataFile(b, "climate-fever/climate-fever.jsonl.gz"))
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		n = 0
		for range factcheck.Read(factcheck.ClimateFever, bytes.NewReader(raw), seeded) {
			n++
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "attestations/s")
}
