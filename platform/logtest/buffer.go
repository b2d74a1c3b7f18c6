// SPDX-License-Identifier: Apache-2.0

// Package logtest has what tests read a log with while it is written.
package logtest

import (
	"bytes"
	"sync"
)

// A Buffer is a bytes.Buffer that may be read while it is written. The zero Buffer is empty.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends p, and never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String is what was written until now.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
