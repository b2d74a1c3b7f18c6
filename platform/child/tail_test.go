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

func TestTailStray(t *testing.T) {
	var tail Tail
	if got := tail.Stray(); got != "" {
		t.Errorf("before the first line: %q", got)
	}
	if !tail.AddStray(`"Server 1.0"`) || tail.AddStray(`"started"`) {
		t.Error("only the first line is the first")
	}
	if got, want := tail.Stray(), `it writes lines to its standard output that are not JSON-RPC, such as "started"`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
