// SPDX-License-Identifier: Apache-2.0

package reuse

import (
	"bytes"
	"runtime/debug"
	"strings"
	"testing"
)

// panicOf is the panic of f, which a memory fault is too; nil: there was none.
func panicOf(f func()) (p any) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { p = recover() }()
	f()
	return nil
}

// TestUseAfterRelease: in a checked build each use of a Buffer or a Held value behind its
// Release panics, a second Release too, and the panic names the function that released it.
func TestUseAfterRelease(t *testing.T) {
	if !Checked {
		t.Skip("this build does not check: use -race or -tags checkreuse")
	}
	for name, use := range map[string]func(*Buffer){
		"Bytes":   func(b *Buffer) { b.Bytes() },
		"Set":     func(b *Buffer) { b.Set(nil) },
		"Append":  func(b *Buffer) { b.Append([]byte("x")) },
		"Grow":    func(b *Buffer) { b.Grow(1) },
		"Fit":     func(b *Buffer) { b.Fit() },
		"Release": func(b *Buffer) { b.Release() },
	} {
		b := Copy([]byte("text"), 0)
		if p := panicOf(func() { use(b); b = Copy([]byte("text"), 0) }); p != nil {
			t.Fatalf("%s before Release: %v", name, p)
		}
		b.Release()
		if p, _ := panicOf(func() { use(b) }).(string); !strings.Contains(p, "TestUseAfterRelease") {
			t.Errorf("%s behind Release: %q", name, p)
		}
	}
	var forgot int
	pool := Pool[int]{Forget: func(n *int) { forgot = *n }}
	h := pool.Get()
	*h.Value() = 5
	h.Release()
	if forgot != 5 {
		t.Errorf("Forget got %d", forgot)
	}
	if panicOf(func() { h.Value() }) == nil || panicOf(h.Release) == nil {
		t.Error("a Held value can be used behind its Release")
	}
}

// TestAliasAfterRelease: what still aliases the bytes of a released Buffer reads nothing of them.
func TestAliasAfterRelease(t *testing.T) {
	if !Checked {
		t.Skip("this build does not check: use -race or -tags checkreuse")
	}
	for name, leave := range map[string]func(*Buffer){
		"released": func(b *Buffer) { b.Release() },
		"grown":    func(b *Buffer) { b.Append(make([]byte, 1<<20)) },
		"set":      func(b *Buffer) { b.Set(append(b.Bytes(), make([]byte, 1<<20)...)) },
		"fitted":   func(b *Buffer) { b.Set(b.Bytes()[:100]); b.Fit() },
	} {
		b := Copy(bytes.Repeat([]byte("s"), 100<<10), 0)
		kept, text := b.Bytes(), String(b.Bytes())
		leave(b)
		if !fenced {
			if kept[0] != 0xdb || text[99] != 0xdb {
				t.Errorf("%s: %q is left", name, kept[:4])
			}
			continue
		}
		for use, f := range map[string]func(){
			"read": func() { _ = bytes.IndexByte(kept, 'x') }, "write": func() { kept[1] = 'x' },
			"read of a string": func() { _ = strings.IndexByte(text, 'x') },
		} {
			if panicOf(f) == nil {
				t.Errorf("%s: a %s does not fault", name, use)
			}
		}
	}
}

// TestReleasedMemory: without checks the next owner gets the memory, and no larger one.
func TestReleasedMemory(t *testing.T) {
	if Checked {
		t.Skip("a checked build uses no memory twice")
	}
	same := 0
	for range 100 {
		b := Copy([]byte("text"), 0)
		first := b.Bytes()
		b.Release()
		next := NewBuffer(0)
		if next.Holds(first) {
			same++
		}
		if len(next.Bytes()) != 0 {
			t.Fatalf("a new Buffer has %q", next.Bytes())
		}
	}
	if same == 0 { // a collection, or a move to another processor, empties the pool now and then
		t.Error("no memory was used again")
	}
}

// TestBufferBytes: growing, fitting and setting keep the bytes.
func TestBufferBytes(t *testing.T) {
	var b *Buffer
	if b.Bytes() != nil || b.Holds(nil) {
		t.Error("a nil Buffer has bytes")
	}
	b = NewBuffer(0)
	var want []byte
	for n := 1; n < 3<<20; n *= 3 {
		more := bytes.Repeat([]byte{byte('a' + n%7)}, n)
		b.Append(more)
		want = append(want, more...)
	}
	b.Grow(len(want) + 1<<20)
	if !bytes.Equal(b.Bytes(), want) {
		t.Fatal("Append and Grow lose bytes")
	}
	b.Set(b.Bytes()[:worthFit])
	if moved := b.Fit(); !moved || !bytes.Equal(b.Bytes(), want[:worthFit]) || cap(b.Bytes()) > worthFit+worthFit/4 {
		t.Errorf("Fit: moved %v, %d bytes of %d", moved, len(b.Bytes()), cap(b.Bytes()))
	}
	if b.Fit() {
		t.Error("Fit moves what fits")
	}
	b.Set(append(b.Bytes(), want...))
	if !bytes.Equal(b.Bytes(), append(want[:worthFit:worthFit], want...)) {
		t.Error("Set loses bytes")
	}
	b.Release()
}

// BenchmarkBuffer: what a Buffer costs beside memory of the collector.
//
// go test -run '^$' -bench '^BenchmarkBuffer$' ./platform/reuse
func BenchmarkBuffer(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		name := map[int]string{4 << 10: "4KiB", 64 << 10: "64KiB", 1 << 20: "1MiB"}[size]
		b.Run(name+"/reused", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				NewBuffer(size).Release()
			}
		})
		b.Run(name+"/made", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				kept = make([]byte, 0, size)
			}
		})
	}
}

var kept []byte
