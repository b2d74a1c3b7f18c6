// SPDX-License-Identifier: Apache-2.0

//go:build race || checkreuse

package reuse

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
)

// Checked says that a use after Release panics, and that no memory is used twice.
const Checked = true

// A lease is the time of one owner.
type lease struct {
	ended atomic.Pointer[stack] // where; nil: not yet
}

// stack is the callers of Release, the nearest first.
type stack [6]uintptr

// use panics after end.
func (l *lease) use() {
	if s := l.ended.Load(); s != nil {
		panic("reuse: used after Release, which was called by:\n" + s.String())
	}
}

// end panics after end too.
func (l *lease) end() {
	s := new(stack)
	runtime.Callers(3, s[:])
	if !l.ended.CompareAndSwap(nil, s) {
		panic("reuse: released twice, first by:\n" + l.ended.Load().String())
	}
}

func (s *stack) String() string {
	var b strings.Builder
	for frames := runtime.CallersFrames(s[:]); ; {
		f, more := frames.Next()
		fmt.Fprintf(&b, "\t%s\n\t\t%s:%d\n", f.Function, f.File, f.Line)
		if !more {
			return b.String()
		}
	}
}

// overwrite makes what is read of released bytes differ from each honest message.
func overwrite(b []byte) {
	for i := range b[:cap(b)] {
		b[:cap(b)][i] = 0xdb
	}
}
