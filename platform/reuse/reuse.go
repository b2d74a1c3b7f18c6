// SPDX-License-Identifier: Apache-2.0

// Package reuse lends memory that is used again: buffers of bytes, and values of one type.
//
// What is taken has one owner. The owner may hand it on, and releases it at most once, when
// nothing refers to it any more: no slice of it, no string that aliases it, no value inside
// it. Release is optional: memory that is never released is left to the garbage collector.
//
// A use after Release is a serious fault, because the memory may hold the message of another
// session by then. Under the build tags race and checkreuse such a use panics, and no memory
// is used twice:
//
//   - A Buffer, or a Held value, that is used or released after its Release panics, and says
//     where it was released.
//   - With race, the bytes of a released Buffer are overwritten.
//   - With checkreuse, on Linux and macOS, the bytes of a released Buffer cannot be read or
//     written: each slice and string that still aliases them ends the program with a memory
//     fault, at the line that uses it.
//
// Without these tags the checks are empty functions, and cost nothing.
package reuse

import (
	"sync"
	"unsafe"
)

// A Pool lends values of type T. The zero Pool is ready for use, and safe for concurrent use.
type Pool[T any] struct {
	// Forget is called before a value is used again, so that it refers to nothing of its last
	// owner. nil: nothing need be forgotten.
	Forget func(*T)

	free sync.Pool // of *Held[T]
}

// A Held is a value that was taken from a Pool.
type Held[T any] struct {
	lease
	from  *Pool[T]
	value T
}

// Get takes a value: the zero value of T, or what a former owner and Forget have left.
func (p *Pool[T]) Get() *Held[T] {
	if h, ok := p.free.Get().(*Held[T]); ok {
		return h
	}
	return &Held[T]{from: p}
}

// Value is the value, until Release.
func (h *Held[T]) Value() *T {
	h.use()
	return &h.value
}

// Release gives the value back.
func (h *Held[T]) Release() {
	h.end()
	if h.from.Forget != nil {
		h.from.Forget(&h.value)
	}
	if !Checked {
		h.from.free.Put(h)
	}
}

// String is b as a string, without a copy. It is valid as long as b is, and b must not be
// written to while it is used.
func String(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
