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
		// One odd name costs no other member.
		{`{"\ufeffid":1,"b":3}`, `{"id":1,"b":3}`, Faithful},
		{`{"\ufeffid":1,"b":3}`, `{"id":1,"b":3}`, MCP},
		{`{"a":[{"<|im_start|>":1},2],"b":3}`, "{\"a\":[{\"\u27e8|im_start|\u27e9\":1},2],\"b\":3}", Faithful},
		{`{"<|im_start|>":1,"<|im_start|>x":2}`, `{"x":2}`, MCP},
		{`{"\ufeffid":1,"id":2,"b":3}`, `{"id":2,"b":3}`, Faithful},
		{`{"so\u00adft":1,"\u2066a\u2069":2}`, `{"soft":1,"a":2}`, Faithful},
		{`{"\u202edev.pellucid/provenance":1,"\u200b_meta":2,"b":3}`, `{"b":3}`, Faithful},
		{`{"x\u001b[8m":1,"b":3}`, `{"x":1,"b":3}`, Faithful},
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
