// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"fmt"
	"testing"
)

// chained are records that one writer stores.
func chained(k *ChainKey, n int) []Pending {
	last := Link{Writer: k.NewWriter()}
	var out []Pending
	for i := range n {
		record := fmt.Appendf(nil, "statement %d\nopening", i)
		last = k.Next(last, record)
		out = append(out, Pending{int64(i + 1), record, last})
	}
	return out
}

// TestChain: a link holds for its record, number, writer and predecessor alone.
func TestChain(t *testing.T) {
	k := NewChainKey([]byte("secret"))
	list := chained(k, 4)
	for i := range list {
		if !k.Intact(&list[i]) || list[i].Link.Seq != int64(i+1) {
			t.Errorf("link %d: %+v", i, list[i].Link)
		}
	}
	for name, change := range map[string]func(p *Pending){
		"statement": func(p *Pending) { p.Record = []byte("statement 9\nopening") },
		"number":    func(p *Pending) { p.Link.Seq++ },
		"writer":    func(p *Pending) { p.Link.Writer = k.NewWriter() },
		"previous":  func(p *Pending) { p.Link.Prev = list[0].Link.MAC[:31] },
		"mac":       func(p *Pending) { p.Link.MAC = list[0].Link.MAC },
	} {
		p := list[2]
		if change(&p); k.Intact(&p) {
			t.Errorf("another %s is not noticed", name)
		}
	}
	other := NewChainKey([]byte("another"))
	if p := list[1]; other.Owns(p.Link.Writer) || !other.Intact(&p) || other.Holds(p.Link, []byte("statement 1")) {
		t.Error("a writer with another key is taken for one's own")
	}
	if string(k.Tag(list[1].Link)) == string(k.Tag(list[2].Link)) {
		t.Error("two links have one tag")
	}
}

// TestInOrder puts what was interleaved and swapped back into each writer's order.
func TestInOrder(t *testing.T) {
	k := NewChainKey(nil)
	a, b := chained(k, 4), chained(k, 2)
	mixed := []Pending{a[2], b[1], a[0], a[3], b[0], {Record: []byte("without a chain")}, a[1]}
	inOrder(mixed)
	var got []string
	for _, p := range mixed {
		got = append(got, string(statementOf(p.Record)))
	}
	if want := "[statement 0 statement 0 statement 1 statement 2 statement 1 without a chain statement 3]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}
