// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/format"
	"slices"
	"unsafe"
)

// printer collects the text of one file of tables.
type printer struct{ bytes.Buffer }

func (p *printer) f(format string, a ...any) { fmt.Fprintf(p, format, a...) }

func (p *printer) gofmt() ([]byte, error) { return format.Source(p.Bytes()) }

// numbers prints an array of unsigned numbers.
func numbers[T uint8 | uint16 | uint32 | uint64](p *printer, name, comment string, v []T) {
	typ := fmt.Sprintf("%T", v[0])
	p.f("// %s: %s.\nvar %s = [...]%s{", name, comment, name, typ)
	width := 24
	hex := typ == "uint32" || typ == "uint64"
	if hex {
		width = 10
	}
	for i, x := range v {
		if i%width == 0 {
			p.f("\n")
		}
		if hex {
			p.f("%#x,", x)
		} else {
			p.f("%d,", x)
		}
	}
	p.f("\n}\n\n")
}

// pages cuts v into pages of 1<<shift and keeps one of each kind. What follows
// the last page that is not zero is left out; limit is where it begins.
func pages[T uint8 | uint16](v []T, shift int) (index []uint16, out []T, limit int) {
	limit = len(v)
	for limit > 0 && v[limit-1] == 0 {
		limit--
	}
	limit = (limit + 1<<shift - 1) >> shift << shift
	seen := map[string]uint16{}
	for i := 0; i < limit; i += 1 << shift {
		page := v[i : i+1<<shift]
		key := fmt.Sprint(page)
		n, ok := seen[key]
		if !ok {
			n = uint16(len(seen))
			seen[key] = n
			out = append(out, page...)
		}
		index = append(index, n)
	}
	return index, out, limit
}

// trie prints a two-stage table of v and its lookup function. The page size is
// the one with the smallest table, or the one that is given.
func trie[T uint8 | uint16](p *printer, name, comment string, v []T) {
	size := func(shift int) int {
		index, out, _ := pages(v, shift)
		return len(index)*indexWidth(index) + len(out)*int(unsafe.Sizeof(v[0]))
	}
	shifts := []int{4, 5, 6, 7}
	shift := slices.MinFunc(shifts, func(a, b int) int { return size(a) - size(b) })
	index, out, limit := pages(v, shift)
	p.f("// lookup%s: %s; %d bytes of tables.\n", name, comment, size(shift))
	p.f("func lookup%s(r rune) %T {\n\tif u := uint32(r); u < %#x {\n", name, v[0], limit)
	p.f("\t\treturn data%s[uint32(index%s[u>>%d])<<%d|u&%d]\n\t}\n\treturn 0\n}\n\n", name, name, shift, shift, 1<<shift-1)
	printIndex(p, "index"+name, index)
	numbers(p, "data"+name, "the pages", out)
}

// indexWidth is the number of bytes of a page number.
func indexWidth(index []uint16) int {
	if slices.Max(index) > 255 {
		return 2
	}
	return 1
}

func printIndex(p *printer, name string, index []uint16) {
	if indexWidth(index) == 2 {
		numbers(p, name, "page numbers", index)
		return
	}
	narrow := make([]uint8, len(index))
	for i, x := range index {
		narrow[i] = uint8(x)
	}
	numbers(p, name, "page numbers", narrow)
}
