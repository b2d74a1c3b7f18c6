// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"bytes"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
)

// A table is what may be seen of a server. It is immutable.
type table struct {
	version         int64 // of the pin; 0: absent
	approved        map[surface.Key]surface.Digest
	own             map[surface.Key][]byte         // canonical, of Server, List and App
	held            map[surface.Key]bool           // nothing of the item may be seen
	hidden          map[surface.Key]bool           // of held: for its hidden text, whatever becomes of other items
	out             []string                       // templates of held
	tolerantDigests map[surface.Key]surface.Digest // of approved, without the tolerated parts; empty where no part is tolerated
	blocked         map[surface.Key]bool           // a reviewer has refused the item
}

func newTable() *table {
	return &table{approved: map[surface.Key]surface.Digest{}, own: map[surface.Key][]byte{}, held: map[surface.Key]bool{}, hidden: map[surface.Key]bool{}, blocked: map[surface.Key]bool{}}
}

func (t *table) add(it surface.Item) {
	t.approved[it.Key] = it.Digest
	if it.Kind == surface.Server || it.Kind == surface.List || it.Kind == surface.App {
		t.own[it.Key] = it.JSON
	}
}

// hold keeps an item from being seen; hidden says that it is for its hidden text.
func (t *table) hold(k surface.Key, hidden bool) {
	t.held[k] = true
	if hidden {
		t.hidden[k] = true
	}
	if k.Kind == surface.Template {
		t.out = append(t.out, k.Name)
	}
}

// ofCheck lets all be seen of a surface without a pin that was not withheld.
func ofCheck(o *surface.CheckResult) *table {
	t := newTable()
	for _, it := range o.Seen.Items() {
		t.add(it)
	}
	for _, k := range o.Withheld {
		if k.Kind != surface.Server {
			t.hold(k, true)
		}
	}
	return t
}

// ofPin lets everything be seen that is approved, whatever the server shows.
func ofPin(p *surface.Pin, version int64, r surface.Rules) *table {
	t := newTable()
	t.version, t.tolerantDigests = version, map[surface.Key]surface.Digest{}
	for i := range p.Items {
		it := &p.Items[i]
		if it.State() == surface.Blocked {
			t.blocked[it.Key] = true
		}
		switch approved, ok := it.Visible(r); {
		case ok:
			t.add(approved)
			if len(r.Tolerates) > 0 {
				t.tolerantDigests[it.Key] = approved.DigestAs(r.Tolerates)
			}
		default:
			t.hold(it.Key, it.Approved != "" || it.HidesText(r))
		}
	}
	return t
}

// holds reports whether an item is kept from being seen: for its hidden text, or where what
// is not approved is.
func (t *table) holds(k surface.Key, enforced bool) bool { return enforced && t.held[k] || t.hidden[k] }

// same reports whether t and u let the same be seen.
func (t *table) same(u *table) bool {
	if len(t.approved) != len(u.approved) || len(t.held) != len(u.held) {
		return false
	}
	for k, d := range t.approved {
		if e, there := u.approved[k]; !there || d != e {
			return false
		}
	}
	for k := range t.held {
		if !u.held[k] {
			return false
		}
	}
	return true
}

func (t *table) tools() (names []string) {
	for k := range t.approved {
		if k.Kind == surface.Tool {
			names = append(names, k.Name)
		}
	}
	return names
}

// contains reports whether the item may be seen in this version.
func (t *table) contains(it surface.Item) bool {
	d, there := t.approved[it.Key]
	return there && bytes.Equal(d[:], it.Digest[:])
}
