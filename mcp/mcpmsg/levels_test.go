// SPDX-License-Identifier: Apache-2.0

package mcpmsg

import "testing"

func TestLevelOf(t *testing.T) {
	for name, want := range map[string]int{"debug": 0, "warning": 3, "emergency": 7, "": -1, "warn": -1, "Debug": -1} {
		if got := LevelOf(name); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
}
