// SPDX-License-Identifier: Apache-2.0

package ground_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/pellucid-mcp/pellucid/grounding/ground"
)

func FuzzArguments(f *testing.F) {
	for _, s := range []string{
		`{"query":"a"}`, `{"query":"a","limit":5,"consensus_domain":"x","profile":"y"}`, `{"query":"a","profile":{"id":"x"}}`,
		`{"query":"a","query":"b"}`, `{"hash":"sha256:00"}`, `{"query":1}`, `[]`, ``, `{"limit":1e0}`, `{"query":"\ud800"}`, `null`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var p ground.Problem
		r, err := ground.GroundArguments(raw)
		if err != nil && !errors.As(err, &p) {
			t.Fatalf("not a problem: %v", err)
		}
		if err == nil {
			var loose map[string]json.RawMessage
			if json.Unmarshal(raw, &loose) != nil {
				t.Fatal("accepted what is not JSON")
			}
			var q string
			if json.Unmarshal(loose["query"], &q) != nil || q != r.Query {
				t.Fatal("another reader reads another query")
			}
			for name := range loose {
				if !slices.Contains([]string{"query", "consensus_domain", "profile", "limit"}, name) {
					t.Fatal("accepted an unknown argument")
				}
			}
			if r.Limit < 0 || r.Limit > ground.MaxLimit || r.Document != nil && r.Profile != "" {
				t.Fatalf("%+v", r)
			}
		}
		if _, err := ground.AttestationArguments(raw); err != nil && !errors.As(err, &p) {
			t.Fatalf("not a problem: %v", err)
		}
	})
}
