// SPDX-License-Identifier: Apache-2.0

package child

import (
	"slices"
	"sync"
)

// maxTail is the number of lines that a Tail keeps.
const maxTail = 5

// Tail keeps the last lines that a process writes to its standard error, to explain a failure, and a line of
// its standard output that was not a message. The zero value is ready for use, from several goroutines.
type Tail struct {
	mu    sync.Mutex
	lines []string // the last lines that differ, escaped
	stray string
}

// AddStray keeps a line of the standard output, and reports whether it is the first one.
func (t *Tail) AddStray(excerpt string) (first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first = t.stray == ""
	t.stray = excerpt
	return first
}

// Stray explains that the standard output has lines that are not messages. It is empty if it has no such line.
func (t *Tail) Stray() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stray == "" {
		return ""
	}
	return "it writes lines to its standard output that are not JSON-RPC, such as " + t.stray
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
