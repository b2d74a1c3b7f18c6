// SPDX-License-Identifier: Apache-2.0

package consensus

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
)

// ledgerProfile takes scores of the ledger as use says; "" takes none.
func ledgerProfile(t *testing.T, use string) *Profile {
	t.Helper()
	validators := ""
	if use != "" {
		validators = `,"validators":{"ledger":"` + use + `","trust":{"minimum":0.25}}`
	}
	return mustCompile(t, `{"@context":"`+ProfileContext+`","@type":"ConsensusProfile","id":"urn:cpml:l","version":"1",`+
		`"issued":"2026-01-01T00:00:00Z","domains":[{"name":"scientific-default","weight":1,"minReputation":0.2}]`+validators+`}`)
}

// TestLedger: the ledger's score lowers what the operator knows where the profile says so,
// and has no influence elsewhere; the explanation holds it.
func TestLedger(t *testing.T) {
	vote := func(id string, v attest.Verdict, recorded Score) Vote {
		return Vote{ID: id, Validator: "did:web:" + id + ".example", Verdict: v, Domain: "scientific-default", Issued: date("2026-01-02"),
			Status: Live, Reputation: One * 8 / 10, Trust: One * 9 / 10, Recorded: recorded}
	}
	for _, tc := range []struct {
		use        string
		bad        Score // of the one who says FALSE
		reason     Reason
		good, lost string // weights
		verdict    attest.Verdict
	}{
		{"", 50_000, Counted, "0.72", "0.72", attest.Disputed},
		{"reputation", 50_000, LowReputation, "0.63", "0", attest.Verified},
		{"reputation", 300_000, Counted, "0.63", "0.27", attest.Verified},
		{"trust", 50_000, LowTrust, "0.56", "0", attest.Verified},
		{"trust", 300_000, Counted, "0.56", "0.24", attest.Verified},
		{"reputation", One, Counted, "0.63", "0.72", attest.False}, // it does not raise the reputation of 0.8
	} {
		votes := []Vote{vote("bad", attest.False, tc.bad), vote("good", attest.Verified, One*7/10)}
		v, e := Compose(ledgerProfile(t, tc.use), "", date("2026-06-01"), votes)
		if v.Primary != tc.verdict || e.Votes[0].Reason != tc.reason || e.Votes[0].Weight.String() != tc.lost || e.Votes[1].Weight.String() != tc.good || string(e.Ledger) != tc.use {
			t.Errorf("%q, %v: %+v %+v", tc.use, tc.bad, v, e)
		}
		want := tc.bad
		if tc.use == "" {
			want = 0
		}
		if e.Votes[0].Recorded != want {
			t.Errorf("%q: the explanation says %v", tc.use, e.Votes[0].Recorded)
		}
	}
	for _, bad := range []string{`"none"`, `""`, `true`, `{}`} {
		src := strings.Replace(`{"@context":"`+ProfileContext+`","@type":"ConsensusProfile","id":"urn:cpml:l","version":"1","issued":"2026-01-01T00:00:00Z",`+
			`"domains":[{"name":"scientific-default","weight":1}],"validators":{"ledger":X}}`, "X", bad, 1)
		if _, err := Compile([]byte(src), nil); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}
