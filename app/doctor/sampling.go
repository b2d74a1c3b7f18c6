// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// recently is how many of the latest records of a ledger sampling looks at.
const recently = 1000

// sampling says which servers asked for it and were refused, and how it is allowed. It
// looks at the journal and at the latest records of each store.
func (x *examiner) sampling(ctx context.Context, dir *state.Dir) {
	servers := map[string]bool{}
	if dir != nil {
		for record, err := range dir.Records("decisions.jsonl") {
			var doc strictjson.Doc
			if err != nil || doc.Reset(record, strictjson.Limits{}) != nil {
				continue
			}
			d := doc.Root()
			noteSampling(servers, d.Get("server").Text(), d.Get("method").Text(), d.Get("verdict").Text())
		}
	}
	for _, where := range x.stores {
		sampledIn(ctx, servers, where)
	}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		x.report.add("sampling", Warning, "server %s asked for it and was refused: dangerously_allow_sampling: true in its configuration, "+
			"or wrap --set dangerously_allow_sampling=true, lets it put words before the client's model", finding.Quote(name))
	}
}

func noteSampling(servers map[string]bool, server, method, verdict string) {
	if method == mcpmsg.Sample && verdict == string(gateway.Dropped) {
		servers[strings.Clone(server)] = true
	}
}

// sampledIn looks at a store, if it is of this release.
func sampledIn(ctx context.Context, servers map[string]bool, where string) {
	ctx, stop := context.WithTimeout(ctx, maxWait)
	defer stop()
	s := openCurrent(ctx, where)
	if s == nil {
		return
	}
	defer s.Close()
	list, err := s.Ledger().List(ctx, sequence.Filter{Kind: ledger.Message, Limit: recently})
	if err != nil {
		return
	}
	for i := range list {
		if st, err := ledger.UnverifiedStatement(list[i].Envelope); err == nil {
			noteSampling(servers, st.Server, st.Method, st.Verdict)
		}
	}
}
