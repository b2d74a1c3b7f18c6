// SPDX-License-Identifier: Apache-2.0

// Package strictjson parses JSON once, strictly, into an index over its own bytes, and re-emits what was checked.
//
// It exists because peers disagree on lenient JSON, and a disagreement between
// the parser that checks and the parser that acts is an attack. What is refused
// here beyond the grammar of RFC 8259: duplicate member names (compared after
// unescaping), ill-formed UTF-8, a byte order mark, lone surrogate escapes, and
// numbers that a float64 cannot hold. Everything else survives as it was
// spelled: unknown members, the order of members, white space and numbers.
package strictjson

const (
	defaultBytes  = 32 << 20
	defaultDepth  = 128
	defaultValues = 1 << 20

	maxBytes  = 1<<30 - 1 // the two top bits of an offset hold flags
	maxDepth  = 10_000    // the parser recurses
	maxValues = 1 << 30
)

// maxNumber is the longest number accepted, in bytes.
const maxNumber = 1024

// Limits bounds what one text may cost. The zero value is the strict choice:
// 32 MiB, 128 levels, 1,048,576 entries.
type Limits struct {
	Bytes  int // bytes; 0 = 32 MiB, at most 1 GiB - 1
	Depth  int // nested arrays and objects; 0 = 128, at most 10,000
	Values int // values and member names together, 12 bytes of index each; 0 = 1,048,576

	// MendSurrogates turns a lone surrogate escape in a string value (never in a
	// name) into U+FFFD instead of an error, counted in Doc.Mended. Slicing a
	// string by UTF-16 unit is a common honest bug of JavaScript servers.
	MendSurrogates bool

	// FoldedNames refuses two names in one object that are equal under Unicode
	// simple case folding, as encoding/json matches names. It is for typed
	// objects; data may well hold {"a":1,"A":2}.
	FoldedNames bool
}

func (l Limits) orDefault() Limits {
	pick := func(n, def, top int) int {
		if n <= 0 {
			return def
		}
		return min(n, top)
	}
	l.Bytes = pick(l.Bytes, defaultBytes, maxBytes)
	l.Depth = pick(l.Depth, defaultDepth, maxDepth)
	l.Values = pick(l.Values, defaultValues, maxValues)
	return l
}

// A node is one entry of the index. Its flags are the top bits of the offsets.
// The entries of an object or array follow it, up to next; an object's are
// name, value, name, value.
type node struct {
	start uint32 // offset of the first byte | isName
	end   uint32 // offset behind the last byte | isEscaped, isMended
	next  uint32 // index of the entry behind this one and all that it holds
}

const (
	isName    = 1 << 31 // of start
	isEscaped = 1 << 31 // of end: the string holds at least one escape
	isMended  = 1 << 30 // of end
	offset    = maxBytes
)

// A Doc is a parsed text. The zero Doc is empty and ready for use; Reset reuses
// its memory, so that a Doc that has seen a few messages parses without
// allocating. It aliases the text until the next Reset. A Doc that is only
// read may be read concurrently.
type Doc struct {
	// Mended counts the lone surrogate escapes that became U+FFFD; Value.Mended
	// tells where. It is 0 unless Limits.MendSurrogates was set.
	Mended int

	src   []byte
	nodes []node
	lim   Limits

	mended []byte    // own copy of the text, used instead of it once something was mended
	table  []uint32  // of duplicate detection in large objects
	keys   [2][]byte // unescaped, perhaps folded, names under comparison
}

// Reset parses exactly one JSON text, white space around it allowed. The error
// is a *SyntaxError; the Doc is empty then. Values of the text before are void.
func (d *Doc) Reset(src []byte, lim Limits) error {
	d.shrink(len(src))
	d.src, d.nodes, d.Mended = src, d.nodes[:0], 0
	d.lim = lim.orDefault()
	if at, code := d.scanText(); code != 0 {
		d.src, d.nodes, d.Mended = nil, d.nodes[:0], 0
		return &SyntaxError{Code: code, Offset: at}
	}
	if d.Mended > 0 {
		d.src = d.mended
	}
	return nil
}

// Root is the text's value; absent if the text was not parsed.
func (d *Doc) Root() Value {
	if len(d.nodes) == 0 {
		return Value{}
	}
	return Value{d, 0}
}

// shrink lets go of memory that a much larger text needed, so that one huge
// message does not stay resident for the life of a connection.
func (d *Doc) shrink(size int) {
	const keep = 1 << 20 // bytes, for each buffer
	if c := cap(d.nodes) * 12; c > keep && c/4 > size {
		d.nodes = nil
	}
	if c := cap(d.mended); c > keep && c/4 > size {
		d.mended = nil
	}
	if c := cap(d.table) * 4; c > keep && c/4 > size {
		d.table = nil
	}
	for i := range d.keys {
		if c := cap(d.keys[i]); c > keep && c/4 > size {
			d.keys[i] = nil
		}
	}
}
