// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"bytes"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
)

// A table is what may be seen of a server. It is immutable.
type table struct {
	version  int64 // of the pin; 0: absent
	approved map[surface.Key]surface.Digest
	own      map[surface.Key][]byte // canonical, of Server, List and App
	held     map[surface.Key]bool   // nothing of the item may be seen
	out      []string               // templates of held
}

func newTable() *table {
	return &table{approved: map[surface.Key]surface.Digest{}, own: map[surface.Key][]byte{}, held: map[surface.Key]bool{}}
}

func (t *table) add(it surface.Item) {
	t.approved[it.Key] = it.Digest
	if it.Kind == surface.Server || it.Kind == surface.List || it.Kind == surface.App {
		t.own[it.Key] = it.JSON
	}
}

// ofSurface lets all of s be seen.
func ofSurface(s *surface.Surface) *table {
	t := newTable()
	for _, it := range s.Items() {
		t.add(it)
	}
	return t
}

// ofPin lets everything be seen that is approved, whatever the server shows.
func ofPin(p *surface.Pin, version int64) *table {
	t := newTable()
	t.version = version
	for i := range p.Items {
		it := &p.Items[i]
		if it.Approved != "" {
			t.add(surface.Item{Key: it.Key, JSON: []byte(it.Approved), Digest: it.ApprovedDigest()})
		} else {
			t.held[it.Key] = true
			if it.Kind == surface.Template {
				t.out = append(t.out, it.Name)
			}
		}
	}
	return t
}

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
