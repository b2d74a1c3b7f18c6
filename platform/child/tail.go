// SPDX-License-Identifier: Apache-2.0

package child

import (
	"slices"
	"sync"
)

// maxTail is the number of lines that a Tail keeps.
const maxTail = 5

// Tail keeps the end of what a process writes to its standard error, to explain a failure.
// The zero value is ready for use, from several goroutines.
type Tail struct {
	mu    sync.Mutex
	lines []string // the last lines that differ, escaped
}

// Add is a Command's Stderr. A line that is kept already is not added again.
func (t *Tail) Add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.lines, line) {
		return
	}
	t.lines = append(t.lines, line)
	t.lines = t.lines[max(0, len(t.lines)-maxTail):]
}

// Lines returns what is kept, the oldest line first.
func (t *Tail) Lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.lines)
}
