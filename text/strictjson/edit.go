// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"cmp"
	"slices"
)

// Edits collects changes to the values of one Doc; Apply emits a value with
// them. What is not edited keeps its bytes. The zero Edits is empty and ready
// for use.
//
// Where edits meet, the outermost wins: what is changed inside a value that is
// itself replaced or removed has no effect. Of several changes to the same
// value the last one counts. Edits of a value that is absent do nothing.
//
// Edits does not parse what it is given: the bytes passed as raw must be one
// JSON value, and they are retained until Reset. Changing the text of names can
// make two of them equal; whoever does so must parse the result.
type Edits struct {
	d      *Doc
	list   []edit
	sorted bool // list is in the order of (node, seq)
	grows  int  // bytes that the edits add at most, but for escapes
}

// An edit is small, since a hostile text can ask for one in every few bytes.
type edit struct {
	node uint32 // what is edited: the entry itself or, for add, its container
	seq  uint32
	op   operation
	text string // of opText; the raw value of opRaw and opAdd
	// Of opText and opWrap what stands around the text; of opAdd before is the name.
	before, behind string
}

type operation uint8

const (
	opRaw  operation = iota // the value becomes raw
	opText                  // the value becomes a string of before, text and behind
	opWrap                  // the string stays as it is spelled, between before and behind
	opDrop                  // the value goes, with its comma and name
	opCut                   // so do the element and all behind it
	opAdd                   // the container gets a new last member or element
)

// Reset forgets all edits.
func (e *Edits) Reset() {
	clear(e.list)
	if cap(e.list) > 1<<14 {
		e.list = nil
	}
	e.d, e.list, e.grows = nil, e.list[:0], 0
}

// Grows is how many bytes longer than the value the edits can make it, but for escapes.
func (e *Edits) Grows() int { return e.grows }

// Len is the number of edits collected.
func (e *Edits) Len() int { return len(e.list) }

// editRoom is for the punctuation of an edit and for a few escapes.
const editRoom = 16

func (e *Edits) add(v Value, ed edit) {
	if v.d == nil {
		return
	}
	if e.d == nil {
		e.d, e.sorted = v.d, true
	}
	if e.d != v.d {
		panic("strictjson: Edits of two documents")
	}
	ed.node, ed.seq = v.i, uint32(len(e.list))
	e.grows += len(ed.text) + len(ed.before) + len(ed.behind) + editRoom
	if n := len(e.list); n > 0 && e.list[n-1].node > v.i {
		e.sorted = false
	}
	e.list = append(e.list, ed)
}

// Replace puts raw, one JSON value, in the place of v. If v is a name, raw must
// be a string.
func (e *Edits) Replace(v Value, raw []byte) { e.add(v, edit{op: opRaw, text: alias(raw)}) }

// ReplaceText puts s, as a string, in the place of v, a value or a member's name.
func (e *Edits) ReplaceText(v Value, s string) { e.add(v, edit{op: opText, text: s}) }

// ReplaceTextWithin is ReplaceText of before+s+behind, of which each should be UTF-8.
func (e *Edits) ReplaceTextWithin(v Value, before, s, behind string) {
	e.add(v, edit{op: opText, before: before, text: s, behind: behind})
}

// Surround puts before and behind, which should be UTF-8, into the string v, around
// what it holds, which keeps its spelling. It does nothing if v is no string.
func (e *Edits) Surround(v Value, before, behind string) {
	if v.Kind() == '"' {
		e.add(v, edit{op: opWrap, before: before, behind: behind})
	}
}

// Remove takes away an element, or a member given its name or its value, with
// its comma. The value that is given to Apply itself is in no container and
// becomes null.
func (e *Edits) Remove(v Value) {
	if v.isName() {
		v.i++
	}
	e.add(v, edit{op: opDrop})
}

// Truncate takes away the element v of an array and all elements behind it.
func (e *Edits) Truncate(v Value) { e.add(v, edit{op: opCut}) }

// Append gives the object obj a new last member, or replaces the value of the
// member that it has by that name, also of one appended before. It does nothing
// if obj is no object.
func (e *Edits) Append(obj Value, name string, raw []byte) {
	if obj.Kind() != '{' {
		return
	}
	if v := obj.Get(name); v.Exists() {
		e.Replace(v, raw)
		return
	}
	e.add(obj, edit{op: opAdd, before: name, text: alias(raw)})
}

// AppendElement gives the array arr a new last element. It does nothing if arr
// is no array.
func (e *Edits) AppendElement(arr Value, raw []byte) {
	if arr.Kind() == '[' {
		e.add(arr, edit{op: opAdd, text: alias(raw)})
	}
}

// Apply appends v with the edits to dst. It may be called for any value, more
// than once.
func (e *Edits) Apply(dst []byte, v Value) []byte {
	if v.d == nil || v.d != e.d {
		return append(dst, v.Raw()...)
	}
	if !e.sorted {
		slices.SortFunc(e.list, func(a, b edit) int {
			return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.seq, b.seq))
		})
		e.sorted = true
	}
	w := rewriter{src: v.d.src, nodes: v.d.nodes, list: e.list, dst: dst}
	w.k, _ = slices.BinarySearchFunc(e.list, v.i, func(ed edit, i uint32) int { return cmp.Compare(ed.node, i) })
	if w.dropped(v.i) {
		return append(dst, "null"...)
	}
	w.value(v.i)
	return w.dst
}

// A rewriter walks down to what is edited and copies all the rest. Entries are
// visited in their order, so that list is read once, from front to back.
type rewriter struct {
	src   []byte
	nodes []node
	list  []edit
	k     int // the next edit of list
	dst   []byte
}

// own returns the edits of the entry at index i that is visited next.
func (w *rewriter) own(i uint32) []edit {
	end := w.k
	for end < len(w.list) && w.list[end].node == i {
		end++
	}
	return w.list[w.k:end]
}

// change returns the edit that decides on the entry at index i itself, if any.
func (w *rewriter) change(i uint32) *edit {
	own := w.own(i)
	for k := len(own) - 1; k >= 0; k-- {
		if own[k].op != opAdd && own[k].op != opCut {
			return &own[k]
		}
	}
	return nil
}

func (w *rewriter) dropped(i uint32) bool {
	ed := w.change(i)
	return ed != nil && ed.op == opDrop
}

// skip passes over the edits of all entries before index i.
func (w *rewriter) skip(i uint32) {
	for w.k < len(w.list) && w.list[w.k].node < i {
		w.k++
	}
}

// value emits the entry at index i, which is not dropped.
func (w *rewriter) value(i uint32) {
	n := w.nodes[i]
	ed := w.change(i)
	switch {
	case ed != nil && ed.op == opText:
		w.dst = appendInside(append(w.dst, '"'), ed.before)
		w.dst = appendInside(w.dst, ed.text)
		w.dst = append(appendInside(w.dst, ed.behind), '"')
		w.skip(n.next)
	case ed != nil && ed.op == opWrap:
		w.dst = appendInside(append(w.dst, '"'), ed.before)
		w.dst = append(w.dst, w.src[n.start&offset+1:n.end&offset-1]...)
		w.dst = append(appendInside(w.dst, ed.behind), '"')
		w.skip(n.next)
	case ed != nil:
		w.dst = append(w.dst, ed.text...)
		w.skip(n.next)
	case w.k < len(w.list) && w.list[w.k].node < n.next: // something inside
		w.container(i)
	default:
		w.dst = append(w.dst, w.src[n.start&offset:n.end&offset]...)
	}
}

// container emits an object or array. Of its bytes it keeps the opening up to
// the first child, each kept child's gap to the child before it, and all behind
// the last child; the gap of the first kept child goes.
func (w *rewriter) container(i uint32) {
	n := w.nodes[i]
	object := w.src[n.start&offset] == '{'
	added := w.own(i)
	w.k += len(added)

	pos := n.start&offset + 1 // what lies before pos is dealt with
	if first := i + 1; first < n.next {
		pos = w.nodes[first].start & offset
	}
	w.dst = append(w.dst, w.src[n.start&offset:pos]...)
	empty := true
	for c := i + 1; c < n.next; {
		val := c
		if object {
			val++
		}
		next := w.nodes[val].next
		if w.cut(c) {
			w.skip(n.next)
			pos = n.end&offset - 1
			break
		}
		if w.untouched(next) {
			// Nothing is edited up to here: the child leaves as it came.
			if empty {
				pos = w.nodes[c].start & offset
			}
			end := w.nodes[val].end & offset
			w.dst = append(w.dst, w.src[pos:end]...)
			pos, empty = end, false
		} else {
			pos, empty = w.child(c, val, pos, empty)
		}
		c = next
	}
	for k, ed := range added {
		sameName := func(later edit) bool { return later.before == ed.before }
		if object && slices.ContainsFunc(added[k+1:], sameName) {
			continue
		}
		if !empty {
			w.dst = append(w.dst, ',')
		}
		empty = false
		if object {
			w.dst = append(AppendQuote(w.dst, ed.before), ':')
		}
		w.dst = append(w.dst, ed.text...)
	}
	w.dst = append(w.dst, w.src[pos:n.end&offset]...)
}

// cut reports whether the elements end before the entry at index i.
func (w *rewriter) cut(i uint32) bool {
	return w.k < len(w.list) && w.list[w.k].node == i && slices.ContainsFunc(w.own(i), func(ed edit) bool { return ed.op == opCut })
}

func (w *rewriter) untouched(next uint32) bool {
	return w.k >= len(w.list) || w.list[w.k].node >= next
}

// child emits a child of which something is edited: the entry c, or the name c
// and the value val. pos is the end of the child before it.
func (w *rewriter) child(c, val, pos uint32, empty bool) (uint32, bool) {
	first, last := w.nodes[c], w.nodes[val]
	end := last.end & offset
	if w.droppedMember(c, val) {
		w.skip(last.next)
		return end, empty
	}
	if !empty {
		w.dst = append(w.dst, w.src[pos:first.start&offset]...)
	}
	if c != val {
		w.value(c)
		w.dst = append(w.dst, w.src[first.end&offset:last.start&offset]...)
	}
	w.value(val)
	return end, false
}

// droppedMember reports whether the child is dropped; an edit of its name
// comes before those of its value in the list.
func (w *rewriter) droppedMember(c, val uint32) bool {
	k := w.k
	w.skip(val)
	gone := w.dropped(val)
	w.k = k
	return gone
}
