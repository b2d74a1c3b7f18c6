// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/storage"
)

// The bounds of a search. The rarest of the words has the fewest claims to look
// at; what has all words is looked for first, then what has each alone.
const (
	maxScan       = 1024 // claims with the rarest token that are looked at
	maxBlocks     = 256  // blocks of claims that are looked at for a token
	maxCandidates = 128  // claims that are weighed by the words that they are known to have
	maxRanked     = 64   // of those the best, whose text is read
	enough        = 64   // claims with all words, if there are so many, leave those with one unsought
	maxQuery      = 4096 // bytes of Query.Text that are looked at
	maxLooked     = 8    // the rarest words, which are looked for; the others are ranked by
	defaultLimit  = 10
	maxLimit      = 100
)

// A term is a token of the query.
type term struct {
	token  string
	claims int // that have it
	weight float64
}

// A searching is one search under way.
type searching struct {
	*Store
	all      int64 // claims in the store: the greatest id
	required []term
	words    []term // rarest first
	unknown  int    // words asked for that no claim has
	found    map[int64]bool
	order    []int64
	cut      bool
}

// Search implements ground.Store.
func (s *Store) Search(ctx context.Context, q ground.Query) (ground.Hits, error) {
	hits, err := s.search(ctx, q)
	return hits, s.fail(ctx, "search", err)
}

// search finds the claims with the words of a question, and ranks them by BM25. It looks at a bounded
// number of claims for each word, the newest first.
func (s *Store) search(ctx context.Context, q ground.Query) (ground.Hits, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	limit = min(limit, maxLimit)
	w := searching{Store: s, found: map[int64]bool{}}
	ok, err := w.plan(ctx, q)
	if err != nil || !ok {
		return ground.Hits{Cut: w.cut}, err
	}
	var claims []ground.Claim
	if q.ClaimHash != (attest.Hash{}) {
		claims, err = w.one(ctx, q)
	} else {
		if err = w.gather(ctx, max(limit, maxRanked)); err == nil {
			ids := storage.Pad(storage.Anys(w.order), int64(-1))
			claims, err = w.load(ctx, `id IN (`+storage.Marks(len(ids))+`)`, ids...)
		}
	}
	if err != nil {
		return ground.Hits{}, err
	}
	slices.SortFunc(claims, func(a, b ground.Claim) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Live, a.Live), slices.Compare(a.Hash[:], b.Hash[:]))
	})
	if len(claims) > limit {
		claims, w.cut = claims[:limit], true
	}
	return ground.Hits{Claims: claims, Cut: w.cut}, nil
}

// plan looks up how many claims have each token. It reports false if nothing can
// match.
func (w *searching) plan(ctx context.Context, q ground.Query) (bool, error) {
	var required []string
	for _, f := range [...]struct{ kind, value string }{{"g", q.GroupID}, {"t", q.Topic}, {"d", q.Domain}} {
		if f.value != "" {
			required = append(required, facet(f.kind, f.value))
		}
	}
	text := q.Text
	if len(text) > maxQuery {
		text, w.cut = text[:maxQuery], true
	}
	asked := words(text)
	slices.Sort(asked)
	asked = slices.Compact(asked)
	if len(asked) > maxWords {
		asked, w.cut = asked[:maxWords], true
	}
	if q.ClaimHash == (attest.Hash{}) && len(required)+len(asked) == 0 || len(asked) == 0 && q.Text != "" {
		return false, nil
	}
	counts, err := w.counts(ctx, slices.Concat(required, asked))
	if err != nil {
		return false, err
	}
	for _, token := range required {
		w.required = append(w.required, term{token: token, claims: counts[token]})
	}
	for _, token := range asked {
		if n := counts[token]; n > 0 {
			w.words = append(w.words, term{token, n, w.rarity(n)})
		} else {
			w.unknown++
		}
	}
	slices.SortFunc(w.required, byRarity)
	slices.SortFunc(w.words, byRarity)
	return (len(w.required) == 0 || w.required[0].claims > 0) && (len(asked) == 0 || len(w.words) > 0), nil
}

// rarity is the inverse document frequency of BM25 of a word that n claims have.
func (w *searching) rarity(n int) float64 {
	return max(0.01, math.Log(1+(float64(w.all-int64(n))+0.5)/(float64(n)+0.5)))
}

func byRarity(a, b term) int {
	return cmp.Or(cmp.Compare(a.claims, b.claims), strings.Compare(a.token, b.token))
}

func (w *searching) counts(ctx context.Context, tokens []string) (map[string]int, error) {
	out := map[string]int{}
	args := storage.Pad(storage.Anys(tokens), "_") // which is no token
	err := w.EachRow(ctx, func(r *sql.Rows) error {
		var token string
		var n int64
		err := r.Scan(&token, &n)
		if token == "" {
			w.all = n
		} else {
			out[token] = int(n)
		}
		return err
	}, `SELECT '', (SELECT coalesce(max(id), 0) FROM claims)
		UNION ALL SELECT token, claims FROM tokens WHERE token IN (`+storage.Marks(len(args))+`)`, args...)
	return out, err
}

// gather collects candidates, those with every word first, then those with one, by
// rarity, and keeps the best of them.
func (w *searching) gather(ctx context.Context, keep int) error {
	words := w.words
	if len(words) > maxLooked {
		words, w.cut = words[:maxLooked], true
	}
	// What every claim has tells nothing, unless it is all that is asked for.
	required := slices.DeleteFunc(slices.Clone(w.required), func(t term) bool { return int64(t.claims) >= w.all })
	if len(required)+len(words) == 0 {
		required = w.required[:1]
	}
	terms := slices.Concat(required, words)
	// Where even the rarest has very many claims, only the newest blocks, which
	// should hold maxScan of them, are looked at.
	floor := int64(0)
	if least := int64(slices.MinFunc(terms, byRarity).claims); least > maxScan {
		floor = w.all - w.all*maxScan/least
		w.cut = true
	}
	names := make([]string, len(terms))
	for i, t := range terms {
		names[i] = t.token
	}
	sets, cut, err := w.lookup(ctx, names, floor/blockClaims)
	if err != nil {
		return err
	}
	w.cut = w.cut || cut
	w.intersect(sets, terms)
	for i, t := range words {
		if len(words) == 1 {
			break
		}
		if len(w.order) >= maxCandidates || i == 0 && len(w.order) >= enough {
			w.cut = true
			break
		}
		w.intersect(sets, append(slices.Clone(required), t))
	}
	if len(w.order) > keep {
		w.weigh(sets, words)
		w.order, w.cut = w.order[:keep], true
	}
	return nil
}

// weigh sorts the candidates by the weight of those of the words that the index
// says they have, the heaviest first.
func (w *searching) weigh(sets map[posting]*claimSet, words []term) {
	weight := make(map[int64]float64, len(w.order))
	for _, id := range w.order {
		for _, t := range words {
			if set := sets[posting{id / blockClaims, t.token}]; set != nil && set.has(id%blockClaims) {
				weight[id] += t.weight
			}
		}
	}
	slices.SortStableFunc(w.order, func(a, b int64) int { return cmp.Compare(weight[b], weight[a]) })
}

// intersect adds claims that have every one of the terms, the newest first.
func (w *searching) intersect(sets map[posting]*claimSet, terms []term) {
	var blocks []int64
	for at := range sets {
		if at.token == terms[0].token {
			blocks = append(blocks, at.block)
		}
	}
	slices.Sort(blocks)
	for _, block := range slices.Backward(blocks) {
		common := *sets[posting{block, terms[0].token}]
		for _, t := range terms[1:] {
			if set := sets[posting{block, t.token}]; set != nil {
				common.and(set)
			} else {
				common = claimSet{}
			}
		}
		for offset := range common.descend {
			id := block*blockClaims + offset
			if w.found[id] {
				continue
			}
			if len(w.order) == maxCandidates {
				w.cut = true
				return
			}
			w.found[id] = true
			w.order = append(w.order, id)
		}
	}
}

// one finds a claim by its hash, if it has what else is asked for.
func (w *searching) one(ctx context.Context, q ground.Query) ([]ground.Claim, error) {
	where, args := `hash = ?`, []any{q.ClaimHash[:]}
	if q.GroupID != "" {
		where, args = where+` AND group_id = ?`, append(args, q.GroupID)
	}
	if q.Topic != "" {
		where, args = where+` AND (topic = ? OR topic > ? AND topic < ?)`, append(args, q.Topic, q.Topic+":", q.Topic+";")
	}
	if q.Domain != "" {
		where, args = where+` AND EXISTS (SELECT 1 FROM claim_domains d WHERE d.claim = claims.id AND d.domain = ?)`, append(args, q.Domain)
	}
	claims, err := w.load(ctx, where, args...)
	if len(w.words) > 0 {
		claims = slices.DeleteFunc(claims, func(c ground.Claim) bool { return c.Score == 0 })
	}
	return claims, err
}

// load reads claims and scores them.
func (w *searching) load(ctx context.Context, where string, args ...any) ([]ground.Claim, error) {
	var out []ground.Claim
	err := w.EachRow(ctx, func(r *sql.Rows) error {
		var c ground.Claim
		var hash []byte
		err := r.Scan(&hash, &c.Text, &c.Language, &c.GroupID, &c.Topic, &c.Live, &c.Total)
		c.Hash = hashOf(hash)
		c.Score, c.Match = w.score(c.Text)
		out = append(out, c)
		return err
	}, `SELECT hash, text, language, group_id, topic, live, total FROM claims WHERE `+where, args...)
	return out, err
}

// score is BM25 with its usual constants, against claims of 20 words, and the
// share of the weight of all words asked for that the claim has.
func (w *searching) score(claim string) (score, match float64) {
	if len(w.words) == 0 {
		return 0, 1
	}
	const k1, b, typical = 1.2, 0.75, 20
	all := words(claim)
	has, asked := 0.0, float64(w.unknown)*w.rarity(0)
	for _, t := range w.words {
		tf := 0.0
		for _, word := range all {
			if word == t.token {
				tf++
			}
		}
		score += t.weight * tf * (k1 + 1) / (tf + k1*(1-b+b*float64(len(all))/typical))
		asked += t.weight
		if tf > 0 {
			has += t.weight
		}
	}
	return score, has / asked
}
