// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A State says whether a model may see an item.
type State string

// The states. An item is live in the first two and held in the others.
const (
	Pinned   State = "pinned"   // as it was when the server was first approved
	Approved State = "approved" // as a person has approved it since
	Pending  State = "pending"  // differs from that, or is new: a person has to look
	Blocked  State = "blocked"  // a person has looked and said no
)

// Live reports whether a model may see an item in the state.
func (s State) Live() bool { return s == Pinned || s == Approved }

// A Pin is what is known of one server. It is a value: methods change the copy that
// they are called on, and Pins persists it.
type Pin struct {
	Server    string // its identity, or the name that the operator gave its pin
	transport string // its identity when it was pinned
	// Names are those under which it was seen, for people. Nothing goes by them.
	Names []string
	// seen are the sets of a client's capabilities with which it was listed, none within
	// another.
	seen      []string
	Since     time.Time
	Tolerates Tolerated    // as the configuration last said
	Items     []PinnedItem // in order of their keys
	// Rejected says why the server's surface was last refused as a whole, for a person
	// and escaped; "" if it was not. A server that was never anything else has no items.
	Rejected   string
	RejectedAt time.Time
}

// unborn reports whether nothing was ever pinned: the next surface is the first.
func (p *Pin) unborn() bool { return len(p.Items) == 0 && p.Since.IsZero() }

// A PinnedItem is what is known of one item of a server. Its versions are canonical
// JSON, third-party text.
type PinnedItem struct {
	Key
	Was      string // the name under which it was approved, if that was another
	Approved string // the version that may be seen; "" if none
	Pending  string // the version that the server shows instead; "" if none
	Blocked  []Digest
	By       string    // who decided last; "" as long as nobody has
	At       time.Time // when
	byHand   bool      // Approved is not what was first pinned
}

// State follows from what is known.
func (p *PinnedItem) State() State {
	switch {
	case p.Pending != "" && p.pending().isIn(p.Blocked):
		return Blocked
	case p.Pending != "":
		return Pending
	case p.Approved == "":
		return Blocked
	case p.byHand:
		return Approved
	}
	return Pinned
}

// Visible returns the version that may be seen. Where pass 1 finds hidden text in it, ok is
// false until a reviewer has approved it.
func (p *PinnedItem) Visible(r Rules) (it Item, ok bool) {
	if p.Approved == "" {
		return Item{}, false
	}
	it = p.approved()
	return it, p.byHand || it.Inspect(r).Err() == nil
}

// HidesText reports whether pass 1 finds hidden text in the version that waits, or is blocked.
func (p *PinnedItem) HidesText(r Rules) bool {
	return p.Pending != "" && p.pending().Inspect(r).Err() != nil
}

func (p *PinnedItem) pending() Item  { return newItem(p.Key, []byte(p.Pending)) }
func (p *PinnedItem) approved() Item { return newItem(p.Key, []byte(p.Approved)) }

// PendingDigest is the digest of the version that waits, or is blocked.
func (p *PinnedItem) PendingDigest() Digest { return p.pending().Digest }

// ApprovedDigest is the digest of the version that may be seen.
func (p *PinnedItem) ApprovedDigest() Digest { return p.approved().Digest }

// maxBlocked bounds the blocked versions of an item that are remembered. An older
// one that comes back is pending again, which is not live either.
const maxBlocked = 64

// newPin pins everything that s says.
func newPin(server, transport string, s *Surface, now time.Time) Pin {
	p := Pin{Server: server, transport: transport, Since: now.UTC()}
	p.see(s.able)
	for _, it := range s.items {
		p.Items = append(p.Items, PinnedItem{Key: it.Key, Approved: string(it.JSON), At: p.Since})
	}
	return p
}

// MaxNames bounds the names of a pin; more than these are not kept.
const MaxNames = 16

// call adds a name; it reports whether that is new.
func (p *Pin) call(name string) bool {
	if name == "" || name == p.Server || slices.Contains(p.Names, name) || len(p.Names) >= MaxNames {
		return false
	}
	p.Names = append(p.Names, name)
	return true
}

// Name is what people call the server: the first name that it had, or its identity.
func (p *Pin) Name() string {
	if len(p.Names) > 0 {
		return p.Names[0]
	}
	return p.Server
}

// see notes that the server was listed by a client with these capabilities; it reports
// whether that is new.
func (p *Pin) see(set string) bool {
	if covers(p.seen, set) {
		return false
	}
	p.seen = slices.DeleteFunc(p.seen, func(old string) bool { return covers([]string{set}, old) })
	p.seen = append(p.seen, set)
	return true
}

// Item returns the item of that key, nil if not found.
func (p *Pin) Item(k Key) *PinnedItem {
	i, ok := p.index(k)
	if !ok {
		return nil
	}
	return &p.Items[i]
}

func (p *Pin) index(k Key) (int, bool) {
	return slices.BinarySearchFunc(p.Items, k, func(it PinnedItem, k Key) int { return it.Key.compare(k) })
}

// approved returns what may be seen, in order.
func (p *Pin) approved() (items []Item) {
	for i := range p.Items {
		if p.Items[i].Approved != "" {
			items = append(items, p.Items[i].approved())
		}
	}
	return items
}

// observe takes note of what the server says now and reports whether that changed
// the pin. What is neither approved, blocked nor said any more is forgotten, so
// that a server cannot make a pin grow.
func (p *Pin) observe(s *Surface) (changes []Change, dirty bool) {
	changes = diff(p.approved(), s.items, p.Tolerates)
	now := make(map[Key]Change, len(changes))
	for _, c := range changes {
		if c.Difference != Removed {
			now[c.Key] = c
		}
	}
	for i := range p.Items {
		it := &p.Items[i]
		c, shown := now[it.Key]
		delete(now, it.Key)
		pending := ""
		if shown && c.Difference != Unchanged {
			said, _ := find(s.items, it.Key)
			pending = string(said.JSON)
			if it.Pending != "" && said.sameBut(it.pending(), p.Tolerates) {
				pending = it.Pending
			}
		}
		if it.Pending != pending && !(pending == "" && it.Approved == "" && len(it.Blocked) > 0) {
			it.Pending, dirty = pending, true
		}
	}
	before := len(p.Items)
	p.Items = slices.DeleteFunc(p.Items, func(it PinnedItem) bool { return it.Approved == "" && it.Pending == "" })
	dirty = dirty || len(p.Items) != before
	for k, c := range now {
		said, _ := find(s.items, k)
		p.Items = append(p.Items, PinnedItem{Key: k, Was: c.Was, Pending: string(said.JSON)})
		dirty = true
	}
	slices.SortFunc(p.Items, func(a, b PinnedItem) int { return a.Key.compare(b.Key) })
	return changes, dirty
}

// news are the items of s of which nothing is known, if the client that listed them has
// more capabilities than any before.
func (p *Pin) news(s *Surface) (keys []Key) {
	if covers(p.seen, s.able) {
		return nil
	}
	for _, it := range s.items {
		if p.Item(it.Key) == nil {
			keys = append(keys, it.Key)
		}
	}
	return keys
}

// extend pins the items of these keys as s has them.
func (p *Pin) extend(s *Surface, keys []Key, now time.Time) {
	for _, k := range keys {
		said, _ := find(s.items, k)
		it := p.Item(k)
		if it != nil && it.Approved == "" && it.Was == "" && len(it.Blocked) == 0 && it.Pending == string(said.JSON) {
			it.Approved, it.Pending, it.At = it.Pending, "", now.UTC()
		}
	}
}

// The reasons why a decision is not taken, to be compared with errors.Is.
var (
	ErrNotPinned = errors.New("surface: no such pin")
	ErrPinned    = errors.New("surface: the server is pinned already")
	ErrMoved     = errors.New("surface: the item is no longer what was decided on")
)

// approve makes the version of that digest the one that may be seen.
func (p *Pin) approve(k Key, d Digest, by string, now time.Time) error {
	it := p.Item(k)
	if it == nil {
		return ErrNotPinned
	}
	if it.State() == Pinned && it.approved().isIn([]Digest{d}) { // by its first use, until now
		it.byHand, it.By, it.At = true, by, now.UTC()
		return nil
	}
	if it.Pending == "" || !it.pending().isIn([]Digest{d}) {
		return ErrMoved
	}
	it.Approved, it.Pending, it.byHand, it.Was = it.Pending, "", true, ""
	it.Blocked = slices.DeleteFunc(it.Blocked, func(b Digest) bool { return it.approved().isIn([]Digest{b}) })
	it.By, it.At = by, now.UTC()
	return nil
}

// block keeps the version of that digest from being seen, also one that was.
func (p *Pin) block(k Key, d Digest, by string, now time.Time) error {
	it := p.Item(k)
	if it == nil {
		return ErrNotPinned
	}
	switch {
	case it.Pending != "" && it.pending().isIn([]Digest{d}):
	case it.Approved != "" && it.approved().isIn([]Digest{d}):
		if it.Pending == "" {
			it.Pending = it.Approved
		}
		it.Approved, it.byHand = "", false
	default:
		return ErrMoved
	}
	if !slices.Contains(it.Blocked, d) {
		it.Blocked = append(it.Blocked, d)
		it.Blocked = it.Blocked[max(0, len(it.Blocked)-maxBlocked):]
	}
	it.By, it.At = by, now.UTC()
	return nil
}

// Changes compares what waits with what is approved, item by item; what does not
// wait is left out.
func (p *Pin) Changes() []Change { return p.ChangesFrom(0, len(p.Items)) }

// ChangesFrom returns at most n of the Changes, from place first on.
func (p *Pin) ChangesFrom(first, n int) (changes []Change) {
	for i := range p.Items {
		it := &p.Items[i]
		if it.Pending == "" {
			continue
		}
		if first--; first >= 0 {
			continue
		}
		switch {
		case len(changes) == n:
			return changes
		case it.Approved != "":
			changes = append(changes, compare(it.approved(), it.pending()))
		default:
			c := whole(it.pending(), Added)
			if old := p.Item(Key{it.Kind, it.Was}); it.Was != "" && old != nil && old.Approved != "" {
				c = compare(old.approved(), it.pending())
			}
			changes = append(changes, c)
		}
	}
	return changes
}

// PinFormat is the format of a record. spec: surface/7.3
const PinFormat = "pellucid-pin/1"

type pinRecord struct {
	Format     string       `json:"format"`
	Transport  string       `json:"transport"`
	Names      []string     `json:"names,omitempty"`
	Seen       []string     `json:"seen,omitempty"`
	Since      time.Time    `json:"since"`
	Tolerates  Tolerated    `json:"tolerates,omitempty"`
	Items      []itemRecord `json:"items"`
	Rejected   string       `json:"rejected,omitempty"`
	RejectedAt time.Time    `json:"rejected_at,omitzero"`
}

type itemRecord struct {
	Kind     Kind      `json:"kind"`
	Name     string    `json:"name"`
	Was      string    `json:"was,omitempty"`
	Approved string    `json:"approved,omitempty"`
	Pending  string    `json:"pending,omitempty"`
	Blocked  []Digest  `json:"blocked,omitempty"`
	By       string    `json:"by,omitempty"`
	At       time.Time `json:"at"`
	ByHand   bool      `json:"by_hand,omitempty"`
}

func (p *Pin) record() ([]byte, error) {
	r := pinRecord{Format: PinFormat, Transport: p.transport, Names: p.Names, Seen: p.seen, Since: p.Since, Tolerates: p.Tolerates, Items: []itemRecord{}, Rejected: p.Rejected, RejectedAt: p.RejectedAt}
	for _, it := range p.Items {
		r.Items = append(r.Items, itemRecord{it.Kind, it.Name, it.Was, it.Approved, it.Pending, it.Blocked, it.By, it.At, it.byHand})
	}
	return json.Marshal(r)
}

// errBroken says that a record cannot be read: no item may go live on it.
var errBroken = errors.New("surface: broken pin record")

// ParsePin reads a record of a PinStore.
func ParsePin(server string, b []byte) (Pin, error) {
	var r pinRecord
	if err := strictjson.Unmarshal(b, &r, strictjson.Limits{Bytes: 1 << 30 >> 1}); err != nil {
		return Pin{}, fmt.Errorf("%w: %w", errBroken, err)
	}
	p := Pin{Server: server, transport: r.Transport, Names: r.Names, seen: r.Seen, Since: r.Since, Tolerates: r.Tolerates, Rejected: r.Rejected, RejectedAt: r.RejectedAt}
	var doc strictjson.Doc
	for _, it := range r.Items {
		if (it.Kind == Server) != (it.Name == "") || it.Approved == "" && it.Pending == "" {
			return Pin{}, errBroken
		}
		for _, version := range []string{it.Approved, it.Pending} {
			if version != "" && doc.Reset([]byte(version), itemLimits) != nil {
				return Pin{}, errBroken
			}
		}
		p.Items = append(p.Items, PinnedItem{Key{it.Kind, it.Name}, it.Was, it.Approved, it.Pending, it.Blocked, it.By, it.At, it.ByHand})
	}
	inOrder := slices.IsSortedFunc(p.Items, func(a, b PinnedItem) int {
		if c := a.Key.compare(b.Key); c != 0 {
			return c
		}
		return 1 // twice the same
	})
	if r.Format != PinFormat || !inOrder {
		return Pin{}, errBroken
	}
	return p, nil
}
