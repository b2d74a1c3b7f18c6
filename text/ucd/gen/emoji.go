// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// node is a state of the automaton that accepts the emoji sequences.
type node struct {
	next   map[rune]*node
	accept bool
	key    string // equal for states that accept the same rests
	number int
}

func (n *node) add(seq []rune) {
	if len(seq) == 0 {
		n.accept = true
		return
	}
	if n.next == nil {
		n.next = map[rune]*node{}
	}
	if n.next[seq[0]] == nil {
		n.next[seq[0]] = &node{}
	}
	n.next[seq[0]].add(seq[1:])
}

// share replaces equal subtrees by one, from the leaves up, and numbers those
// that are left in the order in which they are found.
func (n *node) share(seen map[string]*node, all *[]*node) *node {
	var key strings.Builder
	fmt.Fprint(&key, n.accept)
	for _, r := range slices.Sorted(maps.Keys(n.next)) {
		n.next[r] = n.next[r].share(seen, all)
		fmt.Fprintf(&key, " %x:%d", r, n.next[r].number)
	}
	n.key = key.String()
	if old := seen[n.key]; old != nil {
		return old
	}
	n.number = len(*all)
	seen[n.key] = n
	*all = append(*all, n)
	return n
}

// sequences are those of emoji-test.txt (the component and the unqualified ones too:
// U+1F441 U+200D U+1F5E8 is what many programs write) and of emoji with U+FE0F.
func (d *data) sequences() []string { return slices.Concat(d.newest.emoji, d.variations) }

// writeEmoji prints the minimal automaton: the edges of each state, sorted by
// rune, one after the other. An edge is the rune and the number of its state.
func (d *data) writeEmoji(p *printer) {
	root := &node{}
	for _, seq := range d.sequences() {
		root.add([]rune(seq))
	}
	var states []*node
	root.share(map[string]*node{}, &states)

	var edges []uint32
	var first []uint16 // << 1 | accept
	for _, n := range states {
		at := uint16(len(edges)) << 1
		if n.accept {
			at |= 1
		}
		first = append(first, at)
		for _, r := range slices.Sorted(maps.Keys(n.next)) {
			edges = append(edges, uint32(r)|uint32(n.next[r].number)<<21)
		}
	}
	if len(states) >= 1<<11 || len(edges) >= 1<<15 {
		panic("the emoji automaton outgrows its packing")
	}
	first = append(first, uint16(len(edges))<<1)
	p.f("const emojiStart = %d // number of the start state\n\n", root.number)
	numbers(p, "emojiStates", "first edge << 1 | accepts", first)
	numbers(p, "emojiEdges", "rune | state << 21, sorted within a state", edges)

	// Selectors of Han and of Mongolian characters are told by their script.
	var variants []uint32
	for _, v := range d.variants {
		if s := d.scripts[d.newest.script[v[0]]]; s != "Han" && s != "Mongolian" {
			variants = append(variants, uint32(v[0])<<4|uint32(v[1]-0xFE00))
		}
	}
	slices.Sort(variants)
	numbers(p, "standardVariants", "base << 4 | selector less U+FE00, sorted", variants)
}
