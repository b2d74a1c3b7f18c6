// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"context"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/grounding/corpus"
	"github.com/pellucid-mcp/pellucid/platform/datatest"
)

// plainProse is clean ASCII of n bytes.
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
// five quotes. "clean" is ASCII at the caps; "vectors" takes eight vectors of the
// conformance corpus at a time, "corpora" eight rows of every collection of attack
// and benign text.
func BenchmarkSanitation(b *testing.B) {
	for _, bench := range []struct {
		name string
		all  func(*testing.B) []*Attestation
	}{
		{"clean", func(b *testing.B) []*Attestation { return []*Attestation{attestation(b, fullClean())} }},
		{"vectors", vectorAttestations},
		{"corpora", corporaAttestations},
	} {
		b.Run(bench.name, func(b *testing.B) {
			all, pr := bench.all(b), projector(b, Policy{})
			var p Projection
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if err := pr.Project(all[n%len(all)], &p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A packer makes attestations of eight texts each.
type packer struct {
	texts [8]string
	n     int
	all   []*Attestation
}

func (p *packer) add(b *testing.B, text string) {
	if len(text) == 0 || len(text) > 50_000 {
		return
	}
	if p.texts[p.n%8] = text; p.n%8 == 7 {
		p.all = append(p.all, attestation(b, full(p.texts)))
	}
	p.n++
}

func vectorAttestations(b *testing.B) []*Attestation {
	vectors, err := corpus.All()
	if err != nil {
		b.Fatal(err)
	}
	var p packer
	for _, v := range vectors {
		if utf8.ValidString(v.Payload) {
			p.add(b, v.Payload)
		}
	}
	return p.all
}

func corporaAttestations(b *testing.B) []*Attestation {
	dir, err := datatest.CorporaDir("../..")
	if errors.Is(err, datatest.ErrAbsent) {
		b.Skip(err)
	}
	files, err := datatest.Files(dir)
	if err != nil {
		b.Fatal(err)
	}
	var p packer
	for _, f := range files {
		if err := datatest.Read(f, func(r datatest.Row) error {
			p.add(b, r.Text)
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	return p.all
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
