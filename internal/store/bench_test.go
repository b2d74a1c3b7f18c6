package store_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/attest"
	"github.com/pellucid-mcp/pellucid/ground"
	"github.com/pellucid-mcp/pellucid/internal/store"
)

// vocabulary is drawn from by Zipf's law, as words of a language are.
type vocabulary struct {
	zipf *rand.Zipf
	rnd  *rand.Rand
}

func newVocabulary(seed uint64) vocabulary {
	r := rand.New(rand.NewPCG(seed, 1))
	return vocabulary{rand.NewZipf(r, 1.07, 4, 60_000), r}
}

func (v vocabulary) text(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = "w" + strconv.FormatUint(v.zipf.Uint64(), 36)
	}
	return strings.Join(out, " ")
}

// fill stores claims, each with five attestations, all of one topic, and returns
// how many a second.
func fill(b *testing.B, s *store.Store, claims int) float64 {
	v := newVocabulary(1)
	body := []byte(strings.Repeat("x", 700))
	began := time.Now()
	n := 0
	var batch []ground.Record
	for i := range claims {
		text := v.text(8 + v.rnd.IntN(16))
		for who := range 5 {
			r := ground.Record{
				Hash: hash("%d by %d", i, who), HashVersion: "0.3", ID: fmt.Sprintf("urn:x:%d:%d", i, who),
				Key:       attest.DedupKey{Text: hash("t%d by %d", i, who), Skeleton: hash("s%d by %d", i, who)},
				Validator: fmt.Sprintf("did:key:z6Mk%040d", who), ClaimHash: hash("%d", i), ClaimText: text, Language: "en",
				Topic: "science:climate", Domain: "scientific-default", Verdict: attest.Supported, Issued: day,
				Original: body, Projection: body,
			}
			batch = append(batch, r)
		}
		if len(batch) >= 1000 || i == claims-1 {
			n += len(batch)
			put(b, s, batch...)
			batch = batch[:0]
		}
	}
	return float64(n) / time.Since(began).Seconds()
}

// BenchmarkStore imports PELLUCID_BENCH_CLAIMS claims (200,000 are a million
// attestations; the default is 2,000) and then searches at 8 clients.
func BenchmarkStore(b *testing.B) {
	claims := 2000
	if n, err := strconv.Atoi(os.Getenv("PELLUCID_BENCH_CLAIMS")); err == nil {
		claims = n
	}
	for _, engine := range []string{"sqlite", "postgres"} {
		b.Run(engine, func(b *testing.B) {
			where := filepath.Join(b.TempDir(), "bench.db")
			if engine == "postgres" {
				where = server.database(b)
			}
			s := open(b, where, store.Options{})
			b.ReportMetric(fill(b, s, claims), "attestations/s")
			took := queries(b, s, 8, 4*time.Second)
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(len(took))/4, "searches/s")
		})
	}
}

// queries searches from several clients and fetches the attestations of what is
// found, as an answer needs them.
func queries(b *testing.B, s *store.Store, clients int, d time.Duration) []time.Duration {
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for c := range clients {
		wg.Go(func() {
			v := newVocabulary(uint64(100 + c))
			var took []time.Duration
			for i := 0; time.Now().Before(end); i++ {
				q := ground.Query{Limit: 5, Text: []string{"w0", "w0 w1", "w0 w1 w2 w3", v.text(1), v.text(3), v.text(6)}[i%6]}
				if i%2 == 0 {
					q.Topic = "science"
				}
				began := time.Now()
				hits, err := s.Search(ctx, q)
				if err != nil {
					b.Error(err)
					return
				}
				var hashes []attest.Hash
				for _, c := range hits.Claims {
					hashes = append(hashes, c.Hash)
				}
				if _, err := s.Attestations(ctx, hashes, 20); err != nil {
					b.Error(err)
					return
				}
				took = append(took, time.Since(began))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
		})
	}
	wg.Wait()
	return all
}
