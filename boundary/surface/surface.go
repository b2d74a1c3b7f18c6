// SPDX-License-Identifier: Apache-2.0

// Package surface lists what a server says of itself, looks for hidden text in it, has it reviewed, and compares it with its pin.
//
// A surface is everything that initialize or server/discover and the four lists
// answer. Its items are canonical and in order, so that two listings with the
// same content have the same fingerprint, however the server has ordered them,
// cut them into pages or spelled them. Pass 1 looks for hidden text; pass 2 asks
// a Reviewer; Pins hold whatever differs from what was approved.
//
// The formats stand in docs/spec/surface.md.
package surface

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// version is that of docs/spec/surface.md: canonical form, fingerprint, dump.
const version = "1"

// A Kind is what an Item describes.
type Kind uint8

// The kinds, in the order of a surface.
const (
	Server   Kind = iota // the answer to initialize or server/discover
	List                 // what the answers of one list say beside its entries
	Tool                 // by name
	Prompt               // by name
	Resource             // by URI
	Template             // by URI template
	App                  // by URI: a page that a client shows to a person
)

var kindNames = [...]string{"server", "list", "tool", "prompt", "resource", "template", "app"}

// String is a constant.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// MarshalText makes a Kind a string in JSON.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (k *Kind) UnmarshalText(b []byte) error {
	i := slices.Index(kindNames[:], string(b))
	if i < 0 {
		return errors.New("surface: no such kind of item")
	}
	*k = Kind(i)
	return nil
}

// A Digest is a SHA-256.
type Digest [sha256.Size]byte

// String is "sha256:" and 64 hex digits.
func (d Digest) String() string { return "sha256:" + hex.EncodeToString(d[:]) }

// MarshalText makes a Digest a string in JSON.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (d *Digest) UnmarshalText(b []byte) error {
	digits, ok := strings.CutPrefix(string(b), "sha256:")
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil || len(raw) != len(d) || hex.EncodeToString(raw) != digits {
		return errors.New("surface: no SHA-256")
	}
	copy(d[:], raw)
	return nil
}

// A Key names an item within its surface.
type Key struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name,omitzero"` // third-party text; "" for Server, the method for List
}

func (k Key) compare(l Key) int {
	if k.Kind != l.Kind {
		return int(k.Kind) - int(l.Kind)
	}
	return strings.Compare(k.Name, l.Name)
}

// An Item is one thing that a server says of itself.
type Item struct {
	Key
	JSON   []byte // canonical: third-party text, not to be changed
	Digest Digest
}

// newItem computes the digest, which binds the key to the content.
func newItem(key Key, canonical []byte) Item {
	it := Item{Key: key, JSON: canonical}
	it.Digest = it.DigestAs(nil)
	return it
}

// DigestAs returns the digest of an item without its tolerated parts.
func (it Item) DigestAs(t Tolerated) Digest {
	return digestOf("item", []byte(it.Kind.String()), []byte(it.Name), formOf(it.Key, it.JSON, t))
}

// sameBut reports whether two versions of an item differ in tolerated parts only.
func (it Item) sameBut(other Item, t Tolerated) bool {
	return it.Digest == other.Digest || len(t) > 0 && it.Key == other.Key && it.DigestAs(t) == other.DigestAs(t)
}

// digestOf is the SHA-256 of parts of which none can run into the next: each
// stands behind its length. what keeps apart the uses. spec: surface/3
func digestOf(what string, parts ...[]byte) Digest {
	h := sha256.New()
	add := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	add([]byte("dev.pellucid/surface/" + version + "/" + what))
	for _, p := range parts {
		add(p)
	}
	return Digest(h.Sum(nil))
}

// fingerprintOf is the digest of all items, which are sorted.
func fingerprintOf(items []Item) Digest {
	digests := make([][]byte, len(items))
	for i := range items {
		digests[i] = items[i].Digest[:]
	}
	return digestOf("surface", digests...)
}

// An Unlisted is a list that the server did not give.
type Unlisted struct {
	Method   string
	Code     int64 // of the error
	Declared bool  // although its capabilities say that it has one
}

// A Surface is all that a server says of itself. It is immutable.
type Surface struct {
	items    []Item
	print    Digest
	answers  []answer
	more     []answer // to a client with the extension Apps
	unlisted []Unlisted
	size     int
	leftOut  []LeftOut
	earlier  []Item // other versions of items, from earlier listings of the same collection
	looped   []string
	able     string // the capabilities of the client that listed it, as a capabilitySet
}

// An answer is one result as the server sent it.
type answer struct {
	method string
	doc    *strictjson.Doc
}

// Items are in order of kind and name. They are shared and must not be changed.
func (s *Surface) Items() []Item { return s.items }

// Item returns the item of that key.
func (s *Surface) Item(k Key) (Item, bool) { return find(s.items, k) }

func find(items []Item, k Key) (Item, bool) {
	i, ok := slices.BinarySearchFunc(items, k, func(it Item, k Key) int { return it.Key.compare(k) })
	if !ok {
		return Item{}, false
	}
	return items[i], true
}

// Fingerprint covers everything that a model or a reviewer sees of the surface,
// and neither order, paging nor spelling. spec: surface/3
func (s *Surface) Fingerprint() Digest { return s.print }

// Bytes is the size of the answers, as they were received.
func (s *Surface) Bytes() int { return s.size }

// Unlisted are the lists that the server answered with an error. That it has no
// such list, and never said so, is the usual reason.
func (s *Surface) Unlisted() []Unlisted { return s.unlisted }

// Looped returns the lists that repeat a cursor, or have one that is not a string: they end there.
func (s *Surface) Looped() []string { return s.looped }

// A list is a method that lists entries.
type list struct {
	method, member string // of the result
	kind           Kind
	key            string // the member that names an entry
	capability     string
}

// lists are in the order in which they are asked for.
var lists = [...]list{
	{mcpmsg.ListTools, "tools", Tool, "name", "tools"},
	{mcpmsg.ListPrompts, "prompts", Prompt, "name", "prompts"},
	{mcpmsg.ListResources, "resources", Resource, "uri", "resources"},
	{mcpmsg.ListTemplates, "resourceTemplates", Template, "uriTemplate", "resources"},
}

func listOf(method string) *list {
	for i := range lists {
		if lists[i].method == method {
			return &lists[i]
		}
	}
	return nil
}
