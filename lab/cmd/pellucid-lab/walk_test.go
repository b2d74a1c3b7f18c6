// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"golang.org/x/tools/cover"
)

// TestWalkDifference: a block counts where it ran once a call more than without calls, but for a tenth.
func TestWalkDifference(t *testing.T) {
	block := func(count int) cover.ProfileBlock { return cover.ProfileBlock{NumStmt: 2, Count: count} }
	without := map[place]cover.ProfileBlock{{"p/a.go", 1, 1}: block(5), {"p/a.go", 2, 1}: block(5)}
	with := map[place]cover.ProfileBlock{
		{"p/a.go", 1, 1}: block(5 + 9),  // nearly once a call
		{"p/a.go", 2, 1}: block(5 + 8),  // less often
		{"q/b.go", 1, 1}: block(10),     // once a call
		{"q/c.go", 1, 1}: block(3 * 10), // several times
	}
	if got, want := difference("up", without, with, 10), (walked{"up", 6, 3, 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
