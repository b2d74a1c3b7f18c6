// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// many are n servers with k tools each.
func many(n, k int) (servers []Server) {
	for i := range n {
		var tools []string
		for j := range k {
			tools = append(tools, fmt.Sprintf(`{"name":"tool_%d","description":"Returns a text of the size that the caller asks for. It changes nothing.",`+
				`"inputSchema":{"type":"object","properties":{"script":{"type":"string"},"bytes":{"type":"integer"}}},"annotations":{"readOnlyHint":true}}`, j))
		}
		result := `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"},"tools":[` + strings.Join(tools, ",") + `]}`
		name := fmt.Sprintf("s%d", i)
		servers = append(servers, Server{Name: name, Dial: answers(result), Config: config(name)})
	}
	return servers
}

// BenchmarkList is the time of the list of 2,000 tools of 50 servers as one.
func BenchmarkList(b *testing.B) {
	f := fleetOf(b, Options{}, many(50, 40)...)
	c := newPerson()
	ended := c.meet(b, func(ended func(error)) { f.StartAll(b.Context(), Client{Conn: c}, ended) })
	b.ReportAllocs()
	for b.Loop() {
		if m := c.ask(b, mcpmsg.ListTools, `{}`); m.Kind != wire.Response || m.Result.Get("tools").Len() != 2000 {
			b.Fatal("not all tools")
		}
	}
	c.leave(b, ended)
}

// BenchmarkSession is the time of a session that begins and ends, of a server alone and among others.
func BenchmarkSession(b *testing.B) {
	f := fleetOf(b, Options{}, many(4, 1)...)
	for name, start := range map[string]func(*person, func(error)){
		"alone":  func(c *person, ended func(error)) { f.Start(b.Context(), "s0", Client{Conn: c}, ended) },
		"as one": func(c *person, ended func(error)) { f.StartAll(b.Context(), Client{Conn: c}, ended) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c := newPerson()
				c.leave(b, c.meet(b, func(ended func(error)) { start(c, ended) }))
			}
		})
	}
}
