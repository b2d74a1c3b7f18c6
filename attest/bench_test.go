package attest

import (
	"context"
	"errors"
	"testing"

	"github.com/pellucid-mcp/pellucid/internal/corpora"
)

// plainProse is clean ASCII of n octets.
func plainProse(n int) string {
	const words = "Tide gauges and satellite altimetry agree within their stated uncertainty, as the report says. "
	b := make([]byte, n)
	for i := range b {
		b[i] = words[i%len(words)]
	}
	return string(b)
}

// full is the attestation that the figures are for: three fields and five quotes,
// each as long as it may be.
func full(texts [8]string) *Statement {
	s := sample()
	s.Claim.Text, s.Rationale, s.Qualifications = texts[0], texts[1], texts[2]
	s.Evidence, s.CitedWorks = nil, nil
	for _, q := range texts[3:] {
		s.Evidence = append(s.Evidence, Evidence{Quote: q})
	}
	return s
}

func fullClean() *Statement {
	var texts [8]string
	for i := range texts {
		texts[i] = plainProse(MaxQuote)
		if i < 3 {
			texts[i] = plainProse(MaxText)
		}
	}
	return full(texts)
}

// BenchmarkSanitation is the time to sanitise one attestation of three fields and
// five quotes. "clean" is ASCII at the caps; "corpora" takes eight rows at a time
// of every collection of attack and benign text.
func BenchmarkSanitation(b *testing.B) {
	b.Run("clean", func(b *testing.B) {
		a, pr := attestation(b, fullClean()), projector(b, Policy{})
		var p Projection
		b.ReportAllocs()
		for b.Loop() {
			if err := pr.Project(a, &p); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("corpora", func(b *testing.B) {
		all, pr := corpusAttestations(b), projector(b, Policy{})
		var p Projection
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			if err := pr.Project(all[n%len(all)], &p); err != nil {
				b.Fatal(err)
			}
			n++
		}
	})
}

// corpusAttestations has at least one round in b.N, so that the mean is that of
// all of them.
func corpusAttestations(b *testing.B) []*Attestation {
	dir, err := corpora.Dir("..")
	if errors.Is(err, corpora.ErrAbsent) {
		b.Skip(err)
	}
	files, err := corpora.Files(dir)
	if err != nil {
		b.Fatal(err)
	}
	var out []*Attestation
	var texts [8]string
	n := 0
	for _, f := range files {
		if err := corpora.Read(f, func(r corpora.Row) error {
			if len(r.Text) == 0 || len(r.Text) > 50_000 {
				return nil
			}
			if texts[n%8] = r.Text; n%8 == 7 {
				out = append(out, attestation(b, full(texts)))
			}
			n++
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	return out
}

// BenchmarkIngest is what one attestation costs before it is stored.
func BenchmarkIngest(b *testing.B) {
	for _, bench := range []struct {
		name string
		s    *Statement
	}{{"short", sample()}, {"full", fullClean()}} {
		src := signed(b, bench.s.AppendJSON(nil))
		pr := projector(b, Policy{})
		a := mustParse(b, src)
		var p Projection
		for _, step := range []struct {
			name string
			do   func() error
		}{
			{"parse", func() error { _, err := Parse(src, Options{}); return err }},
			{"verify", func() error { return a.Verify(context.Background(), now, DIDKey{}) }},
			{"identity", func() error { _ = a.Identity(); return nil }},
			{"project", func() error { return pr.Project(a, &p) }},
		} {
			b.Run(bench.name+"/"+step.name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(src)))
				for b.Loop() {
					if err := step.do(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
