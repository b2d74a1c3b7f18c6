// SPDX-License-Identifier: Apache-2.0

package store

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestClaimSet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		// Half of the sets are dense enough to be bitmaps.
		most := rapid.SampledFrom([]int{0, 1, bitmapSize/2 - 1, bitmapSize / 2, blockClaims}).Draw(t, "most")
		offsets := rapid.SliceOfNDistinct(rapid.Int64Range(0, blockClaims-1), most/2, most, rapid.ID).Draw(t, "offsets")
		var set claimSet
		for _, o := range offsets {
			set.add(o)
		}
		b := set.encode()
		if len(b) > bitmapSize || len(b) > 2*len(offsets) {
			t.Fatalf("%d bytes for %d claims", len(b), len(offsets))
		}
		var got claimSet
		got.merge(b)
		if got != set {
			t.Fatal("what was encoded is not what is read")
		}
		slices.Sort(offsets)
		slices.Reverse(offsets)
		if down := slices.Collect(got.descend); !slices.Equal(down, offsets) {
			t.Fatalf("descend: %v, want %v", down, offsets)
		}
		for o := range int64(blockClaims) {
			if got.has(o) != slices.Contains(offsets, o) {
				t.Fatalf("has(%d)", o)
			}
		}
	})
}
