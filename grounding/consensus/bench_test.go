// SPDX-License-Identifier: Apache-2.0

package consensus

import (
	"fmt"
	"testing"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
)

// BenchmarkCompose composes votes of which a quarter are withheld and a quarter
// are superseded.
func BenchmarkCompose(b *testing.B) {
	p := mustCompile(b, string(example(b)))
	for _, n := range []int{5, 1000} {
		votes := make([]Vote, n)
		for i := range votes {
			votes[i] = vote(fmt.Sprintf("validator-%d", i*7919%(n-n/4)), []attest.Verdict{attest.Verified, attest.Verified, attest.False}[i%3],
				in("scientific-default-cochrane-grade"), on("health:vaccines"), called(fmt.Sprintf("sha256:%064x", i*7919)),
				reputed(One-Score(i)), func(v *Vote) { v.Issued = v.Issued.AddDate(0, 0, -i%30) })
			if i%4 == 3 {
				votes[i].Status = CascadePending
			}
		}
		b.Run(fmt.Sprintf("votes=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if v, _ := Compose(p, "health:vaccines", now, votes); n > 5 && v.Primary != attest.Verified {
					b.Fatal(v)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	src := example(b)
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(src, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	for _, name := range []string{"scientific-default", "scientific-other", "\u0455cientific-default"} {
		b.Run(fmt.Sprintf("%+q", name), func(b *testing.B) {
			for b.Loop() {
				builtin().Resolve(name)
			}
		})
	}
}
