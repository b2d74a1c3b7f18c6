// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"slices"
	"strconv"
)

// take adds a batch to what is known of those before it.
func (v *verifier) take(b *batch) {
	first := b.n * tileWidth
	if b.fault != "" {
		v.r.problem(Problem{"bundle " + strconv.FormatInt(b.n, 10), tilePath(entries, b.n, b.w), first, b.fault})
		v.gaps++
		v.trees[byRecords].whole = false
	}
	if b.tileBad != "" {
		v.r.problem(Problem{fmt.Sprintf("tile 0/%d", b.n), tilePath(0, b.n, b.w), -1, b.tileBad})
		v.trees[byTiles].whole = false
	}
	if b.noOpen != "" {
		v.r.problem(Problem{"openings " + strconv.FormatInt(b.n, 10), tilePath(openings, b.n, b.w), -1, b.noOpen})
	}
	var leaves [2][]Hash
	for i := range b.w {
		if b.tile != nil {
			leaves[byTiles] = append(leaves[byTiles], Hash(b.tile[i*hashSize:]))
		}
		if b.records == nil {
			continue
		}
		r := &b.records[i]
		leaves[byRecords] = append(leaves[byRecords], r.leaf)
		v.judge(first+int64(i), r)
		if b.tile != nil && r.leaf != leaves[byTiles][i] {
			v.odd = append(v.odd, disagreement{first + int64(i), r.fault != ""})
		}
		if b.openings != nil && r.st != nil {
			v.open(first+int64(i), r, b.openings[i])
		}
	}
	for i := range v.trees {
		v.trees[i].grow(leaves[i], v.sizes)
	}
}

// grow appends leaves, and notes the root at each of the sizes.
func (t *builtTree) grow(leaves []Hash, sizes []int64) {
	if !t.whole {
		return
	}
	for len(leaves) > 0 {
		n := len(leaves)
		for _, s := range sizes {
			if t.size < s && s < t.size+int64(n) {
				n = int(s - t.size)
			}
		}
		for _, tile := range t.Append(leaves[:n]) {
			if tile.Level > 0 {
				t.upper[place{tile.Level, tile.N, 0}] = tile.Data
			}
		}
		leaves = leaves[n:]
		if slices.Contains(sizes, t.size) {
			t.older[t.size] = t.Root()
		}
	}
}

// judge says whether a record holds where it stands.
func (v *verifier) judge(index int64, r *record) {
	if r.fault == "" {
		r.fault = v.signature(index, r)
	}
	if r.fault == "" {
		if _, twice := v.ids[r.st.ID]; twice {
			r.fault = FaultTwice
		} else if len(v.ids) < maxIDs {
			v.ids[r.st.ID] = struct{}{}
		}
	}
	if r.fault == "" && v.o.Each != nil {
		r.fault = v.o.Each(index, r.raw, r.st)
	}
	if r.fault != "" {
		v.r.record(index, r.fault)
		return
	}
	v.r.Records++
	v.r.Kinds[r.st.Kind]++
}

// signature checks that the key in force has signed, and follows its rotation.
func (v *verifier) signature(index int64, r *record) Fault {
	var names *Key
	if r.st.Kind == KeyInstalled {
		names, _ = ParseKey(r.st.Key) // the statement's parser has accepted it
		if names.Name() != v.claimed.Origin {
			return FaultOrigin
		}
	}
	current := v.key.Load()
	if index == 0 {
		if names == nil {
			return FaultFirst
		}
		current = names
	}
	if current == nil { // what named it is missing
		if current = keyOf(v.o.Keys, r.env.KeyID); current == nil {
			return FaultSigner
		}
		v.install(current)
	}
	if r.env.KeyID != current.ID() {
		return FaultSigner
	}
	signed := r.signed
	if r.key == nil || !r.key.Equal(current) {
		signed = r.env.Verify(current)
	}
	if !signed {
		return FaultSignature
	}
	if names != nil {
		v.install(names)
	}
	return ""
}

func (v *verifier) install(k *Key) {
	v.key.Store(k)
	v.r.Keys = append(v.r.Keys, k)
}

func (v *verifier) open(index int64, r *record, opening []byte) {
	if len(opening) == 0 {
		v.r.Erased++
		return
	}
	o, err := ParseOpening(opening)
	if err != nil || o.Check(r.st) != nil {
		v.r.problem(Problem{"opening " + strconv.FormatInt(index, 10), "", index, FaultOpening})
		return
	}
	v.r.Openings++
}
