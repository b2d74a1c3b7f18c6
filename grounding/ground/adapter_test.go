// SPDX-License-Identifier: Apache-2.0

package ground_test

import (
	"context"
	"testing"

	"github.com/pellucid-mcp/pellucid/grounding/conform"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/grounding/store/storetest"
)

// newAdapter makes an adapter; over a store of its own where o has none.
func newAdapter(t testing.TB, o ground.Options) *ground.Adapter {
	t.Helper()
	if o.Store == nil {
		o.Store = storetest.Open(t)
	}
	a, err := ground.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A tested is an Adapter as package conform sees one, without MCP between.
type tested struct{ *ground.Adapter }

func (a tested) Ingest(ctx context.Context, body []byte) (conform.Receipt, error) {
	rs, err := a.Adapter.Ingest(ctx, "conform", [][]byte{body})
	if err != nil {
		return conform.Receipt{}, err
	}
	return conform.Receipt{Accepted: rs[0].Accepted, Code: rs[0].Code}, nil
}

func (a tested) Query(ctx context.Context, query string) (conform.Answer, error) {
	b, err := a.Ground(ctx, ground.Request{Query: query})
	return conform.Answer{JSON: b}, err
}

func (a tested) Fetch(ctx context.Context, hash string) (conform.Answer, bool, error) {
	b, err := a.Attestation(ctx, hash)
	return conform.Answer{JSON: b}, true, err
}
