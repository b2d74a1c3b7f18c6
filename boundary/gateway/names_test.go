// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"
	"testing"
)

// TestNormalNames: under the profile mcp names of members are normalised as values are, unless two
// would be one or the name would be one of the protocol's or of ours.
func TestNormalNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		content, want string
		profile       Profile
	}{
		{`{"\uff2bey":"\uff36alue"}`, `{"Key":"Value"}`, MCP},
		{`{"\uff2bey":1}`, `{"\uff2bey":1}`, Faithful},
		{`{"a":[{"\uff2bey":{"\u2460":2}}]}`, `{"a":[{"Key":{"1":2}}]}`, MCP},
		{`{"\uff2bey":1,"Key":2,"b":3}`, `{"Key":2,"b":3}`, MCP},
		{`{"\uff2bey":1,"K\uff45y":2,"b":3}`, `{"b":3}`, MCP},
		{`{"\uff3fmeta":{"a":1},"b":3}`, `{"b":3}`, MCP},
		{`{"\uff44ev.pellucid/provenance":1,"b":3}`, `{"b":3}`, MCP},
	} {
		r := newRig(t, func(c *Config) { c.Profile = tt.profile })
		m := r.result(r.request("7", "tools/call", `{"name":"read"}`), `{"content":[],"structuredContent":`+tt.content+`}`)
		got := string(m.at("result", "structuredContent"))
		if want := strings.ReplaceAll(tt.want, `\uff2b`, "\uff2b"); strings.ReplaceAll(got, `\uff2b`, "\uff2b") != want {
			t.Errorf("%s: %s, want %s", tt.content, got, want)
		}
		if dropped := strings.Count(tt.content, ":") - strings.Count(got, ":"); dropped > 0 && r.last().Verdict != Changed {
			t.Errorf("%s: %+v", tt.content, r.last())
		}
	}
	// A name that could become one of the protocol is left out.
	r := newRig(t, func(c *Config) { c.Profile = MCP })
	m := r.result(r.request("7", "tools/call", `{"name":"read"}`), `{"content":[],"\uff49sError":true}`)
	if got := string(m.at("result")); strings.Contains(got, "rror") && strings.Contains(got, "true") {
		t.Error(got)
	}
}
