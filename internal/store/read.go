package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pellucid-mcp/pellucid/attest"
	"github.com/pellucid-mcp/pellucid/ground"
)

const storedColumns = `a.id, a.hash, a.version, a.dedup, a.skeleton, a.iri, a.validator, a.domain, a.verdict,
	a.issued, a.expires, a.status, a.superseded_by, a.projection, c.hash, c.text, c.language, c.group_id, c.topic`

// scanStored reads storedColumns, and behind them what extra points to.
func scanStored(r *sql.Rows, extra ...any) (id int64, st ground.Stored, err error) {
	var hash, text, skeleton, by, claim []byte
	var issued, expires string
	err = r.Scan(append([]any{&id, &hash, &st.HashVersion, &text, &skeleton, &st.ID, &st.Validator, &st.Domain, &st.Verdict,
		&issued, &expires, &st.Status, &by, &st.Projection,
		&claim, &st.ClaimText, &st.Language, &st.GroupID, &st.Topic}, extra...)...)
	if err != nil {
		return 0, st, err
	}
	st.Hash, st.ClaimHash, st.SupersededBy = hashOf(hash), hashOf(claim), hashOf(by)
	st.Key = attest.DedupKey{Text: hashOf(text), Skeleton: hashOf(skeleton)}
	var err2 error
	st.Issued, err = parseStamp(issued)
	st.Expires, err2 = parseStamp(expires)
	return id, st, errors.Join(err, err2)
}

// ByHash implements ground.Store.
func (s *Store) ByHash(ctx context.Context, h attest.Hash) (ground.Stored, error) {
	var st ground.Stored
	var id int64
	found := false
	err := s.query(ctx, func(r *sql.Rows) (err error) {
		var original []byte
		id, st, err = scanStored(r, &original)
		st.Original = original
		found = true
		return err
	}, `SELECT `+storedColumns+`, a.original FROM attestations a JOIN claims c ON c.id = a.claim WHERE a.hash = ?`, h[:])
	if err == nil && !found {
		err = ground.ErrNotFound
	}
	if err == nil {
		err = s.dependencies(ctx, map[int64]*ground.Stored{id: &st})
	}
	return st, s.fail(ctx, "by hash", err)
}

func (s *Store) dependencies(ctx context.Context, of map[int64]*ground.Stored) error {
	for part := range slices.Chunk(slices.Collect(maps.Keys(of)), 512) {
		if err := s.dependenciesPart(ctx, of, pad(anys(part), int64(-1))); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) dependenciesPart(ctx context.Context, of map[int64]*ground.Stored, args []any) error {
	return s.query(ctx, func(r *sql.Rows) error {
		var id int64
		var iri string
		err := r.Scan(&id, &iri)
		if st := of[id]; st != nil {
			st.DependsOn = append(st.DependsOn, iri)
		}
		return err
	}, `SELECT attestation, iri FROM dependencies WHERE attestation IN (`+marks(len(args))+`) ORDER BY attestation, position`, args...)
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
	out := make([]ground.Attestations, len(claims))
	of := map[int64]*ground.Stored{}
	for i, claim := range claims {
		var err error
		if out[i], err = s.attestations(ctx, claim, perClaim, of); err != nil {
			return nil, s.fail(ctx, "attestations", err)
		}
	}
	return out, s.fail(ctx, "attestations", s.dependencies(ctx, of))
}

// attestations adds what it returns to of, by id.
func (s *Store) attestations(ctx context.Context, claim attest.Hash, limit int, of map[int64]*ground.Stored) (ground.Attestations, error) {
	out := ground.Attestations{Claim: claim}
	var ids []int64
	err := s.query(ctx, func(r *sql.Rows) error {
		id, st, err := scanStored(r)
		ids = append(ids, id)
		out.Records = append(out.Records, st)
		return err
	}, `SELECT `+storedColumns+` FROM claims c JOIN attestations a ON a.claim = c.id
		WHERE c.hash = ? AND a.superseded_by IS NULL ORDER BY a.status, a.issued DESC, a.hash LIMIT ?`, claim[:], limit+1)
	if err != nil {
		return out, err
	}
	if len(out.Records) > limit {
		out.Records, ids, out.Cut = out.Records[:limit], ids[:limit], true
	}
	for i := range out.Records {
		of[ids[i]] = &out.Records[i]
	}
	return out, nil
}

// The bounds of one page of the feed.
const (
	maxPage       = 1000
	maxPageOctets = 8 << 20
)

// Feed implements ground.Store.
func (s *Store) Feed(ctx context.Context, after ground.Cursor, limit int) ([]ground.Entry, error) {
	var out []ground.Entry
	size := 0
	err := s.query(ctx, func(r *sql.Rows) error {
		var e ground.Entry
		var hash []byte
		if err := r.Scan(&e.Cursor, &e.Event, &hash, &e.Original); err != nil {
			return err
		}
		e.Hash = hashOf(hash)
		if size += len(e.Original); size > maxPageOctets && len(out) > 0 {
			return errPageFull
		}
		out = append(out, e)
		return nil
	}, `SELECT f.seq, f.event, f.hash, coalesce(a.original, e.original)
		FROM feed f LEFT JOIN attestations a ON f.event = 0 AND a.hash = f.hash LEFT JOIN events e ON f.event <> 0 AND e.hash = f.hash
		WHERE f.seq > ? ORDER BY f.seq LIMIT ?`, int64(min(after, 1<<62)), max(1, min(limit, maxPage)))
	if errors.Is(err, errPageFull) {
		err = nil
	}
	return out, s.fail(ctx, "feed", err)
}

var errPageFull = errors.New("page is full")

// PeerCursor implements ground.Store.
func (s *Store) PeerCursor(ctx context.Context, peer string) (string, error) {
	cursor := ""
	err := s.query(ctx, func(r *sql.Rows) error { return r.Scan(&cursor) }, `SELECT position FROM peers WHERE peer = ?`, peer)
	return cursor, s.fail(ctx, "peer cursor", err)
}

// SetPeerCursor implements ground.Store.
func (s *Store) SetPeerCursor(ctx context.Context, peer, cursor string) error {
	if !text(peer) || !text(cursor) {
		return fmt.Errorf("store: set peer cursor: %w: ill-formed text", ground.ErrInvalid)
	}
	return s.update(ctx, "set peer cursor", func(t *tx) error {
		return t.exec(ctx, `INSERT INTO peers (peer, position) VALUES (?, ?)
			ON CONFLICT (peer) DO UPDATE SET position = excluded.position`, peer, cursor)
	})
}
