// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"
)

func keyFromSeed(seed []byte) ed25519.PrivateKey { return ed25519.NewKeyFromSeed(seed) }

func hexOf(d Digest) string { return hex.EncodeToString(d[:]) }

// hashes is the storage of tlog, which the tree is compared with.
type hashes []Hash

func (h hashes) ReadHashes(indexes []int64) ([]Hash, error) {
	var out []Hash
	for _, i := range indexes {
		out = append(out, h[i])
	}
	return out, nil
}

func leaf(i int64) Hash { return LeafHash(fmt.Append(nil, "leaf ", i)) }

// TestTreeIsTlogs appends in batches of any size, opens the tree again between
// them, and compares root and tiles with those of x/mod/sumdb/tlog.
func TestTreeIsTlogs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var store hashes
		tiles := map[place][]byte{}
		tree := new(Tree)
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 700), 1, 6).Draw(t, "batches") {
			var leaves []Hash
			old := tree.Size()
			for i := range int64(n) {
				h := leaf(old + i)
				more, err := tlog.StoredHashesForRecordHash(old+i, h, store)
				if err != nil {
					t.Fatal(err)
				}
				store = append(store, more...)
				leaves = append(leaves, h)
			}
			seen := map[place]bool{}
			for _, tile := range tree.Append(leaves) {
				p := place{tile.Level, tile.N, 0}
				if seen[p] || !bytes.HasPrefix(tile.Data, tiles[p]) {
					t.Fatalf("tile %v comes twice, or is not a longer version of what it was", p)
				}
				seen[p], tiles[p] = true, tile.Data
			}
			if got := len(tlog.NewTiles(tileHeight, old, tree.Size())); got < len(seen) {
				t.Fatalf("%d tiles for %d to %d, tlog has %d", len(seen), old, tree.Size(), got)
			}
			want, err := tlog.TreeHash(tree.Size(), store)
			if err != nil {
				t.Fatal(err)
			}
			if tree.Root() != want {
				t.Fatalf("root at %d is %v, want %v", tree.Size(), tree.Root(), want)
			}
			tree, err = OpenTree(tree.Size(), func(level int, n int64, w int) ([]byte, error) { return tiles[place{level, n, 0}], nil })
			if err != nil || tree.Root() != want {
				t.Fatalf("opened at %d: %v", old, err)
			}
		}
		for p := range places(tree.Size()) {
			if p.level == entries {
				continue
			}
			want, err := tlog.ReadTileData(tlog.Tile{H: tileHeight, L: p.level, N: p.n, W: p.w}, store)
			if err != nil || !bytes.Equal(tiles[place{p.level, p.n, 0}], want) {
				t.Fatalf("tile %v differs from tlog's (%v)", p, err)
			}
		}
	})
}

func TestOpenTreeRefuses(t *testing.T) {
	some := func(int, int64, int) ([]byte, error) { return make([]byte, 32), nil }
	none := func(int, int64, int) ([]byte, error) { return nil, ErrNotFound }
	for _, size := range []int64{-1, maxSize + 1, 2, 300} {
		if _, err := OpenTree(size, some); err == nil {
			t.Errorf("size %d was opened", size)
		}
	}
	if _, err := OpenTree(1, none); !errors.Is(err, ErrNotFound) {
		t.Errorf("error %v", err)
	}
}

// TestPlaces checks the example that tlog-tiles gives: a tree of 70,000.
func TestPlaces(t *testing.T) {
	full, partial := map[int]int{}, []string{}
	for p := range places(70_000) {
		if p.w == tileWidth {
			full[p.level]++
		} else {
			partial = append(partial, p.path())
		}
	}
	if diff := cmp.Diff(map[int]int{entries: 273, 0: 273, 1: 1}, full); diff != "" {
		t.Errorf("full tiles (-want +got):\n%s", diff)
	}
	want := []string{"tile/entries/273.p/112", "tile/0/273.p/112", "tile/1/001.p/17", "tile/2/000.p/1"}
	if diff := cmp.Diff(want, partial); diff != "" {
		t.Errorf("partial tiles (-want +got):\n%s", diff)
	}
}

func TestTilePath(t *testing.T) {
	for _, tt := range []struct {
		p    place
		want string
	}{
		{place{0, 0, 256}, "tile/0/000"},
		{place{5, 1234067, 256}, "tile/5/x001/x234/067"},
		{place{63, 999, 1}, "tile/63/999.p/1"},
		{place{entries, 1000, 255}, "tile/entries/x001/000.p/255"},
	} {
		if got := tt.p.path(); got != tt.want {
			t.Errorf("path of %v is %s, want %s", tt.p, got, tt.want)
		}
		if level, n, w, ok := parseTilePath(tt.want); !ok || (place{level, n, w}) != tt.p {
			t.Errorf("%s read as %d, %d, %d, %v", tt.want, level, n, w, ok)
		}
	}
	for _, bad := range []string{"", "tile/", "tile/0", "tile/0/", "tile/0/0", "tile/0/0000", "tile/00/000", "tile/64/000", "tile/-1/000", "tile/+1/000",
		"tile/0/000.p/0", "tile/0/000.p/256", "tile/0/000.p/01", "tile/0/000.p/", "tile/0/x000/000", "tile/0/001/000", "tile/0/x001", "tile/0/xx01/000",
		"tile/0/000/", "tile/data/000", "tile/8/0/000", "/tile/0/000", "openings/000", "tile/0/x999/x999/x999/x999/x999/x999/999", "tile/0/0.1", "tile/entries/000.p/1.p/1"} {
		if level, n, w, ok := parseTilePath(bad); ok {
			t.Errorf("%q read as %d, %d, %d", bad, level, n, w)
		}
	}
}

func TestBundle(t *testing.T) {
	list := [][]byte{{}, []byte("a"), bytes.Repeat([]byte("b"), 65535)}
	var b []byte
	for _, e := range list {
		b = appendEntry(b, e)
	}
	got, err := splitBundle(b, 3)
	if err != nil || len(got) != 3 || !bytes.Equal(got[2], list[2]) {
		t.Errorf("split: %v", err)
	}
	for _, w := range []int{0, 2, 4} {
		if _, err := splitBundle(b, w); err == nil {
			t.Errorf("split in %d", w)
		}
	}
	for _, b := range []string{"", "a", "a\nb", "a\n\nb\n"} {
		if _, err := splitOpenings([]byte(b), 2); err == nil {
			t.Errorf("openings %q in two", b)
		}
	}
}
