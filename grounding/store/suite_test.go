// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/grounding/store"
	"github.com/pellucid-mcp/pellucid/platform/pgtest"
	"github.com/pellucid-mcp/pellucid/storage"
)

func TestMain(m *testing.M) {
	if where := os.Getenv("PELLUCID_STORE_CHILD"); where != "" {
		importForever(where)
		return
	}
	if what := os.Getenv(benchEnv); what != "" {
		if err := benchmarking(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	server.Stop()
	os.Exit(code)
}

// server starts once a test wants Postgres.
var server pgtest.Server

var ctx = context.Background()

// engines runs f with the place of an empty store on each engine.
func engines(t *testing.T, f func(t *testing.T, where string)) {
	t.Run("sqlite", func(t *testing.T) { f(t, filepath.Join(t.TempDir(), "a ?%#.db")) })
	t.Run("postgres", func(t *testing.T) { f(t, server.Database(t)) })
}

func open(t testing.TB, where string, o storage.Options) *store.Store {
	t.Helper()
	s, err := openStore(where, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func openStore(where string, o storage.Options) (*store.Store, error) {
	s, err := storage.Open(ctx, where, o)
	if err != nil {
		return nil, err
	}
	a, err := store.New(ctx, s)
	if err != nil {
		s.Close()
	}
	return a, err
}

func hash(format string, args ...any) attest.Hash {
	return sha256.Sum256(fmt.Appendf(nil, format, args...))
}

var day = time.Date(2026, 4, 25, 12, 0, 0, 123456789, time.UTC)

// record makes what validator says of a claim.
func record(validator, claim string) ground.Record {
	return ground.Record{
		Hash: hash("%s says %s", validator, claim), HashVersion: "0.3",
		Key: attest.DedupKey{Text: hash("text %s %s", validator, claim), Skeleton: hash("skeleton %s %s", validator, claim)},
		ID:  "urn:x:" + validator + ":" + claim, Validator: "did:key:" + validator,
		ClaimHash: hash("%s", claim), ClaimText: claim, Language: "en", GroupID: fmt.Sprintf("urn:group:%c", []rune(claim)[0]), Topic: "science:climate",
		Domain: "scientific-default", Verdict: attest.Supported, Issued: day,
		Original: []byte("original " + validator + claim), Projection: []byte("projection " + validator + claim),
	}
}

func put(t testing.TB, s *store.Store, batch ...ground.Record) []ground.PutResult {
	t.Helper()
	out, err := s.Put(ctx, batch, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func status(t *testing.T, s *store.Store, r ground.Record) consensus.Status {
	t.Helper()
	st, err := s.ByHash(ctx, r.Hash)
	if err != nil {
		t.Fatal(err)
	}
	return st.Status
}

func search(t *testing.T, s *store.Store, q ground.Query) []string {
	t.Helper()
	hits, err := s.Search(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range hits.Claims {
		out = append(out, c.Text)
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		r := record("a", "The ice melts.")
		r.Expires = day.Add(time.Hour)
		r.DependsOn = []string{"urn:source:2", "urn:source:1"}
		put(t, s, r)
		s.Close()
		s = open(t, where, storage.Options{})
		got, err := s.ByHash(ctx, r.Hash)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ground.Stored{Record: r, Status: consensus.Live}, got); diff != "" {
			t.Error(diff)
		}
		r.Original = nil
		as, err := s.Attestations(ctx, []attest.Hash{hash("unknown"), r.ClaimHash}, 10)
		if err != nil {
			t.Fatal(err)
		}
		want := []ground.Attestations{{Claim: hash("unknown")},
			{Claim: r.ClaimHash, Records: []ground.Stored{{Record: r, Status: consensus.Live}}}}
		if diff := cmp.Diff(want, as); diff != "" {
			t.Error(diff)
		}
		if _, err := s.ByHash(ctx, hash("unknown")); !errors.Is(err, ground.ErrNotFound) {
			t.Errorf("unknown hash: %v", err)
		}
	})
}

func TestPutRelates(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		first := record("a", "Cats purr.")
		later := first
		later.Hash, later.Issued = hash("later"), day.Add(time.Nanosecond)
		latest := first
		latest.Hash, latest.Issued = hash("latest"), day.Add(2*time.Nanosecond)
		twin := record("b", "Cats purr.")
		alike := record("a", "Cats pu\u0433r.")
		alike.Key.Skeleton = first.Key.Skeleton

		for i, step := range []struct {
			batch []ground.Record
			want  []ground.PutResult
		}{
			{[]ground.Record{first, first}, []ground.PutResult{
				{Disposition: ground.Added, Status: consensus.Live},
				{Disposition: ground.Duplicate, Status: consensus.Live, Other: first.Hash}}},
			{[]ground.Record{first, twin}, []ground.PutResult{
				{Disposition: ground.Duplicate, Status: consensus.Live, Other: first.Hash},
				{Disposition: ground.Added, Status: consensus.Live}}},
			{[]ground.Record{later, latest, later, first}, []ground.PutResult{
				{Disposition: ground.Renewed, Status: consensus.Live, Other: first.Hash},
				{Disposition: ground.Renewed, Status: consensus.Live, Other: later.Hash},
				{Disposition: ground.Duplicate, Status: consensus.Live, Other: later.Hash},
				{Disposition: ground.Duplicate, Status: consensus.Live, Other: first.Hash}}},
			{[]ground.Record{alike}, []ground.PutResult{
				{Disposition: ground.Added, Status: consensus.Live, Lookalike: first.Hash}}},
		} {
			if diff := cmp.Diff(step.want, put(t, s, step.batch...)); diff != "" {
				t.Errorf("step %d: %s", i, diff)
			}
		}
		st, err := s.ByHash(ctx, first.Hash)
		if err != nil || st.SupersededBy != later.Hash {
			t.Errorf("superseded by %v, %v", st.SupersededBy, err)
		}
		as, err := s.Attestations(ctx, []attest.Hash{first.ClaimHash}, 1)
		if err != nil || len(as[0].Records) != 1 || as[0].Records[0].Hash != latest.Hash || !as[0].Cut {
			t.Errorf("Attestations = %+v, %v", as, err)
		}
		hits, err := s.Search(ctx, ground.Query{ClaimHash: first.ClaimHash})
		if err != nil || len(hits.Claims) != 1 || hits.Claims[0].Live != 2 || hits.Claims[0].Total != 2 {
			t.Errorf("Search = %+v, %v", hits, err)
		}
	})
}

// A claim that is hashed by another version is another claim, but who says the
// same of it renews what he said.
func TestRenewalOfOtherClaim(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		old := record("a", "Dogs bark.")
		renewal := old
		renewal.Hash, renewal.ClaimHash, renewal.Issued = hash("renewal"), hash("other version"), day.Add(time.Second)
		put(t, s, old, record("b", "Dogs bark."))
		put(t, s, renewal)
		for claim, want := range map[attest.Hash]int{old.ClaimHash: 1, renewal.ClaimHash: 1} {
			hits, err := s.Search(ctx, ground.Query{ClaimHash: claim})
			if err != nil || len(hits.Claims) != 1 || hits.Claims[0].Live != want || hits.Claims[0].Total != want {
				t.Errorf("Search = %+v, %v", hits, err)
			}
		}
	})
}

func TestPutRefusesWhole(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		for name, spoil := range map[string]func(*ground.Record){
			"no hash":      func(r *ground.Record) { r.Hash = attest.Hash{} },
			"NUL":          func(r *ground.Record) { r.ClaimText = "a\x00b" },
			"ill-formed":   func(r *ground.Record) { r.DependsOn = []string{"\xff"} },
			"year 10000":   func(r *ground.Record) { r.Expires = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
			"no validator": func(r *ground.Record) { r.Validator = "" },
		} {
			good, bad := record("a", "Good."), record("a", "Bad.")
			spoil(&bad)
			if _, err := s.Put(ctx, []ground.Record{good, bad}, nil); !errors.Is(err, ground.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := s.ByHash(ctx, good.Hash); !errors.Is(err, ground.ErrNotFound) {
				t.Errorf("%s: half of a batch was stored: %v", name, err)
			}
		}
		if _, err := s.Put(ctx, make([]ground.Record, ground.MaxBatch+1), nil); !errors.Is(err, ground.ErrInvalid) {
			t.Errorf("long batch: %v", err)
		}
	})
}

func TestCascade(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		base, mid, top := record("a", "Base."), record("a", "Mid."), record("a", "Top.")
		ring1, ring2, free := record("a", "Ring one."), record("a", "Ring two."), record("a", "Free.")
		base.DependsOn = []string{"https://source.example/1"}
		mid.DependsOn = []string{base.Hash.String()}
		top.DependsOn = []string{mid.ID}
		ring1.DependsOn = []string{ring2.ID, top.ID}
		ring2.DependsOn = []string{ring1.ID}
		put(t, s, top, ring1, ring2, free)
		put(t, s, base, mid)
		all := []ground.Record{base, mid, top, ring1, ring2, free}
		check := func(step string, want ...consensus.Status) {
			t.Helper()
			for i, r := range all {
				if got := status(t, s, r); got != want[i] {
					t.Errorf("%s: %s has status %d, want %d", step, r.ClaimText, got, want[i])
				}
			}
		}
		n := 0
		apply := func(kind ground.CascadeKind, target string, at time.Duration) ground.Change {
			t.Helper()
			n++
			c, err := s.Apply(ctx, ground.Cascade{Hash: hash("event %d", n), Kind: kind, Target: target, At: day.Add(at), Original: []byte("event")}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		const live, pending, retracted = consensus.Live, consensus.CascadePending, consensus.Retracted
		check("at first", live, live, live, live, live, live)
		if c := apply(ground.Retract, "https://source.example/1", 10); c != (ground.Change{Pending: 5}) {
			t.Errorf("change %+v", c)
		}
		check("source retracted", pending, pending, pending, pending, pending, live)
		hits, err := s.Search(ctx, ground.Query{Text: "mid"})
		if err != nil || len(hits.Claims) != 1 || hits.Claims[0].Live != 0 || hits.Claims[0].Total != 1 {
			t.Errorf("Search = %+v, %v", hits, err)
		}
		if c := apply(ground.Reverse, "https://source.example/1", 5); c != (ground.Change{}) {
			t.Errorf("an earlier reversal that comes late: %+v", c)
		}
		apply(ground.Reverse, "https://source.example/1", 20)
		check("reversed", live, live, live, live, live, live)
		apply(ground.Retract, mid.Hash.String(), 30)
		check("attestation retracted", live, retracted, pending, pending, pending, live)

		late := record("a", "Late.")
		late.DependsOn = []string{top.Hash.String()}
		for _, o := range put(t, s, late, late) {
			if o.Status != pending {
				t.Errorf("what depends on what does not stand came in as %+v", o)
			}
		}
		e := ground.Cascade{Hash: hash("event 1"), Kind: ground.Retract, Target: "https://source.example/1", At: day}
		if c, err := s.Apply(ctx, e, nil); err != nil || !c.Duplicate {
			t.Errorf("replayed event: %+v, %v", c, err)
		}
		apply(ground.Retract, "urn:x:b:Unborn.", 40)
		if got := put(t, s, record("b", "Unborn."))[0].Status; got != retracted {
			t.Errorf("retracted before it came: %d", got)
		}
		entries, err := s.Feed(ctx, 0, 100)
		if err != nil || len(entries) != 8+n {
			t.Errorf("Feed: %d entries, %v", len(entries), err)
		}
	})
}

func TestFeed(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		const writers, each = 4, 30
		var wg sync.WaitGroup
		for w := range writers {
			s := open(t, where, storage.Options{Wait: 30 * time.Second})
			wg.Go(func() {
				for i := range each {
					if _, err := s.Put(ctx, []ground.Record{record(fmt.Sprint(w), fmt.Sprint("claim ", i))}, nil); err != nil {
						t.Error(err)
					}
				}
			})
		}
		s := open(t, where, storage.Options{})
		seen := map[attest.Hash]bool{}
		var at ground.Cursor
		for deadline := time.Now().Add(time.Minute); len(seen) < writers*each && time.Now().Before(deadline); {
			entries, err := s.Feed(ctx, at, 7)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if e.Cursor != at+1 || seen[e.Hash] || !strings.HasPrefix(string(e.Original), "original") {
					t.Fatalf("entry %+v after %d", e, at)
				}
				at = e.Cursor
				seen[e.Hash] = true
			}
		}
		wg.Wait()
		if len(seen) != writers*each {
			t.Errorf("%d of %d seen", len(seen), writers*each)
		}
	})
}
