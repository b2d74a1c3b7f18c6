// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/storage"
)

// Put implements ground.Store.
func (s *Store) Put(ctx context.Context, batch []ground.Record, evidence func([]ground.PutResult) ([][]byte, error)) ([]ground.PutResult, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	if len(batch) > ground.MaxBatch {
		return nil, fmt.Errorf("store: put: %w: batch of %d is longer than %d", ground.ErrInvalid, len(batch), ground.MaxBatch)
	}
	for i := range batch {
		if why := flaw(&batch[i]); why != "" {
			return nil, fmt.Errorf("store: put: %w: record %d: %s", ground.ErrInvalid, i, why)
		}
	}
	var out []ground.PutResult
	err := s.update(ctx, "put", func(t *tx) error {
		p := putting{tx: t, batch: batch}
		if err := p.run(ctx); err != nil {
			return err
		}
		out = p.outcomes
		if evidence == nil {
			return nil
		}
		records, err := evidence(out)
		if err != nil {
			return err
		}
		return t.AddRecords(ctx, records...)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// flaw says why r cannot be stored, "" if it can.
func flaw(r *ground.Record) string {
	switch {
	case r.Hash == attest.Hash{}, r.ClaimHash == attest.Hash{}, r.Key.Text == attest.Hash{}:
		return "no hash"
	case r.Validator == "" || r.Verdict == "" || r.Domain == "":
		return "no validator, verdict or domain"
	case !storable(r.Issued) || !r.Expires.IsZero() && !storable(r.Expires):
		return "time out of range"
	}
	texts := append([]string{string(r.HashVersion), r.ID, r.Validator, r.ClaimText, r.Language, r.GroupID, r.Topic,
		r.Domain, string(r.Verdict)}, r.DependsOn...)
	for _, s := range texts {
		if !text(s) {
			return "ill-formed text"
		}
	}
	return ""
}

// text reports whether both engines can keep s as text.
func text(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// storable reports whether stamp and parseStamp keep t.
func storable(t time.Time) bool {
	return !t.IsZero() && t.UTC().Year() >= 0 && t.UTC().Year() <= 9999
}

// known is an attestation as far as Relate needs it.
type known struct {
	attest.Identity
	status consensus.Status
	claim  int64
	at     int // index in the batch, -1 if it is stored already
}

type claimRow struct {
	ground.Claim
	id      int64
	domains []string
	fresh   []string // domains that are new to it
	isNew   bool
	added   int // attestations of the batch
}

// A putting is one batch on its way into the store.
type putting struct {
	*tx
	batch    []ground.Record
	outcomes []ground.PutResult

	byHash    map[attest.Hash]known
	current   map[attest.Hash]known // by text key: the one that is not superseded
	lookalike map[attest.Hash]attest.Hash
	claims    map[attest.Hash]*claimRow

	added        []int               // indices of the batch
	supersededBy map[int]attest.Hash // index of the batch → its renewal
	superseded   []attest.Hash       // stored before, each with
	renewals     []attest.Hash       // its renewal
	lastID       int64               // of the attestations
	nextClaim    int64
	renewed      map[int64]bool // claims that lose a superseded attestation
}

func (p *putting) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		p.load, p.relate, p.insertClaims, p.insertAttestations, p.insertDependencies, p.count, p.settleNew, p.publish,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// load fetches what is stored of everything that the batch names.
func (p *putting) load(ctx context.Context) error {
	p.outcomes = make([]ground.PutResult, len(p.batch))
	p.byHash, p.current = map[attest.Hash]known{}, map[attest.Hash]known{}
	p.lookalike, p.claims = map[attest.Hash]attest.Hash{}, map[attest.Hash]*claimRow{}
	p.supersededBy, p.renewed = map[int]attest.Hash{}, map[int64]bool{}
	err := p.QueryRowContext(ctx, `SELECT (SELECT coalesce(max(id), 0) FROM attestations), (SELECT coalesce(max(id), 0) FROM claims)`).
		Scan(&p.lastID, &p.nextClaim)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(p.batch, storage.Chunk) {
		if err := p.loadPart(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// loadPart loads what the store has for a part of the batch: attestations with the same hash, the same
// text or a similar one (by skeleton), and the claims.
func (p *putting) loadPart(ctx context.Context, part []ground.Record) error {
	keys := func(of func(*ground.Record) attest.Hash) []any {
		out := make([]any, len(part))
		for i := range part {
			h := of(&part[i])
			out[i] = h[:]
		}
		return out
	}
	identities := func(into map[attest.Hash]known, key func(known) attest.Hash) func(*sql.Rows) error {
		return func(r *sql.Rows) error {
			var hash, text, skeleton []byte
			var issued string
			k := known{at: -1}
			if err := r.Scan(&hash, &text, &skeleton, &issued, &k.status, &k.claim); err != nil {
				return err
			}
			k.Hash, k.Key = hashOf(hash), attest.DedupKey{Text: hashOf(text), Skeleton: hashOf(skeleton)}
			var err error
			k.Issued, err = storage.ParseStamp(issued)
			into[key(k)] = k
			return err
		}
	}
	in := "(" + storage.Marks(len(part)) + ")"
	const columns = `SELECT hash, dedup, skeleton, issued, status, claim FROM attestations WHERE `
	err := p.EachRow(ctx, identities(p.byHash, func(k known) attest.Hash { return k.Hash }),
		columns+`hash IN `+in, keys(func(r *ground.Record) attest.Hash { return r.Hash })...)
	if err != nil {
		return err
	}
	err = p.EachRow(ctx, identities(p.current, func(k known) attest.Hash { return k.Key.Text }),
		columns+`superseded_by IS NULL AND dedup IN `+in, keys(func(r *ground.Record) attest.Hash { return r.Key.Text })...)
	if err != nil {
		return err
	}
	err = p.EachRow(ctx, func(r *sql.Rows) error {
		var skeleton, hash []byte
		err := r.Scan(&skeleton, &hash)
		p.lookalike[hashOf(skeleton)] = hashOf(hash)
		return err
	}, `SELECT s.skeleton, (SELECT hash FROM attestations a WHERE a.skeleton = s.skeleton ORDER BY id LIMIT 1)
		FROM (SELECT DISTINCT skeleton FROM attestations WHERE skeleton IN `+in+`) s`,
		keys(func(r *ground.Record) attest.Hash { return r.Key.Skeleton })...)
	if err != nil {
		return err
	}
	return p.loadClaims(ctx, in, keys(func(r *ground.Record) attest.Hash { return r.ClaimHash }))
}

func (p *putting) loadClaims(ctx context.Context, in string, hashes []any) error {
	byID := map[int64]*claimRow{}
	err := p.EachRow(ctx, func(r *sql.Rows) error {
		c := new(claimRow)
		var hash []byte
		err := r.Scan(&c.id, &hash, &c.Text, &c.GroupID, &c.Topic)
		c.Hash = hashOf(hash)
		p.claims[c.Hash], byID[c.id] = c, c
		return err
	}, `SELECT id, hash, text, group_id, topic FROM claims WHERE hash IN `+in, hashes...)
	if err != nil {
		return err
	}
	return p.EachRow(ctx, func(r *sql.Rows) error {
		var id int64
		var domain string
		err := r.Scan(&id, &domain)
		if c := byID[id]; c != nil {
			c.domains = append(c.domains, domain)
		}
		return err
	}, `SELECT d.claim, d.domain FROM claims c JOIN claim_domains d ON d.claim = c.id WHERE c.hash IN `+in, hashes...)
}

// relate decides about every record, in order.
func (p *putting) relate(context.Context) error {
	for i := range p.batch {
		r := &p.batch[i]
		fresh := known{Identity: r.Identity(), status: consensus.Live, at: i}
		o := &p.outcomes[i]
		if k, ok := p.byHash[r.Hash]; ok {
			*o = ground.PutResult{Disposition: ground.Duplicate, Status: k.status, Other: k.Hash}
			continue
		}
		*o = ground.PutResult{Disposition: ground.Added, Status: consensus.Live}
		if k, ok := p.current[r.Key.Text]; ok {
			if attest.Relate(k.Identity, fresh.Identity) != attest.Renewal {
				*o = ground.PutResult{Disposition: ground.Duplicate, Status: k.status, Other: k.Hash}
				continue
			}
			*o = ground.PutResult{Disposition: ground.Renewed, Status: consensus.Live, Other: k.Hash}
			p.supersede(k, r.Hash)
		} else if h, ok := p.lookalike[r.Key.Skeleton]; ok {
			o.Lookalike = h
		}
		fresh.claim = p.noteClaim(r)
		p.byHash[r.Hash], p.current[r.Key.Text] = fresh, fresh
		if _, ok := p.lookalike[r.Key.Skeleton]; !ok {
			p.lookalike[r.Key.Skeleton] = r.Hash
		}
		p.added = append(p.added, i)
	}
	return nil
}

func (p *putting) supersede(k known, renewal attest.Hash) {
	p.renewed[k.claim] = true
	if k.at >= 0 {
		p.supersededBy[k.at] = renewal
		return
	}
	p.superseded, p.renewals = append(p.superseded, k.Hash), append(p.renewals, renewal)
}

// noteClaim counts r with its claim and returns the claim's id.
func (p *putting) noteClaim(r *ground.Record) int64 {
	c := p.claims[r.ClaimHash]
	if c == nil {
		p.nextClaim++
		c = &claimRow{id: p.nextClaim, isNew: true, Claim: ground.Claim{
			Hash: r.ClaimHash, Text: r.ClaimText, Language: r.Language, GroupID: r.GroupID, Topic: r.Topic}}
		p.claims[r.ClaimHash] = c
	}
	if !slices.Contains(c.domains, r.Domain) {
		c.domains = append(c.domains, r.Domain)
		c.fresh = append(c.fresh, r.Domain)
	}
	c.added++
	return c.id
}
