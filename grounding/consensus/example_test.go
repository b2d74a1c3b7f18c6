// SPDX-License-Identifier: Apache-2.0

package consensus

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
)

// exampleVotes are those of the worked example of docs/spec/consensus.md.
func exampleVotes() []Vote {
	const grade, press = "scientific-default-cochrane-grade", "journalism-default"
	say := func(name string, verdict attest.Verdict, d Domain, day string, reputation, trust Score, change ...func(*Vote)) Vote {
		return vote(name, verdict, append(change, in(d), on("health:vaccines"), issued(day), reputed(reputation), trusted(trust))...)
	}
	return []Vote{
		say("review", attest.Qualified, grade, "2026-02-01", 900_000, One, called("sha256:review-1")),
		say("review", attest.Verified, grade, "2026-04-01", 900_000, One, called("sha256:review-2")),
		say("institute", attest.Verified, grade, "2026-03-01", 800_000, One/2),
		say("doubter", attest.False, grade, "2026-03-02", 700_000, One),
		say("tabloid", attest.False, press, "2026-05-01", One/2, One),
		say("mill", attest.False, press, "2026-05-02", One, One),
		say("lab", attest.Verified, grade, "2026-05-03", One, One, is(CascadePending)),
		say("blog", attest.False, press, "2026-05-04", 100_000, One),
	}
}

// TestExample checks the worked example of the specification, to the letter.
func TestExample(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "spec", "consensus.md"))
	if err != nil {
		t.Fatal(err)
	}
	spec := string(b)
	if !strings.Contains(spec, "\nVersion "+version+".") {
		t.Errorf("the specification is of another version than %s", version)
	}
	profile := string(example(t))
	if !strings.Contains(spec, "```json\n"+profile+"```\n") {
		t.Error("the profile of the specification is not testdata/profile.json")
	}
	if !strings.Contains(spec, "```json\n"+string(builtinSource)+"```\n") {
		t.Error("the registry of the specification is not the built-in one")
	}

	votes := exampleVotes()
	v, e := Compose(mustCompile(t, profile), "health:vaccines", now, votes)
	byID := map[string]Vote{}
	for _, x := range votes {
		byID[x.ID] = x
	}
	var table strings.Builder
	for _, x := range e.Votes {
		in := byID[x.ID]
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s | %v | %v | %s | %v |\n",
			x.ID, x.Validator, x.Verdict, in.Domain, in.Issued.Format("2006-01-02"), in.Reputation, in.Trust, x.Reason, x.Weight)
	}
	if !strings.Contains(spec, "|\n"+table.String()+"\n") {
		t.Errorf("the table of the specification should be\n%s", table.String())
	}
	e.Votes = nil
	answer, err := json.MarshalIndent(struct {
		Result
		Explanation
	}{v, e}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	answer = append(answer[:len(answer)-len(",\n  \"votes\": null\n}")], "\n}\n"...)
	if !strings.Contains(spec, "```json\n"+string(answer)+"```\n") {
		t.Errorf("the answer of the specification should be\n%s", answer)
	}
}

// TestSpecCodes: every code and reason is in the specification.
func TestSpecCodes(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "spec", "consensus.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range constants(t) {
		if !strings.Contains(string(b), "`"+value+"`") {
			t.Errorf("the specification does not mention %s, %q", name, value)
		}
	}
}

func ExampleCompose() {
	profile := ForDomain("scientific-default")
	votes := []Vote{
		{ID: "sha256:1", Validator: "did:web:a.example", Verdict: attest.Verified, Domain: "scientific-default",
			Issued: date("2026-01-01"), Status: Live, Reputation: One, Trust: One},
		{ID: "sha256:2", Validator: "did:web:b.example", Verdict: attest.False, Domain: "scientific-default",
			Issued: date("2026-01-02"), Status: Live, Reputation: One / 2, Trust: One},
		{ID: "sha256:3", Validator: "did:web:c.example", Verdict: attest.False, Domain: "scientific-default",
			Issued: date("2026-01-03"), Status: CascadePending, Reputation: One, Trust: One},
	}
	verdict, why := Compose(profile, "", date("2026-06-01"), votes)
	fmt.Println(verdict.Primary, verdict.Basis, verdict.Validators, verdict.Disagreement)
	for _, v := range why.Votes {
		fmt.Println(v.ID, v.Verdict, v.Reason, v.Weight)
	}
	// Output:
	// VERIFIED majority 2 true
	// sha256:1 VERIFIED counted 1
	// sha256:2 FALSE counted 0.5
	// sha256:3 FALSE cascade-pending 0
}
