// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"encoding/binary"
	"errors"
	"slices"
)

// An EdgeKind says how one segment came of another.
type EdgeKind string

// The kinds of edges.
const (
	EdgeDerived  EdgeKind = "derived"  // a summary, a translation, an extract
	EdgeCopied   EdgeKind = "copied"   // the same text at another place
	EdgeComposed EdgeKind = "composed" // one of several that it was made of
)

// An Edge of the provenance graph: To came of From. What is withheld takes what
// came of it along, whatever the kind: an agent's own summary of a poisoned page
// is a carrier.
type Edge struct {
	Kind     EdgeKind
	From, To int // places of segments
}

// closeEdges checks the edges and computes what each segment derives from.
func (a *Assembly) closeEdges() error {
	n := len(a.Segments)
	up := make([][]int, n)
	for _, e := range a.Edges {
		if e.From < 0 || e.To < 0 || e.From >= n || e.To >= n {
			return errors.New("counterfactual: provenance graph: an edge to no segment")
		}
		switch e.Kind {
		case EdgeDerived, EdgeCopied, EdgeComposed:
		default:
			return errors.New("counterfactual: provenance graph: an edge of no kind")
		}
		up[e.To] = append(up[e.To], e.From)
	}
	a.parent = nil
	if len(a.Edges) == 0 {
		return nil
	}
	all, ok := ancestors(up)
	if !ok {
		return errors.New("counterfactual: provenance graph: a segment derives from itself")
	}
	a.parent = all
	return nil
}

// ancestors is the transitive closure of up; false if it has a cycle.
func ancestors(up [][]int) ([]Set, bool) {
	all := make([]Set, len(up))
	left := make([]int, len(up)) // parents not done
	down := make([][]int, len(up))
	var ready []int
	for i, ps := range up {
		ps = slices.Compact(slices.Sorted(slices.Values(ps)))
		left[i] = len(ps)
		for _, p := range ps {
			down[p] = append(down[p], i)
		}
		if len(ps) == 0 {
			ready = append(ready, i)
		}
	}
	done := 0
	for len(ready) > 0 {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		done++
		for _, c := range down[i] {
			all[c] = all[c].Union(all[i]).Union(SetOf(i))
			if left[c]--; left[c] == 0 {
				ready = append(ready, c)
			}
		}
	}
	return all, done == len(up)
}

// parents are, for each segment, those that it came of directly, ascending.
func (a *Assembly) parents() [][]int {
	up := make([][]int, len(a.Segments))
	for _, e := range a.Edges {
		up[e.To] = append(up[e.To], e.From)
	}
	for i, list := range up {
		slices.Sort(list)
		up[i] = slices.Compact(list)
	}
	return up
}

// Descendants are the segments that came of group, without group.
func (a *Assembly) Descendants(group Set) Set {
	var b setBuilder
	for i, up := range a.parent {
		if up.Meets(group) && !group.Has(i) {
			b.add(i)
		}
	}
	return b.set()
}

// shown is what of kept is shown: a segment only if all that it came of is.
func shown(kept Set, parent []Set) Set {
	if len(parent) == 0 {
		return kept
	}
	b := setBuilder(kept)
	for i := range kept.Places() {
		if i < len(parent) && !kept.Contains(parent[i]) {
			b[i/8] &^= 1 << (i % 8)
		}
	}
	return b.set()
}

// maxTwins bounds how many copies of one segment are told.
const maxTwins = 16

// Twins are, for each segment, the others that hold a run of the same text: the
// same digest, or at least two shared fingerprints by winnowing; 71 letters and
// digits in a row give two at least. It hides nothing: it says where else to look
// once one was found.
func (a *Assembly) Twins() [][]int {
	out := make([][]int, len(a.Segments))
	first := make(map[uint64]int32, 16*len(a.Segments)) // who holds a print, and most have one holder
	holders := map[uint64][]int32{}                     // of the others, all
	var prints []uint64
	for i := range a.Segments {
		prints = fingerprints(prints[:0], a.Segments[i].Text)
		if d := &a.Segments[i].Digest; a.Segments[i].Text != "" {
			prints = append(prints, binary.BigEndian.Uint64(d[:8]), binary.BigEndian.Uint64(d[8:16]))
		}
		for _, p := range prints {
			f, known := first[p]
			switch {
			case !known:
				first[p] = int32(i)
				continue
			case f == int32(i):
				continue
			}
			h := holders[p]
			if h == nil {
				h = append(h, f)
			}
			// What very many segments share is their form, not a message.
			if len(h) <= maxTwins && h[len(h)-1] != int32(i) {
				holders[p] = append(h, int32(i))
			}
		}
	}
	shared := map[[2]int32]int{}
	for _, h := range holders {
		if len(h) > maxTwins {
			continue
		}
		for x, i := range h {
			for _, j := range h[x+1:] {
				shared[[2]int32{i, j}]++
			}
		}
	}
	for pair, n := range shared {
		i, j := int(pair[0]), int(pair[1])
		if n >= 2 {
			out[i] = append(out[i], j)
			out[j] = append(out[j], i)
		}
	}
	for i := range out {
		slices.Sort(out[i])
		out[i] = out[i][:min(len(out[i]), maxTwins)]
	}
	return out
}

// Winnowing: of each run of printWindow hashes of printLength letters and
// digits, the smallest is kept.
const (
	printLength = 24
	printWindow = 24
	printBase   = 0x9E3779B97F4A7C15 // of the rolling hash
)

// printOut is printBase to the power of printLength.
var printOut = func() uint64 {
	out := uint64(1)
	for range printLength {
		out *= printBase
	}
	return out
}()

// fingerprints appends the winnowed hashes of text, ASCII letters folded and
// everything but letters, digits and what is not ASCII left out.
func fingerprints(dst []uint64, text string) []uint64 {
	const ringSize = 32 // a power of two, at least printLength and printWindow
	var (
		ring   [ringSize]byte
		hashes [ringSize]uint64
		h      uint64
		n      int  // letters seen
		least  = -1 // place of the smallest hash of the window
		lowest uint64
		last   = -1 // that was kept
	)
	for i := range len(text) {
		c := letter(text[i])
		if c == 0 {
			continue
		}
		h = h*printBase + uint64(c)
		if n >= printLength {
			h -= printOut * uint64(ring[(n-printLength)%ringSize])
		}
		ring[n%ringSize] = c
		n++
		if n < printLength {
			continue
		}
		at := n - printLength
		m := mix(h)
		hashes[at%ringSize] = m
		if at+1 < printWindow {
			continue
		}
		if first := at - printWindow + 1; least < first {
			least, lowest = first, hashes[first%ringSize]
			for k := first + 1; k < at; k++ {
				if v := hashes[k%ringSize]; v <= lowest {
					least, lowest = k, v
				}
			}
		}
		if m <= lowest {
			least, lowest = at, m
		}
		if least != last {
			dst = append(dst, lowest)
			last = least
		}
	}
	return dst
}

// mix spreads the bits of a hash (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xBF58476D1CE4E5B9
	x ^= x >> 27
	x *= 0x94D049BB133111EB
	return x ^ x>>31
}

// draw is the generator SplitMix64: all the randomness of this package, from the
// seed of a variant or a problem.
type draw uint64

func (d *draw) next() uint64 {
	*d += 0x9E3779B97F4A7C15
	return mix(uint64(*d))
}

// shuffle permutes n things.
func (d *draw) shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, int(d.next()%uint64(i+1)))
	}
}
