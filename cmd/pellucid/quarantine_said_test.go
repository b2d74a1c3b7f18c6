// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/record/hold"
)

// TestSaidReleased: who has released an item hears which request gets it.
func TestSaidReleased(t *testing.T) {
	for want, it := range map[string]hold.Item{
		"The next call of web/read with the same arguments gets":           {Rule: "finding"},
		"The next tasks/get for the same task of web/read gets this":       {Rule: "finding", Found: hold.Found{Task: "tasks/get"}},
		"The next call of web/read with the same arguments is not held":    {Rule: hold.PolicyCall + "r"},
		"Proposed. The item needs two persons: another one has to release": {State: hold.Held, Found: hold.Found{Task: "tasks/get"}},
	} {
		if it.Server, it.Tool = "web", "read"; it.State == "" {
			it.State = hold.Released
		}
		var out strings.Builder
		if saidReleased(&out, &it); !strings.Contains(out.String(), want) {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
}
