// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"bytes"
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
// make two of them equal; a caller that does so must parse the result.
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
	w := e.rewriter(dst, v)
	if w.dropped(v.i) {
		return append(dst, "null"...)
	}
	w.value(v.i, 0)
	return w.dst
}

// ResetEdited makes d the document of v with the edits e, whose text is what Apply
// appends to dst. What is not edited is not parsed again: its entries are copied. d
// must not be the Doc of v, and aliases the text as after Reset. The error, a
// *SyntaxError, says what Reset would say of the text; d is empty then.
func (d *Doc) ResetEdited(dst []byte, v Value, e *Edits, lim Limits) (text []byte, err error) {
	d.shrink(len(v.Raw()))
	d.src, d.nodes, d.Mended, d.lim = nil, d.nodes[:0], 0, lim.orDefault()
	if v.d == nil {
		return dst, &SyntaxError{Code: CodeEnd}
	}
	w := e.rewriter(dst, v)
	w.index = d
	if w.dropped(v.i) {
		w.raw("null", 0, 0)
	} else {
		w.value(v.i, 0)
	}
	d.src = w.dst[w.base:]
	switch {
	case w.code != 0:
	case len(d.src) > d.lim.Bytes:
		w.at, w.code = d.lim.Bytes, CodeBytes
	case len(d.nodes) > d.lim.Values:
		w.code = CodeValues
	}
	if w.code != 0 {
		d.src, d.nodes, d.Mended = nil, d.nodes[:0], 0
		return w.dst, &SyntaxError{Code: w.code, Offset: w.at}
	}
	return w.dst, nil
}

// rewriter returns what writes v with the edits behind dst.
func (e *Edits) rewriter(dst []byte, v Value) rewriter {
	w := rewriter{src: v.d.src, nodes: v.d.nodes, dst: dst, base: len(dst)}
	if v.d != e.d {
		return w
	}
	if !e.sorted {
		slices.SortFunc(e.list, func(a, b edit) int {
			return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.seq, b.seq))
		})
		e.sorted = true
	}
	w.list = e.list
	w.k, _ = slices.BinarySearchFunc(e.list, v.i, func(ed edit, i uint32) int { return cmp.Compare(ed.node, i) })
	return w
}

// A rewriter walks down to what is edited and copies all the rest. Entries are
// visited in their order, so that list is read once, from front to back.
type rewriter struct {
	src   []byte
	nodes []node
	list  []edit
	k     int // the next edit of list
	dst   []byte
	base  int // of the text in dst

	index *Doc // gets the entries of what is written; nil: none are wanted
	at    int  // of the first error in the text
	code  Code // of that error
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

// copy emits src[pos:end], where the entries from c to next stand.
func (w *rewriter) copy(pos, end, c, next uint32) {
	if w.index != nil {
		moved := uint32(len(w.dst)-w.base) - pos
		shift := uint32(len(w.index.nodes)) - c
		for _, n := range w.nodes[c:next] {
			if n.end&isMended != 0 {
				w.index.Mended++
			}
			w.index.nodes = append(w.index.nodes, node{n.start + moved, n.end + moved, n.next + shift})
		}
	}
	w.dst = append(w.dst, w.src[pos:end]...)
}

// text emits the string of before, text and behind in the place of the entry n. inside
// is spelled as JSON already.
func (w *rewriter) text(n node, ed *edit, inside []byte) {
	start := len(w.dst)
	w.dst = appendInside(append(w.dst, '"'), ed.before)
	w.dst = append(w.dst, inside...)
	w.dst = appendInside(w.dst, ed.text)
	w.dst = append(appendInside(w.dst, ed.behind), '"')
	if w.index == nil {
		return
	}
	flags := uint32(0)
	if bytes.IndexByte(w.dst[start:], '\\') >= 0 {
		flags = isEscaped
	}
	if inside != nil && n.end&isMended != 0 {
		flags |= isMended
		w.index.Mended++
	}
	next := uint32(len(w.index.nodes) + 1)
	w.index.nodes = append(w.index.nodes, node{uint32(start-w.base) | n.start&isName, uint32(len(w.dst)-w.base) | flags, next})
}

// raw emits text, which should be one JSON value, or a name if flag is isName.
func (w *rewriter) raw(text string, depth int, flag uint32) {
	start := len(w.dst) - w.base
	w.dst = append(w.dst, text...)
	if w.index == nil || w.code != 0 {
		return
	}
	d := w.index
	d.src = w.dst[w.base:]
	lim := d.lim
	d.lim.MendSurrogates = false // that would need a copy of the text
	start = skipSpace(d.src, start)
	var code Code
	if flag == isName && start < len(d.src) && d.src[start] == '"' {
		start, code = d.scanString(start, isName)
	} else if start, code = d.scanValue(start, depth); flag == isName && code == 0 {
		code = CodeToken
	}
	d.lim = lim
	if start = skipSpace(d.src, start); code == 0 && start < len(d.src) {
		code = CodeTrailing
	}
	w.fail(start, code)
}

func (w *rewriter) fail(at int, code Code) {
	if w.code == 0 {
		w.at, w.code = at, code
	}
}

// value emits the entry at index i, which is not dropped and stands in depth containers.
func (w *rewriter) value(i uint32, depth int) {
	n := w.nodes[i]
	ed := w.change(i)
	switch {
	case ed != nil && ed.op == opText:
		w.text(n, ed, nil)
		w.skip(n.next)
	case ed != nil && ed.op == opWrap:
		w.text(n, ed, w.src[n.start&offset+1:n.end&offset-1])
		w.skip(n.next)
	case ed != nil:
		w.raw(ed.text, depth, n.start&isName)
		w.skip(n.next)
	case w.k < len(w.list) && w.list[w.k].node < n.next: // something inside
		w.container(i, depth)
	default:
		w.copy(n.start&offset, n.end&offset, i, n.next)
	}
}

// container emits an object or array. Of its bytes it keeps the opening up to
// the first child, each kept child's gap to the child before it, and all behind
// the last child; the gap of the first kept child goes.
func (w *rewriter) container(i uint32, depth int) {
	n := w.nodes[i]
	object := w.src[n.start&offset] == '{'
	added := w.own(i)
	w.k += len(added)
	self := w.open()

	pos := n.start&offset + 1 // what lies before pos is dealt with
	if first := i + 1; first < n.next {
		pos = w.nodes[first].start & offset
	}
	w.dst = append(w.dst, w.src[n.start&offset:pos]...)
	empty, renamed := true, false
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
			w.copy(pos, end, c, next)
			pos, empty = end, false
		} else {
			renamed = renamed || object && w.change(c) != nil
			pos, empty = w.child(c, val, pos, depth+1, empty)
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
			w.text(node{start: isName}, &edit{text: ed.before}, nil)
			w.dst = append(w.dst, ':')
		}
		w.raw(ed.text, depth+1, 0)
	}
	w.dst = append(w.dst, w.src[pos:n.end&offset]...)
	w.close(self, object && renamed)
}

// open adds the entry of a container that begins here, and returns its index.
func (w *rewriter) open() int {
	if w.index == nil {
		return 0
	}
	start := uint32(len(w.dst) - w.base)
	w.index.nodes = append(w.index.nodes, node{start: start})
	return len(w.index.nodes) - 1
}

// close completes the entry at index self. Names that were changed may be equal now.
func (w *rewriter) close(self int, renamed bool) {
	d := w.index
	if d == nil || w.code != 0 {
		return
	}
	d.src = w.dst[w.base:]
	d.close(self, len(d.src))
	if renamed || d.lim.FoldedNames && d.src[d.nodes[self].start&offset] == '{' {
		at, code := d.findDuplicate(self, Value{d, uint32(self)}.Len())
		w.fail(at, code)
	}
}

// cut reports whether the elements end before the entry at index i.
func (w *rewriter) cut(i uint32) bool {
	return w.k < len(w.list) && w.list[w.k].node == i && slices.ContainsFunc(w.own(i), func(ed edit) bool { return ed.op == opCut })
}

func (w *rewriter) untouched(next uint32) bool {
	return w.k >= len(w.list) || w.list[w.k].node >= next
}

// child emits a child of which something is edited: the entry c, or the name c
// and the value val, in depth containers. pos is the end of the child before it.
func (w *rewriter) child(c, val, pos uint32, depth int, empty bool) (uint32, bool) {
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
		w.value(c, depth)
		w.dst = append(w.dst, w.src[first.end&offset:last.start&offset]...)
	}
	w.value(val, depth)
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
