// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/storage"
)

// touched returns the claims that the batch makes or gives new domains, by id.
func (p *putting) touched() []*claimRow {
	out := slices.DeleteFunc(slices.Collect(maps.Values(p.claims)), func(c *claimRow) bool { return len(c.fresh) == 0 })
	slices.SortFunc(out, func(a, b *claimRow) int { return cmp.Compare(a.id, b.id) })
	return out
}

func (p *putting) insertClaims(ctx context.Context) error {
	var claims, domains []any
	more := map[string][]int64{} // token → claims that did not have it
	for _, c := range p.touched() {
		if c.isNew {
			claims = append(claims, c.id, c.Hash[:], c.Text, c.Language, c.GroupID, c.Topic, c.added, c.added)
			for _, token := range tokens(c.Text, c.GroupID, c.Topic) {
				more[token] = append(more[token], c.id)
			}
		}
		for _, d := range c.fresh {
			domains = append(domains, c.id, d)
			more[facet("d", d)] = append(more[facet("d", d)], c.id)
		}
	}
	err := p.InsertRows(ctx, "claims (id, hash, text, language, group_id, topic, live, total)", 8, "", claims)
	if err == nil {
		err = p.InsertRows(ctx, "claim_domains (claim, domain)", 2, "", domains)
	}
	if err != nil {
		return err
	}
	return p.index(ctx, more)
}

func (p *putting) insertAttestations(ctx context.Context) error {
	// First, since a text key stands once only among those that are not superseded.
	for i := range p.superseded {
		err := p.Execute(ctx, `UPDATE attestations SET superseded_by = ? WHERE hash = ?`, p.renewals[i][:], p.superseded[i][:])
		if err != nil {
			return err
		}
	}
	var args, originals []any
	for n, i := range p.added {
		r := &p.batch[i]
		var by []byte
		if h, ok := p.supersededBy[i]; ok {
			by = h[:]
		}
		args = append(args, p.lastID+int64(n)+1, r.Hash[:], string(r.HashVersion), r.Key.Text[:], r.Key.Skeleton[:],
			r.ID, targetKey(r.ID), r.Validator, p.claims[r.ClaimHash].id, r.Domain, string(r.Verdict),
			storage.Stamp(r.Issued), storage.Stamp(r.Expires), int(consensus.Live), by, len(r.DependsOn), storage.Blob(r.Projection))
		originals = append(originals, p.lastID+int64(n)+1, storage.Blob(r.Original))
	}
	err := p.InsertRows(ctx, `attestations (id, hash, version, dedup, skeleton, iri, iri_key, validator, claim, domain,
		verdict, issued, expires, status, superseded_by, depends, projection)`, 17, "", args)
	if err != nil {
		return err
	}
	return p.InsertRows(ctx, "originals (attestation, original)", 2, "", originals)
}

func (p *putting) insertDependencies(ctx context.Context) error {
	var args []any
	for n, i := range p.added {
		for pos, iri := range p.batch[i].DependsOn {
			args = append(args, p.lastID+int64(n)+1, pos, targetKey(iri), iri)
		}
	}
	return p.InsertRows(ctx, "dependencies (attestation, position, target, iri)", 4, "", args)
}

// count brings the counters of claims that were there before up to date.
func (p *putting) count(ctx context.Context) error {
	var args []any
	for _, c := range slices.SortedFunc(maps.Values(p.claims), func(a, b *claimRow) int { return cmp.Compare(a.id, b.id) }) {
		if !c.isNew && c.added > 0 {
			args = append(args, c.id, c.added)
		}
	}
	for part := range slices.Chunk(args, 2*100) {
		row := "(CAST(? AS bigint), CAST(? AS bigint))" // Postgres does not guess the types of a list
		err := p.Execute(ctx, `UPDATE claims SET live = live + v.column2, total = total + v.column2
			FROM (VALUES `+row+strings.Repeat(","+row, len(part)/2-1)+`) AS v WHERE claims.id = v.column1`, part...)
		if err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.renewed)) {
		if err := p.recount(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// recount counts the attestations of a claim anew.
func (t *tx) recount(ctx context.Context, claim int64) error {
	return t.Execute(ctx, `UPDATE claims SET
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
	for part := range slices.Chunk(keys, storage.Chunk) {
		in := "(" + storage.Marks(len(part)) + ")"
		err := p.EachRow(ctx, func(r *sql.Rows) error {
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
	for part := range slices.Chunk(roots, storage.Chunk) {
		err := p.EachRow(ctx, func(r *sql.Rows) error {
			var id int64
			var status consensus.Status
			err := r.Scan(&id, &status)
			p.outcomes[p.added[id-p.lastID-1]].Status = status
			return err
		}, `SELECT id, status FROM attestations WHERE id IN (`+storage.Marks(len(part))+`)`, storage.Anys(part)...)
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
	return p.InsertRows(ctx, "feed (seq, event, hash)", 3, "", args)
}

func (t *tx) lastSeq(ctx context.Context) (n int64, err error) {
	err = t.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM feed`).Scan(&n)
	return n, err
}
