// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlReader makes nodes of the expressions of a TOML file: headers of tables, and lines of a
// name and a value. What belongs to one table may stand in several places.
type tomlReader struct {
	src    []byte
	p      unstable.Parser
	root   *node
	table  *node // that the last header has opened
	path   []*node
	spans  map[*node]*span
	number int // of the expression
	opened map[*node]bool
}

// A span is the expressions that make a table.
type span struct{ first, last, count int }

var errTwice = errors.New("a name is defined twice")

// parseTOML reads a TOML file. The positions are those of the parser; the rules about names
// that are defined twice, which it does not have, are kept here.
func parseTOML(src []byte) (root *node, err error) {
	r := &tomlReader{src: src, root: &node{kind: '{'}, spans: map[*node]*span{}, opened: map[*node]bool{}}
	r.table = r.root
	r.p.Reset(src)
	for r.p.NextExpression() {
		e := r.p.Expression()
		switch e.Kind {
		case unstable.KeyValue:
			err = r.line(e)
		case unstable.Table, unstable.ArrayTable:
			err = r.header(e)
		default:
			err = fmt.Errorf("an expression of kind %d", e.Kind)
		}
		if err != nil {
			return nil, err
		}
		r.number++
	}
	if r.p.Error() != nil { // its text may hold third-party text
		at := len(src)
		if e, ok := errors.AsType[*unstable.ParserError](r.p.Error()); ok && len(e.Highlight) > 0 {
			if i := cap(src) - cap(e.Highlight); i >= 0 && i < len(src) && &src[i] == &e.Highlight[0] { // a part of src
				at = i
			}
		}
		return nil, invalidAt("TOML", src, at)
	}
	for n, s := range r.spans {
		n.odd = n.odd || s.last-s.first+1 != s.count
	}
	return r.root, nil
}

// keys is the parts of a dotted name.
func (r *tomlReader) keys(it unstable.Iterator) (out []*node) {
	for it.Next() {
		k := it.Node()
		start := int(k.Raw.Offset)
		out = append(out, &node{kind: '"', text: string(k.Data), start: start, end: start + int(k.Raw.Length)})
	}
	return out
}

// descend goes to the table that keys name below n, and makes what is not there.
func (r *tomlReader) descend(n *node, keys []*node, from int) (path []*node, err error) {
	for _, k := range keys {
		m := n.member(k.text)
		if m == nil {
			n.members = append(n.members, member{name: k.text, key: k, from: from, value: &node{kind: '{', start: -1, end: -2}})
			m = &n.members[len(n.members)-1]
		} else {
			m.spread = true
		}
		n = m.value
		if n.is('[') && len(n.elements) > 0 { // the last of an array of tables
			n = n.elements[len(n.elements)-1]
		}
		if !n.is('{') || n.flow {
			return nil, errTwice
		}
		path = append(path, n)
	}
	return path, nil
}

func (r *tomlReader) header(e *unstable.Node) error {
	keys := r.keys(e.Key())
	first, last := keys[0], keys[len(keys)-1]
	brackets := 1
	if e.Kind == unstable.ArrayTable {
		brackets = 2
	}
	start := bytes.LastIndexByte(r.src[:first.start], '[') - brackets + 1
	end := last.end + bytes.IndexByte(r.src[last.end:], ']') + brackets
	path, err := r.descend(r.root, keys[:len(keys)-1], first.start)
	if err != nil {
		return err
	}
	parent := r.root
	if len(path) > 0 {
		parent = path[len(path)-1]
	}
	m := parent.member(last.text)
	switch {
	case e.Kind == unstable.ArrayTable:
		if m == nil {
			parent.members = append(parent.members, member{name: last.text, key: last, from: first.start, value: &node{kind: '[', start: -1, end: -2}})
			m = &parent.members[len(parent.members)-1]
		} else if !m.value.is('[') || m.value.flow {
			return errTwice
		}
		r.table = &node{kind: '{', start: -1, end: -2, odd: true}
		m.value.elements = append(m.value.elements, r.table)
	case m == nil:
		r.table = &node{kind: '{', start: -1, end: -2}
		parent.members = append(parent.members, member{name: last.text, key: last, from: first.start, value: r.table})
	case !m.value.is('{') || m.value.flow || r.opened[m.value]:
		return errTwice
	default:
		m.spread = true
		r.table = m.value
	}
	r.opened[r.table] = true
	r.path = append(path, r.table)
	r.touch(r.path, start, end)
	return nil
}

// touch says that the expression at [start, end) belongs to these tables.
func (r *tomlReader) touch(path []*node, start, end int) {
	for _, n := range path {
		s := r.spans[n]
		if s == nil {
			s = &span{first: r.number}
			r.spans[n], n.start = s, start
		}
		s.last, s.count, n.end = r.number, s.count+1, end
	}
}

func (r *tomlReader) line(e *unstable.Node) error {
	end := int(e.Raw.Offset + e.Raw.Length)
	into, keys, err := r.assign(r.table, e)
	if err != nil {
		return err
	}
	r.touch(append(append([]*node{}, r.path...), into...), keys[0].start, end)
	return nil
}

// assign sets a name of table, and returns the tables that a dotted name leads through.
func (r *tomlReader) assign(table *node, e *unstable.Node) (path, keys []*node, err error) {
	keys = r.keys(e.Key())
	from, last := keys[0].start, keys[len(keys)-1]
	if path, err = r.descend(table, keys[:len(keys)-1], from); err != nil {
		return nil, nil, err
	}
	for _, n := range path {
		r.opened[n] = true
		table = n
	}
	if table.member(last.text) != nil {
		return nil, nil, errTwice
	}
	v, err := r.valueOf(e.Value())
	if err != nil {
		return nil, nil, err
	}
	if v.is('[') || v.is('{') {
		at := last.end + bytes.IndexByte(r.src[last.end:], '=') + 1
		for at < len(r.src) && (r.src[at] == ' ' || r.src[at] == '\t') {
			at++
		}
		v.start, v.end = at, int(e.Raw.Offset+e.Raw.Length)
	}
	table.members = append(table.members, member{name: last.text, key: last, from: from, value: v})
	return path, keys, nil
}

// valueOf makes a node of a value. Only the caller knows where a list or an inline table stands;
// the place of one that is an element of a list is not known.
func (r *tomlReader) valueOf(v *unstable.Node) (*node, error) {
	n := &node{kind: '0', start: int(v.Raw.Offset), end: int(v.Raw.Offset + v.Raw.Length), text: string(v.Data), flow: true}
	switch v.Kind {
	case unstable.String:
		n.kind = '"'
	case unstable.Bool:
		if n.kind = 'f'; n.text == "true" {
			n.kind = 't'
		}
	case unstable.Array:
		n.kind, n.start, n.end = '[', -1, -2
		for it := v.Children(); it.Next(); {
			e, err := r.valueOf(it.Node())
			if err != nil {
				return nil, err
			}
			n.elements = append(n.elements, e)
		}
	case unstable.InlineTable:
		n.kind, n.start, n.end = '{', -1, -2
		n.flow = false // until it is whole, a dotted name may lead through it
		for it := v.Children(); it.Next(); {
			path, _, err := r.assign(n, it.Node())
			if err != nil {
				return nil, err
			}
			for _, p := range path {
				p.odd = true // it has no place of its own
			}
		}
		n.flow = true
	}
	return n, nil
}
