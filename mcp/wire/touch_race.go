// SPDX-License-Identifier: Apache-2.0

//go:build race

package wire

import "sync/atomic"

// Watched says that Watch does something: in tests that run under the race detector.
const Watched = true

var watcher atomic.Pointer[func()]

// Watch has f called whenever a message is decoded, edited, written or given back, in the goroutine that does it.
func Watch(f func()) { watcher.Store(&f) }

func watch() {
	if f := watcher.Load(); f != nil {
		(*f)()
	}
}
