package store

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/attest"
	"github.com/pellucid-mcp/pellucid/ground"
)

// The bounds of a search. The rarest of the words has the fewest claims to look
// at; what has all words is looked for first, then what has each alone.
const (
	maxScan       = 1024 // claims with the rarest token that an intersection looks at
	maxCandidates = 128  // claims that are ranked
	enough        = 64   // claims with all words, if there are so many, leave those with one unsought
	maxQuery      = 4096 // octets of Query.Text that are looked at
	tryWords      = 8    // the rarest words that are looked for alone
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
	found    map[int64]bool
	order    []int64
	cut      bool
}

// Search implements ground.Store.
func (s *Store) Search(ctx context.Context, q ground.Query) (ground.Hits, error) {
	hits, err := s.search(ctx, q)
	return hits, s.fail(ctx, "search", err)
}

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
		if err = w.gather(ctx); err == nil {
			ids := pad(anys(w.order), int64(-1))
			claims, err = w.load(ctx, `id IN (`+marks(len(ids))+`)`, ids...)
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
			idf := math.Log(1 + (float64(w.all-int64(n))+0.5)/(float64(n)+0.5))
			w.words = append(w.words, term{token, n, max(idf, 0.01)})
		}
	}
	rarest(w.required)
	rarest(w.words)
	return (len(w.required) == 0 || w.required[0].claims > 0) && (len(asked) == 0 || len(w.words) > 0), nil
}

func rarest(ts []term) {
	slices.SortFunc(ts, func(a, b term) int {
		return cmp.Or(cmp.Compare(a.claims, b.claims), strings.Compare(a.token, b.token))
	})
}

func (w *searching) counts(ctx context.Context, tokens []string) (map[string]int, error) {
	out := map[string]int{}
	args := pad(anys(tokens), "_") // which is no token
	err := w.query(ctx, func(r *sql.Rows) error {
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
		UNION ALL SELECT token, claims FROM tokens WHERE token IN (`+marks(len(args))+`)`, args...)
	return out, err
}

// gather collects candidates: those with every word first, then those with one,
// by rarity.
func (w *searching) gather(ctx context.Context) error {
	if err := w.intersect(ctx, slices.Concat(w.required, w.words)); err != nil {
		return err
	}
	if len(w.words) < 2 {
		return nil
	}
	for i, t := range w.words {
		if i == tryWords || len(w.order) >= maxCandidates || i == 0 && len(w.order) >= enough {
			w.cut = true
			return nil
		}
		if err := w.intersect(ctx, append(slices.Clone(w.required), t)); err != nil {
			return err
		}
	}
	return nil
}

// intersect adds claims that have every one of the terms, the newest first. Where
// even the rarest of several has very many claims, it looks only at the newest
// claims, as many as should hold maxScan of them.
func (w *searching) intersect(ctx context.Context, terms []term) error {
	rarest(terms)
	floor, least := int64(0), int64(terms[0].claims)
	if len(terms) > 1 && least > maxScan {
		floor = w.all - w.all*maxScan/least
		w.cut = true
	}
	tokens := make([]string, len(terms))
	for i, t := range terms {
		tokens[i] = t.token
	}
	room := maxCandidates - len(w.order)
	// Some of these may have been found with all words; ask for enough to tell.
	query, expression := w.engine.candidates(tokens)
	return w.query(ctx, func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		switch {
		case w.found[id]:
		case room == 0:
			w.cut = true
		default:
			w.found[id] = true
			w.order = append(w.order, id)
			room--
		}
		return err
	}, query, expression, floor, maxCandidates+1)
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
	err := w.query(ctx, func(r *sql.Rows) error {
		var c ground.Claim
		var hash []byte
		err := r.Scan(&hash, &c.Text, &c.Language, &c.GroupID, &c.Topic, &c.Live, &c.Total)
		c.Hash = hashOf(hash)
		c.Score = score(c.Text, w.words)
		out = append(out, c)
		return err
	}, `SELECT hash, text, language, group_id, topic, live, total FROM claims WHERE `+where, args...)
	return out, err
}

// score is BM25 with its usual constants, against claims of 20 words.
func score(claim string, asked []term) float64 {
	if len(asked) == 0 {
		return 0
	}
	const k1, b, typical = 1.2, 0.75, 20
	all := words(claim)
	count := map[string]float64{}
	for _, word := range all {
		count[word]++
	}
	sum := 0.0
	for _, t := range asked {
		tf := count[t.token]
		sum += t.weight * tf * (k1 + 1) / (tf + k1*(1-b+b*float64(len(all))/typical))
	}
	return sum
}
