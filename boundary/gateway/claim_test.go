// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

func TestAgree(t *testing.T) {
	t.Parallel()
	headers := []mcpmsg.ParamHeader{{Path: []string{"region"}, Name: "Region"}, {Path: []string{"n"}, Name: "N"}}
	type params = map[string]string
	for _, tt := range []struct {
		name         string
		body, header string // names
		bodyParams   params
		headerParams params
		ok           bool
		forwarded    params
	}{
		{"nothing", "", "", nil, nil, true, nil},
		{"name", "a", "a", nil, nil, true, nil},
		{"other name", "a", "b", nil, nil, false, nil},
		{"no name", "a", "", nil, nil, false, nil},
		{"name of a method that we do not know", "", "a", nil, nil, true, nil},
		{"parameters", "a", "a", params{"Region": "eu", "N": "42"}, params{"region": "eu", "n": "42"}, true, params{"Region": "eu", "N": "42"}},
		{"another spelling of an integer", "a", "a", params{"N": "42"}, params{"n": "42.0"}, true, params{"N": "42"}},
		{"other value", "a", "a", params{"Region": "eu"}, params{"region": "EU"}, false, nil},
		{"header missing", "a", "a", params{"Region": "eu"}, nil, false, nil},
		{"argument missing", "a", "a", nil, params{"region": "eu"}, false, nil},
		{"parameter that nobody declared", "a", "a", nil, params{"zone": "1"}, true, params{"zone": "1"}},
	} {
		route := wire.Route{Name: tt.body, Params: maps.Clone(tt.bodyParams)}
		if ok := agree(&route, &wire.Claim{Name: tt.header, Params: tt.headerParams}, headers); ok != tt.ok {
			t.Errorf("%s: %t", tt.name, ok)
		} else if ok && (!maps.Equal(route.Params, tt.forwarded) || route.Name != tt.header) {
			t.Errorf("%s: forwarded %+v", tt.name, route)
		}
	}
}

// TestFrontMismatch: a header that contradicts the body is refused before the
// server hears of it, also where the server has no headers.
func TestFrontMismatch(t *testing.T) {
	t.Parallel()
	s := sdkServer()
	s.AddTool(&mcp.Tool{Name: "zoned", InputSchema: map[string]any{"type": "object",
		"properties": map[string]any{"zone": map[string]any{"type": "string", "x-mcp-header": "Zone"}}}}, zoned)
	for _, over := range []string{"http", "stdio"} {
		k := newStack(t, s, over, true)
		for _, tt := range []struct {
			name, header, zone string
			status             int
		}{
			{"zoned", "zoned", "eu", 200},
			{"zoned", "zoned", "us", 400},
			{"zoned", "zoned", "", 400},
			{"zoned", "poison", "eu", 400},
			{"zoned", "", "eu", 400},
		} {
			req, _ := http.NewRequest(http.MethodPost, k.url, strings.NewReader(
				`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"`+tt.name+`","arguments":{"zone":"eu"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
			req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"}, "Mcp-Protocol-Version": {modernVersion}, "Mcp-Method": {"tools/call"}}
			if tt.header != "" {
				req.Header.Set("Mcp-Name", tt.header)
			}
			if tt.zone != "" {
				req.Header.Set("Mcp-Param-Zone", tt.zone)
			}
			resp, err := (&http.Client{Transport: k.conns}).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != tt.status || !strings.Contains(string(body), `"id":"x"`) || tt.status == 400 && !strings.Contains(string(body), "-32020") {
				t.Errorf("%s, %+v: %d %s", over, tt, resp.StatusCode, body)
			}
		}
	}
}
