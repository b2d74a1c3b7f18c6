// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/storage"
)

const storedColumns = `a.id, a.hash, a.version, a.dedup, a.skeleton, a.iri, a.validator, a.domain, a.verdict,
	a.issued, a.expires, a.status, a.superseded_by, a.depends, a.projection, c.hash, c.text, c.language, c.group_id, c.topic`

// A row is a record as it was read, with the id by which its dependencies stand.
type row struct {
	ground.Stored
	id      int64
	depends int // on so many
}

// scan reads storedColumns, and behind them what extra points to.
func (st *row) scan(r *sql.Rows, extra ...any) error {
	var hash, text, skeleton, by, claim []byte
	var issued, expires string
	err := r.Scan(append([]any{&st.id, &hash, &st.HashVersion, &text, &skeleton, &st.ID, &st.Validator, &st.Domain, &st.Verdict,
		&issued, &expires, &st.Status, &by, &st.depends, &st.Projection,
		&claim, &st.ClaimText, &st.Language, &st.GroupID, &st.Topic}, extra...)...)
	if err != nil {
		return err
	}
	st.Hash, st.ClaimHash, st.SupersededBy = hashOf(hash), hashOf(claim), hashOf(by)
	st.Key = attest.DedupKey{Text: hashOf(text), Skeleton: hashOf(skeleton)}
	var err2 error
	st.Issued, err = storage.ParseStamp(issued)
	st.Expires, err2 = storage.ParseStamp(expires)
	return errors.Join(err, err2)
}

// ByHash implements ground.Store.
func (s *Store) ByHash(ctx context.Context, h attest.Hash) (ground.Stored, error) {
	var found []row
	err := s.EachRow(ctx, func(r *sql.Rows) error {
		var st row
		var original []byte
		err := st.scan(r, &original)
		st.Original = original
		found = append(found, st)
		return err
	}, `SELECT `+storedColumns+`, o.original FROM attestations a JOIN claims c ON c.id = a.claim
		JOIN originals o ON o.attestation = a.id WHERE a.hash = ?`, h[:])
	if err == nil && len(found) == 0 {
		err = ground.ErrNotFound
	}
	if err == nil {
		err = s.dependencies(ctx, found)
	}
	if err != nil {
		return ground.Stored{}, s.fail(ctx, "by hash", err)
	}
	return found[0].Stored, nil
}

// dependencies completes those of the records that depend on anything.
func (s *Store) dependencies(ctx context.Context, records []row) error {
	of := map[int64]*row{}
	for i := range records {
		if records[i].depends > 0 {
			of[records[i].id] = &records[i]
		}
	}
	for part := range slices.Chunk(slices.Collect(maps.Keys(of)), 512) {
		if err := s.dependenciesPart(ctx, of, storage.Pad(storage.Anys(part), int64(-1))); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) dependenciesPart(ctx context.Context, of map[int64]*row, args []any) error {
	return s.EachRow(ctx, func(r *sql.Rows) error {
		var id int64
		var iri string
		err := r.Scan(&id, &iri)
		if st := of[id]; st != nil {
			st.DependsOn = append(st.DependsOn, iri)
		}
		return err
	}, `SELECT attestation, iri FROM dependencies WHERE attestation IN (`+storage.Marks(len(args))+`) ORDER BY attestation, position`, args...)
}

// The bounds of one call of Attestations.
const (
	maxClaims   = 100
	maxPerClaim = 1000
)

// Attestations implements ground.Store.
func (s *Store) Attestations(ctx context.Context, claims []attest.Hash, perClaim int) ([]ground.Attestations, error) {
	if len(claims) > maxClaims || perClaim < 1 || perClaim > maxPerClaim {
		return nil, fmt.Errorf("store: attestations: %w: more than %d claims, or not 1 to %d of each",
			ground.ErrInvalid, maxClaims, maxPerClaim)
	}
	if len(claims) == 0 {
		return nil, nil
	}
	records, err := s.attestations(ctx, claims, perClaim+1)
	if err == nil {
		err = s.dependencies(ctx, records)
	}
	if err != nil {
		return nil, s.fail(ctx, "attestations", err)
	}
	of := map[attest.Hash][]ground.Stored{}
	for i := range records {
		of[records[i].ClaimHash] = append(of[records[i].ClaimHash], records[i].Stored)
	}
	out := make([]ground.Attestations, len(claims))
	for i, claim := range claims {
		all := of[claim]
		out[i] = ground.Attestations{Claim: claim, Records: all[:min(len(all), perClaim)], Cut: len(all) > perClaim}
	}
	return out, nil
}

// attestations reads those of all claims with one query.
func (s *Store) attestations(ctx context.Context, claims []attest.Hash, limit int) ([]row, error) {
	// SQLite would plan anew for every value of a bare parameter as the limit.
	const arm = `SELECT * FROM (SELECT ` + storedColumns + ` FROM claims c JOIN attestations a ON a.claim = c.id
		WHERE c.hash = ? AND a.superseded_by IS NULL ORDER BY a.superseded_by, a.status, a.issued DESC, a.hash LIMIT CAST(? AS bigint)) AS t`
	var hashes []any
	for i := range claims {
		if !slices.Contains(claims[:i], claims[i]) {
			hashes = append(hashes, claims[i][:])
		}
	}
	var args []any
	for _, hash := range storage.Pad(hashes, []byte{}) {
		args = append(args, hash, limit)
	}
	var out []row
	err := s.EachRow(ctx, func(r *sql.Rows) error {
		var st row
		err := st.scan(r)
		out = append(out, st)
		return err
	}, arm+strings.Repeat(" UNION ALL "+arm, len(args)/2-1), args...)
	return out, err
}

// The bounds of one page of the feed.
const (
	maxPage      = 1000
	maxPageBytes = 8 << 20
)

// Feed implements ground.Store.
func (s *Store) Feed(ctx context.Context, after ground.Cursor, limit int) ([]ground.Entry, error) {
	var out []ground.Entry
	size := 0
	err := s.EachRow(ctx, func(r *sql.Rows) error {
		var e ground.Entry
		var hash []byte
		if err := r.Scan(&e.Cursor, &e.Event, &hash, &e.Original); err != nil {
			return err
		}
		e.Hash = hashOf(hash)
		if size += len(e.Original); size > maxPageBytes && len(out) > 0 {
			return errPageFull
		}
		out = append(out, e)
		return nil
	}, `SELECT f.seq, f.event, f.hash, coalesce(o.original, e.original)
		FROM feed f LEFT JOIN attestations a ON f.event = 0 AND a.hash = f.hash LEFT JOIN originals o ON o.attestation = a.id
		LEFT JOIN events e ON f.event <> 0 AND e.hash = f.hash
		WHERE f.seq > ? ORDER BY f.seq LIMIT CAST(? AS bigint)`, int64(min(after, 1<<62)), max(1, min(limit, maxPage)))
	if errors.Is(err, errPageFull) {
		err = nil
	}
	return out, s.fail(ctx, "feed", err)
}

var errPageFull = errors.New("page is full")
