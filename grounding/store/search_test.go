// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/grounding/store"
	"github.com/pellucid-mcp/pellucid/storage"
)

func TestSearch(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		add := func(validator, claim, topic, domain string) {
			r := record(validator, claim)
			r.Topic, r.Domain = topic, domain
			r.Hash, r.Key.Text = hash("%s%s%s", validator, claim, domain), hash("k%s%s%s", validator, claim, domain)
			put(t, s, r)
		}
		add("a", "Sea level rises by the melting of ice", "science:climate", "scientific-default")
		add("b", "Sea level rises by the melting of ice", "science:climate", "journalism-default")
		add("a", "Ice cream melts in summer", "food", "scientific-default")
		add("a", "The caf\u00e9 of G\u00f6del sells ice", "food:caf\u00e9", "journalism-default")
		add("a", "\u6771\u4eac\u30bf\u30ef\u30fc\u306f\u9ad8\u3044", "places", "scientific-default")
		sea, cream, cafe, tower := "Sea level rises by the melting of ice", "Ice cream melts in summer",
			"The caf\u00e9 of G\u00f6del sells ice", "\u6771\u4eac\u30bf\u30ef\u30fc\u306f\u9ad8\u3044"
		for _, tt := range []struct {
			q    ground.Query
			want []string
		}{
			{ground.Query{}, nil},
			{ground.Query{Text: "  ,.;"}, nil},
			{ground.Query{Text: "nowhere"}, nil},
			{ground.Query{Text: "sea ICE nowhere"}, []string{sea, cream, cafe}},
			{ground.Query{Text: "CAFE godel"}, []string{cafe}},
			{ground.Query{Text: "\u6771\u4eac"}, []string{tower}},
			{ground.Query{Topic: "food"}, []string{cream, cafe}},
			{ground.Query{Topic: "foo"}, nil},
			{ground.Query{Topic: "science"}, []string{sea}},
			{ground.Query{Text: "ice", Topic: "food:caf\u00e9"}, []string{cafe}},
			{ground.Query{Text: "ice", Domain: "journalism-default"}, []string{sea, cafe}},
			{ground.Query{GroupID: "urn:group:S"}, []string{sea}},
			{ground.Query{ClaimHash: hash("%s", sea)}, []string{sea}},
			{ground.Query{ClaimHash: hash("%s", sea), Domain: "journalism-default", Topic: "science", GroupID: "urn:group:S", Text: "ice"}, []string{sea}},
			{ground.Query{ClaimHash: hash("%s", sea), Topic: "food"}, nil},
			{ground.Query{ClaimHash: hash("%s", sea), Text: "cream"}, nil},
		} {
			got := search(t, s, tt.q)
			// Rank is checked for the first; the others may tie.
			if len(got) > 1 && len(tt.want) == len(got) && strings.Contains(tt.q.Text, " ") && got[0] != tt.want[0] {
				t.Errorf("%+v: first is %+q", tt.q, got[0])
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%+v: %s", tt.q, diff)
			}
		}
		hits, err := s.Search(ctx, ground.Query{Text: "ice", Limit: 2})
		if err != nil || len(hits.Claims) != 2 || !hits.Cut {
			t.Errorf("limit 2: %d claims, cut %v, %v", len(hits.Claims), hits.Cut, err)
		}
		if hits, _ := s.Search(ctx, ground.Query{Text: "ice"}); hits.Cut {
			t.Error("cut, though nothing was left out")
		}
	})
}

// A common word has more claims than a search looks at: it says so.
func TestSearchCut(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		var batch []ground.Record
		for i := range 400 {
			batch = append(batch, record("a", fmt.Sprintf("common claim with number n%d", i)))
		}
		put(t, s, batch...)
		hits, err := s.Search(ctx, ground.Query{Text: "common", Limit: 100})
		if err != nil || len(hits.Claims) != 100 || !hits.Cut {
			t.Errorf("%d claims, cut %v, %v", len(hits.Claims), hits.Cut, err)
		}
		if got := search(t, s, ground.Query{Text: "common n7 claim"}); len(got) == 0 || got[0] != batch[7].ClaimText {
			t.Errorf("the rare word does not decide: %+q", got)
		}
	})
}

// The index is kept in blocks of 4096 claims.
func TestSearchBlocks(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		var all []ground.Record
		for i := range 4300 {
			text := fmt.Sprintf("common claim n%d", i)
			if i == 5 || i == 4200 {
				text += " seldom"
			}
			all = append(all, record("a", text))
		}
		for part := range slices.Chunk(all, 3000) {
			put(t, s, part...)
		}
		other := record("b", all[9].ClaimText)
		other.Domain = "journalism-default"
		put(t, s, other)
		for _, tt := range []struct {
			q    ground.Query
			want []int // claims that come first, in any order
		}{
			{ground.Query{Text: "common n7 claim"}, []int{7}},
			{ground.Query{Text: "common n4299"}, []int{4299}},
			{ground.Query{Text: "seldom common"}, []int{5, 4200}},
			{ground.Query{Text: "common", Domain: "journalism-default"}, []int{9}},
			{ground.Query{Topic: "science", Domain: "journalism-default"}, []int{9}},
		} {
			got := search(t, s, tt.q)
			for _, i := range tt.want {
				if !slices.Contains(got[:min(len(got), len(tt.want))], all[i].ClaimText) {
					t.Errorf("%+v: %d is not among the first of %+q", tt.q, i, got)
				}
			}
			if (tt.q.Domain != "") != (len(got) == len(tt.want)) {
				t.Errorf("%+v: %d claims", tt.q, len(got))
			}
		}
	})
}

var hostile = []string{
	`" OR "1"="1`, `a AND`, `NEAR(a b)`, `ice*`, `^ice`, `tokens:ice`, `-ice`, `'; DROP TABLE claims; --`, `a & ! | b:*`, `'ice':*A`,
	"\x00", "ice\x00", "\xff\xfe", "\u202eice", "_tdeadbeef", "{ice}", `\`, `''`, "\U0010ffff", strings.Repeat("a", 1<<16),
	strings.Repeat("w ", 5000), "$1 ? :x @y", "%s%n", "\u0301\u0301", "a\u200db",
}

func TestSearchHostile(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		put(t, s, record("a", "The ice melts."))
		for _, q := range hostile {
			for _, query := range []ground.Query{{Text: q}, {Text: "ice " + q}, {Topic: q}, {GroupID: q, Domain: q}} {
				hits, err := s.Search(ctx, query)
				if err != nil {
					t.Errorf("%.40q: %v", q, err)
				}
				if strings.HasPrefix(query.Text, "ice ") && len(hits.Claims) != 1 {
					t.Errorf("%.40q: ice is not found", q)
				}
			}
		}
	})
}

func FuzzSearch(f *testing.F) {
	for _, q := range hostile {
		f.Add(q)
	}
	s := open(f, filepath.Join(f.TempDir(), "fuzz.db"), storage.Options{})
	put(f, s, record("a", "The ice melts."))
	f.Fuzz(func(t *testing.T, q string) {
		if _, err := s.Search(ctx, ground.Query{Text: q, Topic: q[:len(q)/2]}); err != nil {
			t.Fatal(err)
		}
		for _, w := range store.Words(q) {
			if w == "" || len(w) > 128 || strings.ContainsAny(w, "_\"'\\ \x00") || strings.ToValidUTF8(w, "") != w {
				t.Errorf("word %+q", w)
			}
		}
	})
}

// The short way for ASCII must not find other words than the long way: a trailing
// character that is no word forces the long one.
func TestWordsASCII(t *testing.T) {
	t.Parallel()
	for _, s := range append(hostile, "Mixed CASE, and 1st-class don't_do", strings.Repeat("Ab9", 100)) {
		if strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 }) {
			continue
		}
		if diff := cmp.Diff(store.Words(s+" \u2014"), store.Words(s), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%.40q: %s", s, diff)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]string{
		"":                                     {},
		"It's 10\u202f% O\u2082-free":          {"it", "s", "10", "o2", "free"},
		"\uff29\uff23\uff25 \u00c9T\u00c9":     {"ice", "ete"},
		"\u6771\u4eac\u90fd x":                 {"\u6771\u4eac", "\u4eac\u90fd", "x"},
		"\u6771":                               {"\u6771"},
		"a\u6771b":                             {"a", "\u6771", "b"},
		"\u0939\u093f\u0928\u094d\u0926\u0940": {"\u0939\u093f\u0928\u0926\u0940"},
	} {
		if diff := cmp.Diff(want, store.Words(in), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%+q: %s", in, diff)
		}
	}
}
