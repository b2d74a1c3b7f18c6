// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A node is a value of a client's file, with its place in the file. The three syntaxes have
// it in common, so that an entry is rewritten by the same code in each of them. A nil node is
// a value that the file does not have.
type node struct {
	kind byte   // as strictjson.Kind; 0 of what no rewrite may touch, such as an alias of YAML
	text string // of a scalar
	// The value is src[start:end]; end < start where its end is not known.
	start, end int
	flow       bool // an object whose members stand between braces, on any lines
	odd        bool // it cannot be edited without a change elsewhere
	members    []member
	elements   []*node

	json  strictjson.Value // of a file in JSON, whose members are read when they are asked for
	ready bool
	index map[string]int // of members, as far as it was asked for
}

// A member is a name of an object with its value.
type member struct {
	name string
	key  *node
	// The line begins at from: in TOML, parts of a dotted name stand before the key.
	from   int
	spread bool // the name stands in more than one place
	value  *node
}

// fromJSON is the node of a value of a JSON file.
func fromJSON(v strictjson.Value) *node {
	if !v.Exists() {
		return nil
	}
	return &node{kind: byte(v.Kind()), start: v.Offset(), end: v.Offset() + len(v.Raw()), flow: true, json: v}
}

func (n *node) load() {
	if n.ready || !n.json.Exists() {
		return
	}
	n.ready = true
	for name, value := range n.json.Members() {
		key := fromJSON(name)
		n.members = append(n.members, member{name: strings.Clone(name.Text()), key: key, from: key.start, value: fromJSON(value)})
	}
	for value := range n.json.Elements() {
		n.elements = append(n.elements, fromJSON(value))
	}
}

func (n *node) exists() bool { return n != nil }

func (n *node) is(kind byte) bool { return n != nil && n.kind == kind }

// str is the text of a scalar.
func (n *node) str() string {
	switch {
	case n == nil:
		return ""
	case n.json.Exists():
		return strings.Clone(n.json.Text())
	}
	return n.text
}

// all is the members of an object; nothing of another value.
func (n *node) all() []member {
	if n == nil {
		return nil
	}
	n.load()
	return n.members
}

// list is the elements of a list; nothing of another value.
func (n *node) list() []*node {
	if n == nil {
		return nil
	}
	n.load()
	return n.elements
}

// get is the member of that name, nil if the object has none.
func (n *node) get(name string) *node {
	if m := n.member(name); m != nil {
		return m.value
	}
	return nil
}

func (n *node) member(name string) *member {
	all := n.all()
	if len(all) == 0 {
		return nil
	}
	if n.index == nil {
		n.index = map[string]int{}
	}
	for i := len(n.index); i < len(all); i++ { // names differ from each other
		n.index[all[i].name] = i
	}
	if i, found := n.index[name]; found {
		return &all[i]
	}
	return nil
}

// holding is the member that has the value v.
func (n *node) holding(v *node) *member {
	all := n.all()
	for i := range all {
		if all[i].value == v {
			return &all[i]
		}
	}
	return nil
}

// known reports whether it is known where the value ends.
func (n *node) known() bool { return n != nil && n.start >= 0 && n.end >= n.start }

// strange reports whether the node or a value in it cannot be edited safely.
func (n *node) strange() bool {
	return n == nil || n.odd || n.kind == 0 ||
		slices.ContainsFunc(n.all(), func(m member) bool { return m.value.strange() }) ||
		slices.ContainsFunc(n.list(), func(e *node) bool { return e.strange() })
}

// scalars is every name and scalar value in the node.
func (n *node) scalars() iter.Seq[*node] {
	return func(yield func(*node) bool) { n.walk(yield) }
}

func (n *node) walk(yield func(*node) bool) bool {
	for _, m := range n.all() {
		if !yield(m.key) || !m.value.walk(yield) {
			return false
		}
	}
	for _, e := range n.list() {
		if !e.walk(yield) {
			return false
		}
	}
	return n == nil || n.is('{') || n.is('[') || yield(n)
}

// appendJSON appends the value as JSON. Numbers become strings, as they are spelled: the
// syntaxes spell them differently.
func (n *node) appendJSON(dst []byte) []byte {
	switch {
	case n == nil, n.kind == 'n', n.kind == 0:
		return append(dst, "null"...)
	case n.json.Exists():
		return append(dst, n.json.Raw()...)
	case n.kind == 't':
		return append(dst, "true"...)
	case n.kind == 'f':
		return append(dst, "false"...)
	case n.kind == '[':
		dst = append(dst, '[')
		for i, e := range n.elements {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = e.appendJSON(dst)
		}
		return append(dst, ']')
	case n.kind == '{':
		dst = append(dst, '{')
		for i, m := range n.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = m.value.appendJSON(append(strictjson.AppendQuote(dst, m.name), ':'))
		}
		return append(dst, '}')
	}
	return strictjson.AppendQuote(dst, n.text)
}

// value is the JSON of a node, in a record.
func (n *node) value() json.RawMessage { return n.appendJSON(nil) }

// same reports whether two values are equal, however they are spelled. The order of members
// does not count.
func same(a, b *node) bool {
	x, errX := strictjson.Canonical(nil, a.value(), limits)
	y, errY := strictjson.Canonical(nil, b.value(), limits)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
