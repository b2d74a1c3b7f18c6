package store

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/pellucid-mcp/pellucid/attest"
	"github.com/pellucid-mcp/pellucid/consensus"
	"github.com/pellucid-mcp/pellucid/ground"
)

// insert writes rows, width arguments each, many to a statement; tail follows
// the values.
func (t *tx) insert(ctx context.Context, into string, width int, tail string, args []any) error {
	for part := range slices.Chunk(args, width*100) {
		query := "INSERT INTO " + into + " VALUES " + tuples(len(part)/width, width) + tail
		if err := t.exec(ctx, query, part...); err != nil {
			return err
		}
	}
	return nil
}

// touched returns the claims that the batch makes or gives new domains, by id.
func (p *putting) touched() []*claimRow {
	out := slices.DeleteFunc(slices.Collect(maps.Values(p.claims)), func(c *claimRow) bool { return len(c.fresh) == 0 })
	slices.SortFunc(out, func(a, b *claimRow) int { return cmp.Compare(a.id, b.id) })
	return out
}

func (p *putting) insertClaims(ctx context.Context) error {
	more := map[string]int{} // token → claims that did not have it
	var domains []any
	for _, c := range p.touched() {
		all := tokens(c.Text, c.GroupID, c.Topic, c.domains)
		var err error
		if c.isNew {
			err = p.engine.insertClaim(ctx, p.tx, c, all)
			for _, token := range all {
				more[token]++
			}
		} else {
			err = p.engine.reindexClaim(ctx, p.tx, c.id, all)
			for _, d := range c.fresh {
				more[domainFacet(d)]++
			}
		}
		if err != nil {
			return err
		}
		for _, d := range c.fresh {
			domains = append(domains, c.id, d)
		}
	}
	if err := p.insert(ctx, "claim_domains (claim, domain)", 2, "", domains); err != nil {
		return err
	}
	var counts []any
	for _, token := range slices.Sorted(maps.Keys(more)) {
		counts = append(counts, token, more[token])
	}
	return p.insert(ctx, "tokens (token, claims)", 2,
		" ON CONFLICT (token) DO UPDATE SET claims = tokens.claims + excluded.claims", counts)
}

func (p *putting) insertAttestations(ctx context.Context) error {
	// First, since a text key stands once only among those that are not superseded.
	for i := range p.superseded {
		err := p.exec(ctx, `UPDATE attestations SET superseded_by = ? WHERE hash = ?`, p.renewals[i][:], p.superseded[i][:])
		if err != nil {
			return err
		}
	}
	var args []any
	for n, i := range p.added {
		r := &p.batch[i]
		var by []byte
		if h, ok := p.supersededBy[i]; ok {
			by = h[:]
		}
		args = append(args, p.lastID+int64(n)+1, r.Hash[:], string(r.HashVersion), r.Key.Text[:], r.Key.Skeleton[:],
			r.ID, targetKey(r.ID), r.Validator, p.claims[r.ClaimHash].id, r.Domain, string(r.Verdict),
			stamp(r.Issued), stamp(r.Expires), int(consensus.Live), by, octets(r.Projection), octets(r.Original))
	}
	return p.insert(ctx, `attestations (id, hash, version, dedup, skeleton, iri, iri_key, validator, claim, domain,
		verdict, issued, expires, status, superseded_by, projection, original)`, 17, "", args)
}

// octets returns b, never nil, which would be NULL.
func octets(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func (p *putting) insertDependencies(ctx context.Context) error {
	var args []any
	for n, i := range p.added {
		for pos, iri := range p.batch[i].DependsOn {
			args = append(args, p.lastID+int64(n)+1, pos, targetKey(iri), iri)
		}
	}
	return p.insert(ctx, "dependencies (attestation, position, target, iri)", 4, "", args)
}

// count brings the counters of the claims of the batch up to date.
func (p *putting) count(ctx context.Context) error {
	more := map[int64]int{} // claim → attestations that were not there
	renewed := map[int64]bool{}
	for _, i := range p.added {
		id := p.claims[p.batch[i].ClaimHash].id
		more[id]++
		renewed[id] = renewed[id] || p.outcomes[i].Other != attest.Hash{}
	}
	for _, id := range slices.Sorted(maps.Keys(more)) {
		var err error
		if renewed[id] {
			err = p.recount(ctx, id)
		} else {
			err = p.exec(ctx, `UPDATE claims SET live = live + ?, total = total + ? WHERE id = ?`, more[id], more[id], id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// recount counts the attestations of a claim anew.
func (t *tx) recount(ctx context.Context, claim int64) error {
	return t.exec(ctx, `UPDATE claims SET
		live = (SELECT count(*) FROM attestations WHERE claim = ? AND superseded_by IS NULL AND status = ?),
		total = (SELECT count(*) FROM attestations WHERE claim = ? AND superseded_by IS NULL) WHERE id = ?`,
		claim, int(consensus.Live), claim, claim)
}

// settleNew finds the status of those of the batch that depend on anything, that
// something depends on, or that were retracted before they came.
func (p *putting) settleNew(ctx context.Context) error {
	seen := map[attest.Hash]bool{} // targets that matter
	var keys []any
	for _, i := range p.added {
		keys = append(keys, p.batch[i].Hash[:], targetKey(p.batch[i].ID))
	}
	for part := range slices.Chunk(keys, chunk) {
		in := "(" + marks(len(part)) + ")"
		err := p.query(ctx, func(r *sql.Rows) error {
			var target []byte
			err := r.Scan(&target)
			seen[hashOf(target)] = true
			return err
		}, `SELECT target FROM retractions WHERE target IN `+in+` UNION SELECT target FROM dependencies WHERE target IN `+in,
			slices.Concat(part, part)...)
		if err != nil {
			return err
		}
	}
	var roots []int64
	for n, i := range p.added {
		r := &p.batch[i]
		if len(r.DependsOn) > 0 || seen[r.Hash] || seen[hashOf(targetKey(r.ID))] {
			roots = append(roots, p.lastID+int64(n)+1)
		}
	}
	if len(roots) == 0 {
		return nil
	}
	if _, err := p.settle(ctx, roots); err != nil {
		return err
	}
	for part := range slices.Chunk(roots, chunk) {
		err := p.query(ctx, func(r *sql.Rows) error {
			var id int64
			var status consensus.Status
			err := r.Scan(&id, &status)
			p.outcomes[p.added[id-p.lastID-1]].Status = status
			return err
		}, `SELECT id, status FROM attestations WHERE id IN (`+marks(len(part))+`)`, anys(part)...)
		if err != nil {
			return err
		}
	}
	for i := range p.outcomes {
		// What repeats a record of this batch has the status that it got just now.
		if o := &p.outcomes[i]; o.Disposition == ground.Duplicate {
			if k := p.byHash[o.Other]; k.at >= 0 && k.Hash == o.Other {
				o.Status = p.outcomes[k.at].Status
			}
		}
	}
	return nil
}

func anys[T any](s []T) []any {
	out := make([]any, len(s))
	for i, v := range s {
		out[i] = v
	}
	return out
}

func (p *putting) publish(ctx context.Context) error {
	seq, err := p.lastSeq(ctx)
	if err != nil {
		return err
	}
	var args []any
	for _, i := range p.added {
		seq++
		args = append(args, seq, 0, p.batch[i].Hash[:])
	}
	return p.insert(ctx, "feed (seq, event, hash)", 3, "", args)
}

func (t *tx) lastSeq(ctx context.Context) (n int64, err error) {
	err = t.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM feed`).Scan(&n)
	return n, err
}
