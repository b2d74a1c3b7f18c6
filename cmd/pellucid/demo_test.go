// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/demo"
)

// TestShowTellsFailure: a case that is not as it should be is said to be so, and
// nothing of it reaches the terminal raw.
func TestShowTellsFailure(t *testing.T) {
	var b bytes.Buffer
	s := &show{w: &b}
	s.outcome(demo.Outcome{Case: &demo.Case{Tool: "t", What: "w", Verdict: "fine"},
		Before: demo.Reply{Texts: []string{"a\u202eb\x1b[31m"}}, After: demo.Reply{Texts: []string{"a\u202eb\x1b[31m"}},
		Err: errors.New("not so \x1b[2J")})
	s.closing("/bin/pellucid")
	out := b.String()
	if s.failed != 1 || !strings.Contains(out, "FAILED") || !strings.Contains(out, "0 as they should be, 1 not") || strings.Contains(out, "genuine") {
		t.Errorf("the failure is not told:\n%s", out)
	}
	if strings.ContainsAny(out, "\x1b\u202e") {
		t.Errorf("raw characters: %+q", out)
	}
}
