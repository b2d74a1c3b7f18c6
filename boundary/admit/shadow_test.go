// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"fmt"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
)

// TestShadowLines: the shadows between two servers are one line of the log, which counts all and names the first.
func TestShadowLines(t *testing.T) {
	var lines []*shadowLine
	for i := range 30 {
		for _, other := range []string{"files", "mail"} {
			sh := surface.Shadow{How: "same-name", Server: "zoo", Other: other, Tool: fmt.Sprint("t", i)}
			sh.Place.Key = surface.Key{Kind: surface.Tool, Name: fmt.Sprint("t\u202e", i)}
			lines = addShadow(lines, sh, i == 0)
		}
	}
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	if l := lines[1]; l.other != "mail" || l.items != 30 || l.held != 1 || len(l.names) != maxShadowsNamed || l.names[0] != `tool "t\u202e0" like "t0"` {
		t.Errorf("%+v", l)
	}
}
