// SPDX-License-Identifier: Apache-2.0

package child

import (
	"slices"
	"strconv"
	"testing"
)

func TestTail(t *testing.T) {
	var tail Tail
	if got := tail.Lines(); len(got) != 0 {
		t.Errorf("before the first line: %q", got)
	}
	for i := range 7 {
		tail.Add(strconv.Itoa(i))
		tail.Add(strconv.Itoa(i)) // kept once
	}
	got := tail.Lines()
	if want := []string{"2", "3", "4", "5", "6"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	got[0] = "changed" // a copy
	if tail.Add("5"); tail.Lines()[0] != "2" {
		t.Errorf("%q", tail.Lines())
	}
}
