// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"os"
	"testing"
)

// TestNoConsole: what is a character device and no console obeys no escape sequences.
func TestNoConsole(t *testing.T) {
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	none := func(string) string { return "" }
	if !IsTerminal(f) || PaletteFor(f, none).On || NewBar(f, none, "x", 1) != nil {
		t.Error("escape sequences are written to what is no console")
	}
}
