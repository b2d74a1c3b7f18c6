// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"crypto/ed25519"
	"flag"
	"testing"
)

var records = flag.Int("records", 20_000, "records of BenchmarkVerify")

// processorTime is what this process has used, in microseconds; nil where that is
// not to be had.
var processorTime func(*testing.B) float64

// processor reports the time of processors that a record took since from.
func processor(b *testing.B, from float64, each int) {
	if processorTime != nil {
		b.ReportMetric((processorTime(b)-from)/float64(b.N)/float64(each), "cpu-us/record")
	}
}

func processorNow(b *testing.B) float64 {
	if processorTime == nil {
		return 0
	}
	return processorTime(b)
}

// BenchmarkSeal is what the choke point pays for a record: the statement with its
// salted digests and the opening.
func BenchmarkSeal(b *testing.B) {
	e := message(1)
	b.ReportAllocs()
	for i := range b.N {
		if _, err := e.Seal(Salt{byte(i)}); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b, 1)
}

// BenchmarkReadSealed is what the sequencer pays to look at a record that waits.
func BenchmarkReadSealed(b *testing.B) {
	e := message(1)
	sealed, err := e.Seal(Salt{1})
	if err != nil {
		b.Fatal(err)
	}
	raw := sealed.Bytes()
	b.ReportAllocs()
	for range b.N {
		if _, err := ReadSealed(raw); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b, 1)
}

// BenchmarkIntegrate is what the sequencer pays for a record, in batches of 1,000:
// signing, hashing, tiles and one checkpoint; no store.
func BenchmarkIntegrate(b *testing.B) {
	const batch = 1000
	e := message(1)
	sealed, err := e.Seal(Salt{})
	if err != nil {
		b.Fatal(err)
	}
	s := testSigner(b, "first")
	var tree Tree
	b.ReportAllocs()
	from := processorNow(b)
	for range b.N {
		leaves := make([]Hash, batch)
		for i := range leaves {
			env, err := Sign(sealed.Statement, s)
			if err != nil {
				b.Fatal(err)
			}
			leaves[i] = LeafHash(env)
		}
		tree.Append(leaves)
		if _, err := SignCheckpoint(tree.Size(), tree.Root(), s); err != nil {
			b.Fatal(err)
		}
	}
	processor(b, from, batch)
	perSecond(b, batch)
}

// BenchmarkEd25519 is the floor under signing and verifying.
func BenchmarkEd25519(b *testing.B) {
	s := testSigner(b, "first")
	msg := make([]byte, 1000)
	sig, err := s.Sign(msg)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("sign", func(b *testing.B) {
		for range b.N {
			s.Sign(msg)
		}
		perSecond(b, 1)
	})
	b.Run("verify", func(b *testing.B) {
		for range b.N {
			ed25519.Verify(s.key.public, msg, sig)
		}
		perSecond(b, 1)
	})
}

// BenchmarkVerify verifies a whole log of -records records, openings and all.
func BenchmarkVerify(b *testing.B) {
	l := newLog(b)
	for i := 1; i < *records; i++ {
		l.add(b, message(i))
	}
	l.integrate(b)
	o := VerifyOptions{Keys: []*Key{l.signer.Key()}}
	b.ResetTimer()
	from := processorNow(b)
	for range b.N {
		r, err := Verify(b.Context(), l, o)
		if err != nil || !r.OK() || r.Records != int64(*records) {
			b.Fatalf("%v, %+v", err, r)
		}
	}
	processor(b, from, *records)
	perSecond(b, *records)
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/float64(*records)*1e6, "s/million")
}

// BenchmarkProve makes and checks the proof of one record among many.
func BenchmarkProve(b *testing.B) {
	l := testLog(b, 3000)
	keys := []*Key{l.signer.Key()}
	for range b.N {
		p, err := Prove(b.Context(), l, 1234)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Verify(keys, nil, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func perSecond(b *testing.B, each int) {
	b.ReportMetric(float64(b.N)*float64(each)/b.Elapsed().Seconds(), "records/s")
}
