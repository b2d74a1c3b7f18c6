// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"context"
	"testing"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/corpus"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/grounding/store/storetest"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// A grounding is the adapter of package ground without MCP between.
type grounding struct{ *ground.Adapter }

func newGrounding(t testing.TB, p attest.Policy) grounding {
	t.Helper()
	a, err := ground.New(ground.Options{Store: storetest.Open(t), Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	return grounding{a}
}

func (g grounding) Ingest(ctx context.Context, body []byte) (Receipt, error) {
	rs, err := g.Adapter.Ingest(ctx, "conform", [][]byte{body})
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{Accepted: rs[0].Accepted, Code: rs[0].Code}, nil
}

func (g grounding) Query(ctx context.Context, query string) (Answer, error) {
	b, err := g.Ground(ctx, ground.Request{Query: query})
	return Answer{JSON: b}, err
}

func (g grounding) Fetch(ctx context.Context, hash string) (Answer, bool, error) {
	b, err := g.Attestation(ctx, hash)
	return Answer{JSON: b}, true, err
}

// TestGrounding: our own adapter passes the corpus, under every policy.
func TestGrounding(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy attest.Policy
		run    Runner
	}{
		{"replace", attest.Policy{}, Runner{Scope: corpus.Literal}},
		{"mixed", attest.Policy{Scope: scrub.Mixed}, Runner{Scope: corpus.Mixed}},
		{"reject", attest.Policy{Confusables: scrub.Reject}, Runner{Confusables: reject}},
		{"flag", attest.Policy{Confusables: scrub.Flag}, Runner{Confusables: flag}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.run.Adapter = newGrounding(t, c.policy)
			rep := run(t, &c.run)
			for _, v := range rep.Vectors {
				if v.Status == "fail" {
					t.Errorf("%s %s: %v", v.Level, v.ID, v.Faults)
				}
			}
			if !rep.Conforms || rep.Passed < 400 {
				t.Errorf("passed %d, failed %d, conforms %t", rep.Passed, rep.Failed, rep.Conforms)
			}
		})
	}
}
