// SPDX-License-Identifier: Apache-2.0

//go:build checkreuse && (linux || darwin)

package reuse

import (
	"sync"
	"syscall"
)

// fenced says that released bytes cannot be read.
const fenced = true

// Bounds of the memory outside of the Go heap. The collector does not see it, so a Buffer
// that is never released stays.
const (
	maxLive     = 512 << 20 // bytes in use; beyond them memory is of the Go heap, and overwritten
	maxMappings = 8 << 10   // in use; likewise
	maxReleased = 8 << 10   // mappings that cannot be read; the oldest one is unmapped then
)

// fence is the mappings of this process.
var fence struct {
	sync.Mutex
	live     map[*byte][]byte // by their first byte
	bytes    int              // in live
	released [][]byte         // the oldest first
}

// take is memory in pages of its own.
func take(room int) []byte {
	fence.Lock()
	defer fence.Unlock()
	if fence.bytes+room > maxLive || len(fence.live) >= maxMappings {
		return make([]byte, 0, room)
	}
	all, err := syscall.Mmap(-1, 0, room, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return make([]byte, 0, room)
	}
	if fence.live == nil {
		fence.live = map[*byte][]byte{}
	}
	fence.live[&all[0]] = all
	fence.bytes += len(all)
	return all[:0]
}

// giveBack makes a use of the bytes a memory fault.
func giveBack(b []byte) {
	if cap(b) == 0 {
		return
	}
	fence.Lock()
	defer fence.Unlock()
	all, is := fence.live[&b[:1][0]]
	if !is {
		overwrite(b)
		return
	}
	delete(fence.live, &all[0])
	fence.bytes -= len(all)
	if err := syscall.Mprotect(all, syscall.PROT_NONE); err != nil {
		panic("reuse: released memory cannot be protected: " + err.Error())
	}
	fence.released = append(fence.released, all)
	if len(fence.released) > maxReleased {
		_ = syscall.Munmap(fence.released[0])
		fence.released = fence.released[1:]
	}
}
