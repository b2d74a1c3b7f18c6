// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/mcpshape"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// TestOffersByTable: all servers as one announce what the table of extensions lets pass
// there, and nothing else that a server announces.
func TestOffersByTable(t *testing.T) {
	var doc strictjson.Doc
	if err := doc.Reset([]byte(`{"capabilities":{"tools":{},"tasks":{"list":{}},"experimental":{"x":{}},"evil":{},
		"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["a"]},"evil.example/x":{}}}}`), strictjson.Limits{}); err != nil {
		t.Fatal(err)
	}
	u := &union{f: &Fleet{}}
	dst := append(u.selfDescription([]byte(`{"protocolVersion":"2025-11-25"`), []part{{name: "a", offers: offersOf(doc.Root())}}), '}')
	var said strictjson.Doc
	if err := said.Reset(dst, strictjson.Limits{}); err != nil {
		t.Fatalf("%v: %s", err, dst)
	}
	c := said.Root().Get("capabilities")
	if e := c.Get("extensions"); e.Len() != 1 || e.Get(mcpmsg.ExtensionApps).Kind() != '{' || c.Get("tasks").Kind() != '{' {
		t.Errorf("capabilities %s", c.Raw())
	}
	if c.Get("experimental").Exists() || c.Get("evil").Exists() {
		t.Errorf("what nothing lets pass: %s", c.Raw())
	}
	if r := mcpshape.Check("2025-11-25", mcpmsg.Result, mcpmsg.Initialize, said.Root()); !r.Clean() {
		t.Errorf("%+v", r)
	}
}

// hearing is a server that notes what it hears, and says more than it is asked before it
// answers the call of a tool.
func hearing(result string, heard *sync.Map, says ...string) Dialer {
	return scripted(result, func(server wire.ReadConn, m *wire.Message) {
		heard.Store(m.Method, true)
		if m.Kind == wire.Request && m.Method == mcpmsg.CallTool {
			for _, line := range says {
				m, err := wire.Decode([]byte(line), strictjson.Limits{})
				if err != nil {
					panic(err) // written in the test
				}
				_ = server.Write(context.Background(), m)
			}
		}
	})
}

// TestUnionByTable walks the table of extensions at all servers as one: a method is refused
// with the constant error, and no server hears of it, where the table withholds it, and only
// there; what a server says by a method that no row names does not arrive.
func TestUnionByTable(t *testing.T) {
	var heard sync.Map
	dial := hearing(everyResult, &heard,
		`{"jsonrpc":"2.0","method":"notifications/evil","params":{}}`, `{"jsonrpc":"2.0","id":"e","method":"evil.example/ask","params":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"said"}}`)
	f := fleetOf(t, Options{}, Server{Name: "a", Dial: dial, Config: config("a")})
	toClient, fromClient, done := serveLines(all(f, wire.Legacy))
	client := wire.Pull(wire.NewLines(toClient, fromClient, wire.LinesOptions{}))
	defer func() { fromClient.Close(); <-done; client.Close() }()
	var said []string
	var last int64
	ask := func(method, params string) (refused bool) {
		last++
		request(t, client, last, method, params)
		for {
			m, err := client.Read(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if m.ID != wire.IntID(last) {
				said = append(said, m.Method)
				m.Release()
				continue
			}
			code, _ := m.Error.Get("code").Int64()
			refused = code == wire.CodeNoMethod && m.Error.Get("message").Text() == textNoMethod
			m.Release()
			return refused
		}
	}
	ask(mcpmsg.Initialize, `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
	own := map[string]bool{mcpmsg.Initialize: true, mcpmsg.Discover: true, mcpmsg.Listen: true, mcpmsg.ListRoots: true, mcpmsg.Sample: true, mcpmsg.Elicit: true}
	for i := range mcpmsg.Extensions {
		e := &mcpmsg.Extensions[i]
		methods := e.Methods
		if methods == nil && e.Union == mcpmsg.Withheld {
			methods = []string{"evil.example/do"}
		}
		for _, method := range methods {
			if strings.HasSuffix(method, "/") {
				method += "get"
			}
			if own[method] || strings.HasPrefix(method, "notifications/") {
				continue // of another era, or of servers
			}
			if refused, want := ask(method, `{"name":"a_t","uri":"a://b","level":"info"}`), e.Union == mcpmsg.Withheld; refused != want {
				t.Errorf("%s: refused %t, want %t", method, refused, want)
			}
			if _, was := heard.Load(method); was && e.Union == mcpmsg.Withheld {
				t.Errorf("a server heard %s", method)
			}
		}
	}
	all := strings.Join(said, " ")
	if strings.Contains(all, "evil") || !strings.Contains(all, mcpmsg.LogMessage) {
		t.Errorf("the client heard %q", all)
	}
}
