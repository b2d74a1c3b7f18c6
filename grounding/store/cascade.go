// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/storage"
)

// Apply implements ground.Store.
func (s *Store) Apply(ctx context.Context, e ground.Cascade, evidence []byte) (ground.Change, error) {
	if e.Hash == (attest.Hash{}) || e.Target == "" || e.Kind != ground.Retract && e.Kind != ground.Reverse ||
		!storable(e.At) || !text(e.Target) {
		return ground.Change{}, fmt.Errorf("store: apply: %w: event without hash, kind, target or time", ground.ErrInvalid)
	}
	var change ground.Change
	err := s.update(ctx, "apply", func(t *tx) (err error) {
		if change, err = t.apply(ctx, e); err != nil || change.Duplicate {
			return err
		}
		return t.AddRecords(ctx, evidence)
	})
	return change, err
}

func (t *tx) apply(ctx context.Context, e ground.Cascade) (ground.Change, error) {
	var n int
	err := t.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&n) }, `SELECT count(*) FROM events WHERE hash = ?`, e.Hash[:])
	if err != nil || n > 0 {
		return ground.Change{Duplicate: n > 0}, err
	}
	target := targetKey(e.Target)
	err = t.Execute(ctx, `INSERT INTO events (hash, kind, target, iri, at, projection, original) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		e.Hash[:], int(e.Kind), target, e.Target, storage.Stamp(e.At), storage.Blob(e.Projection), storage.Blob(e.Original))
	if err != nil {
		return ground.Change{}, err
	}
	seq, err := t.lastSeq(ctx)
	if err != nil {
		return ground.Change{}, err
	}
	if err := t.Execute(ctx, `INSERT INTO feed (seq, event, hash) VALUES (?, ?, ?)`, seq+1, int(e.Kind), e.Hash[:]); err != nil {
		return ground.Change{}, err
	}
	if err := t.decide(ctx, target); err != nil {
		return ground.Change{}, err
	}
	var roots []int64
	err = t.EachRow(ctx, func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		roots = append(roots, id)
		return err
	}, `SELECT id FROM attestations WHERE hash = ? OR iri_key = ? UNION SELECT attestation FROM dependencies WHERE target = ?`,
		target, target, target)
	if err != nil {
		return ground.Change{}, err
	}
	return t.settle(ctx, roots)
}

// decide notes whether the latest event on target retracts it. Two of one time
// are told apart by their hashes, so that every store decides alike.
func (t *tx) decide(ctx context.Context, target []byte) error {
	var kind ground.CascadeKind
	err := t.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&kind) },
		`SELECT kind FROM events WHERE target = ? ORDER BY at DESC, hash DESC LIMIT 1`, target)
	if err != nil {
		return err
	}
	if kind == ground.Reverse {
		return t.Execute(ctx, `DELETE FROM retractions WHERE target = ?`, target)
	}
	return t.Execute(ctx, `INSERT INTO retractions (target) VALUES (?) ON CONFLICT (target) DO NOTHING`, target)
}

// A node is an attestation whose status is being found.
type node struct {
	id, claim int64
	hash, iri attest.Hash // what others depend on it by
	validator string
	old, new  consensus.Status
}

// A fall is a target that is down. An id or IRI that a
// validator gives to an attestation counts for that validator only. Otherwise a validator that
// takes the id of another attestation, or the IRI of a source, could retract what rests on it.
type fall struct {
	target    attest.Hash
	validator string // whose dependants are meant; "": those of all validators
}

// falls are those of an attestation that does not stand.
func falls(hash, iri attest.Hash, validator string) []fall {
	return []fall{{hash, ""}, {iri, validator}}
}

// A settlement is a set of attestations, with everything that depends on them, also
// indirectly.
type settlement struct {
	nodes      map[int64]*node
	dependants map[attest.Hash][]int64 // target → ids of nodes
}

// settle finds the status of roots and of everything that depends on them. Attestations that depend
// on each other in a ring stay valid, unless an attestation outside the ring retracts one of them.
func (t *tx) settle(ctx context.Context, roots []int64) (ground.Change, error) {
	s := settlement{map[int64]*node{}, map[attest.Hash][]int64{}}
	for next := roots; len(next) > 0; {
		var err error
		if next, err = t.grow(ctx, &s, next); err != nil {
			return ground.Change{}, err
		}
	}
	fallen, err := t.fallen(ctx, &s)
	if err != nil {
		return ground.Change{}, err
	}
	s.spread(fallen)
	return t.commitStatus(ctx, &s)
}

// grow loads the nodes next and returns what depends on them and is new.
func (t *tx) grow(ctx context.Context, s *settlement, next []int64) ([]int64, error) {
	var keys []any
	for part := range slices.Chunk(next, storage.Chunk) {
		in := "(" + storage.Marks(len(part)) + ")"
		err := t.EachRow(ctx, func(r *sql.Rows) error {
			n := node{new: consensus.Live}
			var hash, iri []byte
			err := r.Scan(&n.id, &n.claim, &hash, &iri, &n.old, &n.validator)
			n.hash, n.iri = hashOf(hash), hashOf(iri)
			s.nodes[n.id] = &n
			keys = append(keys, hash, iri)
			return err
		}, `SELECT id, claim, hash, iri_key, status, validator FROM attestations WHERE id IN `+in, storage.Anys(part)...)
		if err != nil {
			return nil, err
		}
		err = t.EachRow(ctx, func(r *sql.Rows) error {
			var id int64
			var target []byte
			err := r.Scan(&id, &target)
			h := hashOf(target)
			s.dependants[h] = append(s.dependants[h], id)
			return err
		}, `SELECT attestation, target FROM dependencies WHERE attestation IN `+in, storage.Anys(part)...)
		if err != nil {
			return nil, err
		}
	}
	found := map[int64]bool{}
	for part := range slices.Chunk(keys, storage.Chunk) {
		err := t.EachRow(ctx, func(r *sql.Rows) error {
			var id int64
			err := r.Scan(&id)
			if s.nodes[id] == nil {
				found[id] = true
			}
			return err
		}, `SELECT DISTINCT attestation FROM dependencies WHERE target IN (`+storage.Marks(len(part))+`)`, part...)
		if err != nil {
			return nil, err
		}
	}
	return slices.Collect(maps.Keys(found)), nil
}

// fallen returns the targets that are known to be retracted: by an event of their own, or as
// attestations outside of s that are not valid. It marks the nodes that are
// retracted.
func (t *tx) fallen(ctx context.Context, s *settlement) ([]fall, error) {
	asked := map[attest.Hash]bool{}
	for h := range s.dependants {
		asked[h] = true
	}
	for _, n := range s.nodes {
		asked[n.hash], asked[n.iri] = true, true
	}
	var down []fall
	retracted := map[attest.Hash]bool{}
	keys := make([]any, 0, len(asked))
	for h := range asked {
		keys = append(keys, h[:])
	}
	for part := range slices.Chunk(keys, storage.Chunk) {
		in := "(" + storage.Marks(len(part)) + ")"
		err := t.EachRow(ctx, func(r *sql.Rows) error {
			var target []byte
			err := r.Scan(&target)
			down = append(down, fall{hashOf(target), ""})
			retracted[hashOf(target)] = true
			return err
		}, `SELECT target FROM retractions WHERE target IN `+in, part...)
		if err != nil {
			return nil, err
		}
		err = t.EachRow(ctx, func(r *sql.Rows) error {
			var id int64
			var hash, iri []byte
			var validator string
			err := r.Scan(&id, &hash, &iri, &validator)
			if s.nodes[id] == nil {
				down = append(down, falls(hashOf(hash), hashOf(iri), validator)...)
			}
			return err
		}, `SELECT id, hash, iri_key, validator FROM attestations WHERE status <> ? AND (hash IN `+in+` OR iri_key IN `+in+`)`,
			append([]any{int(consensus.Live)}, slices.Concat(part, part)...)...)
		if err != nil {
			return nil, err
		}
	}
	for _, n := range s.nodes {
		if retracted[n.hash] || retracted[n.iri] {
			n.new = consensus.Retracted
			down = append(down, falls(n.hash, n.iri, n.validator)...)
		}
	}
	return down, nil
}

// spread marks everything that depends on the retracted targets.
func (s *settlement) spread(down []fall) {
	for len(down) > 0 {
		f := down[len(down)-1]
		down = down[:len(down)-1]
		for _, id := range s.dependants[f.target] {
			if n := s.nodes[id]; n != nil && n.new == consensus.Live && (f.validator == "" || f.validator == n.validator) {
				n.new = consensus.CascadePending
				down = append(down, falls(n.hash, n.iri, n.validator)...)
			}
		}
	}
}

// commitStatus stores each status that has changed, and counts the attestations of their claims again.
func (t *tx) commitStatus(ctx context.Context, s *settlement) (ground.Change, error) {
	var change ground.Change
	claims := map[int64]bool{}
	for _, id := range slices.Sorted(maps.Keys(s.nodes)) {
		n := s.nodes[id]
		if n.new == n.old {
			continue
		}
		switch n.new {
		case consensus.Live:
			change.Live++
		case consensus.CascadePending:
			change.Pending++
		case consensus.Retracted:
			change.Retracted++
		}
		claims[n.claim] = true
		if err := t.Execute(ctx, `UPDATE attestations SET status = ? WHERE id = ?`, int(n.new), id); err != nil {
			return change, err
		}
	}
	for _, claim := range slices.Sorted(maps.Keys(claims)) {
		if err := t.recount(ctx, claim); err != nil {
			return change, err
		}
	}
	return change, nil
}
