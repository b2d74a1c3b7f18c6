package fleet

import (
	"testing"

	"github.com/pellucid-mcp/pellucid/internal/mcpmsg"
	"github.com/pellucid-mcp/pellucid/internal/mcpshape"
	"github.com/pellucid-mcp/pellucid/internal/strictjson"
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
