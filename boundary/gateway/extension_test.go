// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
)

// TestExtensions walks the table of extensions, at a single server and at one of several,
// as it is and with each row withheld: its capability, each of its methods from either
// side, its members of _meta and its URIs arrive where the table says so, and only there.
func TestExtensions(t *testing.T) {
	t.Parallel()
	for _, union := range []bool{false, true} {
		column := func(e *mcpmsg.Extension) mcpmsg.Passage {
			if union {
				return e.Union
			}
			return e.Alone
		}
		for i := -1; i < len(mcpmsg.Extensions); i++ {
			if i == 0 {
				continue // the protocol itself, without which nothing can be asked
			}
			rows, name := slices.Clone(mcpmsg.Extensions), "as it is"
			passage := column
			if i >= 0 {
				name = "without " + rows[i].Name
				passage = func(e *mcpmsg.Extension) mcpmsg.Passage {
					if e.Name == rows[i].Name {
						return mcpmsg.Withheld
					}
					return column(e)
				}
			}
			t.Run(fmt.Sprintf("union %t/%s", union, name), func(t *testing.T) {
				x := &extensions{t: t, rows: rows, passage: passage}
				x.rig = newRig(t, func(c *Config) {
					c.Union, c.DangerouslyAllowSampling = union, true
					if i >= 0 {
						c.passages = mcpmsg.NewPassages(rows, passage)
					}
				})
				x.capabilities()
				for k := range rows {
					x.methods(&rows[k])
					x.brought(&rows[k])
				}
			})
		}
	}
}

type extensions struct {
	*rig
	t       *testing.T
	rows    []mcpmsg.Extension
	passage func(*mcpmsg.Extension) mcpmsg.Passage
	n       int
}

// passes reports whether one of the rows that hold passes; where none does, the last row.
func (x *extensions) passes(holds func(*mcpmsg.Extension) bool) bool {
	named, passes := false, false
	for i := range x.rows {
		if e := &x.rows[i]; holds(e) {
			named, passes = true, passes || x.passage(e) == mcpmsg.Inspected
		}
	}
	if !named {
		return x.passage(&x.rows[len(x.rows)-1]) == mcpmsg.Inspected
	}
	return passes
}

func (x *extensions) method(method string) bool {
	return x.passes(func(e *mcpmsg.Extension) bool {
		return slices.ContainsFunc(e.Methods, func(m string) bool {
			return m == method || strings.HasSuffix(m, "/") && strings.HasPrefix(method, m)
		})
	})
}

// client sends a request and returns what the client hears, and whether the server has
// heard it, which answers with result.
func (x *extensions) client(method, params, result string) (heard bool, answer message) {
	x.t.Helper()
	x.n++
	id := fmt.Sprint(x.n)
	x.rig.client.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`)
	for {
		select {
		case line := <-x.server.lines:
			m := parse(x.t, line)
			if m.str("method") == mcpmsg.ListTools && method != mcpmsg.ListTools { // the gateway's own
				x.server.send(`{"jsonrpc":"2.0","id":` + string(m["id"]) + `,"result":` + testTools + `}`)
				continue
			}
			if heard = true; m.str("method") != method {
				x.t.Errorf("the server heard %s instead of %s", m.str("method"), method)
			}
			x.server.send(`{"jsonrpc":"2.0","id":` + string(m["id"]) + `,"result":` + result + `}`)
		case line := <-x.rig.client.lines:
			return heard, parse(x.t, line)
		}
	}
}

// capabilities: a server greets with every capability of the table, and with ones that
// nothing names.
func (x *extensions) capabilities() {
	hello := `{"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"},"capabilities":{"tools":{},"prompts":{},"resources":{},` +
		`"logging":{},"completions":{},"tasks":{},"evil":{},"extensions":{"io.modelcontextprotocol/ui":{},"io.modelcontextprotocol/tasks":{},` +
		`"evil.example/x":{}},"experimental":{"evil":{}}}}`
	heard, got := x.client(mcpmsg.Initialize, `{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}},"clientInfo":{"name":"c","version":"1"}}`, hello)
	if !x.method(mcpmsg.Initialize) {
		if heard || got["error"] == nil {
			x.t.Error("the server is greeted")
		}
		return
	}
	for _, path := range [][]string{{"tools"}, {"prompts"}, {"resources"}, {"logging"}, {"completions"}, {"tasks"}, {"evil"},
		{"extensions", mcpmsg.ExtensionApps}, {"extensions", mcpmsg.ExtensionTasks}, {"extensions", "evil.example/x"}, {"experimental", "evil"}} {
		at := []any{"result", "capabilities"}
		for _, p := range path {
			at = append(at, p)
		}
		want := x.passes(func(e *mcpmsg.Extension) bool {
			return slices.Equal(e.Capability, path) || len(path) == 2 && slices.Equal(e.Capability, []string{path[0], "*"})
		})
		if there := got.at(at...) != nil; there != want {
			x.t.Errorf("capability %v announced: %t, want %t", path, there, want)
		}
	}
}

// fromServers are methods of the table that only servers use.
var fromServers = []string{mcpmsg.ListRoots, mcpmsg.Sample, mcpmsg.Elicit}

// paramsOf are valid params of the methods that need some.
var paramsOf = map[string]string{
	mcpmsg.Sample:          `{"messages":[],"maxTokens":1}`,
	mcpmsg.Elicit:          `{"message":"m","requestedSchema":{"type":"object","properties":{}}}`,
	mcpmsg.CallTool:        `{"name":"read"}`,
	mcpmsg.LogMessage:      `{"level":"info","data":1}`,
	mcpmsg.ResourceUpdated: `{"uri":"f:x"}`,
	mcpmsg.ReadResource:    `{"uri":"f:x"}`,
}

func (x *extensions) methods(e *mcpmsg.Extension) {
	methods := e.Methods
	if methods == nil {
		methods = []string{"evil.example/do", "notifications/evil"}
	}
	for _, method := range methods {
		if strings.HasSuffix(method, "/") {
			method += "get"
		}
		if method == mcpmsg.Initialize || method == mcpmsg.Cancelled || method == mcpmsg.Progress {
			continue // walked by capabilities; of a request that is under way
		}
		params := paramsOf[method]
		if params == "" {
			params = "{}"
		}
		want := x.method(method)
		switch {
		case strings.HasPrefix(method, "notifications/"):
			x.notified(method, params, want)
		case slices.Contains(fromServers, method):
			x.asked(method, params, want)
		default:
			heard, got := x.client(method, params, `{}`)
			refused := got.text("error", "message") == errNoMethod.text
			if heard != want || refused == want {
				x.t.Errorf("%s: the server heard it: %t, want %t; the client got %s %s", method, heard, want, got["result"], got["error"])
			}
		}
	}
}

// notified: a notification of the server arrives or does not; the next message does.
func (x *extensions) notified(method, params string, want bool) {
	x.server.send(`{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`)
	x.server.send(`{"jsonrpc":"2.0","id":"after","method":"ping"}`)
	arrived := false
	for {
		var line string
		select {
		case line = <-x.rig.client.lines:
		case line = <-x.server.lines: // where even a ping is withheld, the refusal comes
		}
		m := parse(x.t, line)
		if m.str("method") == method {
			arrived = true
			continue
		}
		if m.str("method") == mcpmsg.Ping {
			x.rig.client.send(`{"jsonrpc":"2.0","id":` + string(m["id"]) + `,"result":{}}`)
			continue
		}
		if m.str("method") == mcpmsg.ListTools {
			x.server.send(`{"jsonrpc":"2.0","id":` + string(m["id"]) + `,"result":` + testTools + `}`)
			continue
		}
		if m.str("id") == "after" {
			break
		}
	}
	if arrived != want {
		x.t.Errorf("%s arrived: %t, want %t", method, arrived, want)
	}
}

// asked: a request of the server arrives or is refused.
func (x *extensions) asked(method, params string, want bool) {
	x.server.send(`{"jsonrpc":"2.0","id":"ask","method":"` + method + `","params":` + params + `}`)
	var m message
	select {
	case line := <-x.rig.client.lines:
		if m = parse(x.t, line); m.str("method") != method || !want {
			x.t.Errorf("%s: the client heard %s", method, line)
		}
		x.rig.client.send(`{"jsonrpc":"2.0","id":` + string(m["id"]) + `,"result":{}}`)
		x.server.next()
	case line := <-x.server.lines:
		if m = parse(x.t, line); want || m.text("error", "message") != errNoMethod.text {
			x.t.Errorf("%s: the server heard %s", method, line)
		}
	}
}

// brought: members of _meta and URIs of an extension, in a result of a tool and in a read.
func (x *extensions) brought(e *mcpmsg.Extension) {
	if x.method(mcpmsg.CallTool) {
		for _, key := range e.Meta {
			_, got := x.client(mcpmsg.CallTool, paramsOf[mcpmsg.CallTool], `{"content":[],"_meta":{"`+key+`":"v","other.example/x":"v"}}`)
			if there := got.at("result", "_meta", key) != nil; there != x.passesMeta(key) || got.at("result", "_meta", "other.example/x") == nil {
				x.t.Errorf("_meta %s arrived: %t; %s", key, there, got["result"])
			}
		}
		for _, scheme := range e.Schemes {
			_, got := x.client(mcpmsg.CallTool, paramsOf[mcpmsg.CallTool], `{"content":[{"type":"resource_link","name":"n","uri":"`+scheme+`://a"}]}`)
			if there := got.text("result", "content", 0, "uri") != ""; there != x.passesURI(scheme) {
				x.t.Errorf("link %s arrived: %t; %s", scheme, there, got["result"])
			}
		}
	}
	for _, scheme := range e.Schemes {
		heard, got := x.client(mcpmsg.ReadResource, `{"uri":"`+scheme+`://a"}`, `{"contents":[]}`)
		want := x.method(mcpmsg.ReadResource) && x.passesURI(scheme)
		if heard != want || (got["error"] == nil) != want {
			x.t.Errorf("read of %s: heard %t, want %t; %s", scheme, heard, want, got["error"])
		}
	}
}

func (x *extensions) passesMeta(key string) bool {
	return x.passes(func(e *mcpmsg.Extension) bool { return slices.Contains(e.Meta, key) })
}

func (x *extensions) passesURI(scheme string) bool {
	return x.passes(func(e *mcpmsg.Extension) bool { return slices.Contains(e.Schemes, scheme) })
}

// openable are URLs that a person may be asked to open, or may not.
var openable = map[string]bool{
	"https://a.example/login?x=1#y": true, "HTTPS://a.example": true, "http://localhost:8080/cb": true, "http://127.0.0.1/": true, "http://[::1]:1/": true,
	"http://a.example/": false, "http://localhost.example/": false, "http://127.0.0.1.example/": false, "http://127.1/": false, "http://0.0.0.0/": false,
	"javascript:alert(1)": false, "data:text/html,x": false, "file:///etc/passwd": false, "ui://a": false, "vscode://x/y": false,
	"https:a.example": false, "https:///a.example": false, "//a.example": false, "": false, "a.example": false,
	"https://good.example@evil.example/": false, `https:\\evil.example`: false, `http://localhost\.evil.example/`: false, "http://localhost@evil.example/": false,
	`https://good.example\@evil.example/`: false,
	// What a request for authorization holds.
	"https://login.example/authorize?response_type=code&redirect_uri=https%3A%2F%2Fapp.example%2Fcb%3Fa%3D1&login_hint=a%40b.example&scope=a%20b+c": true,
	"https://login.example/?to=%252Fhome%253Fx&state=" + strings.Repeat("a", 900) + "&nonce=" + strings.Repeat("b", 900) + "#q=%2F":                 true,
	"http://localhost:8080/cb?to=http%3A%2F%2Flocalhost": true, "https://localhost/": true, "http://[::ffff:127.0.0.1]/": true,
	// Homographs, zones, other hosts and what decodes to something else.
	"https://xn--pple-43d.com/": false, "https://p\u0430ypal.com/": false, "https://paypal.com\u200b/": false, "https://xn--pypal-4ve.com/login": false,
	"https://a.example/%00": false, "https://a.example/?x=%00": false, "https://a.example/#%00": false, "https://a.example/?x=%2500": false,
	"https://a.example/?x=%2F&y=%E2%80%AEgnp": false, "https://a.example/?x=%0d%0aHost:b": false, "https://a.example/a%2Fb": false, "https://a.example/%5c": false,
	"https://[fe80::1%25eth0]/": false, "http://[::1%25eth0]/": false, "https://10.0.0.1/": false, "https://169.254.169.254/latest": false,
	"https://intranet/": false, "https://printer.local/": false, "https://2130706433/": false, "https://a.example:99999/": false, "http://localhost:0/": false,
	"http://localhost%00.evil.example/": false, "http://localhost%2eevil.example": false, "https://a%2eexample/": false, "https://user:p@a.example/": false,
	"did:web:a.example": false, "urn:isbn:9780306406157": false, "https://a.example/?x=" + strings.Repeat("a", 1100): false, "ftp://localhost/": false,
}

// TestElicitationURL: a person is asked to open an encrypted URL, or one of this machine,
// and no other, however the server asks.
func TestElicitationURL(t *testing.T) {
	t.Parallel()
	for address, want := range openable {
		params := `{"mode":"url","message":"m","elicitationId":"e","url":` + jsonQuote(address) + `}`
		for _, era := range []string{"legacy", "modern"} {
			r := newRig(t, func(c *Config) { c.Validation.Mode = policy.Off })
			if era == "legacy" {
				r.server.send(`{"jsonrpc":"2.0","id":"ask","method":"elicitation/create","params":` + params + `}`)
				select {
				case line := <-r.client.lines:
					if got := parse(t, line).text("params", "url"); !want || got != address {
						t.Errorf("%q arrived as %q", address, got)
					}
				case line := <-r.server.lines:
					if m := parse(t, line); want || m.text("error", "message") != errWithheld.text {
						t.Errorf("%q is refused: %s", address, line)
					}
				}
			} else {
				got := r.result(r.request("1", mcpmsg.CallTool, eras["modern"]), `{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":`+params+`}}}`)
				if is := got.text("result", "inputRequests", "a", "params", "url") == address && address != ""; is != want {
					t.Errorf("%q in a result: %t, want %t: %s", address, is, want, got["result"])
				}
			}
			id := r.request("2", mcpmsg.GetPrompt, `{"name":"p"}`)
			r.server.send(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32042,"message":"m","data":{"elicitations":[` + params + `]}}}`)
			for {
				m := parse(t, r.client.next())
				if m["error"] == nil {
					continue
				}
				if is := m.text("error", "data", "elicitations", 0, "url") == address && address != ""; is != want {
					t.Errorf("%q in an error: %t, want %t: %s", address, is, want, m["error"])
				}
				break
			}
		}
	}
}

// FuzzCheckLink: what a person may open goes over TLS or to this machine, whatever it says.
func FuzzCheckLink(f *testing.F) {
	for s := range openable {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if checkLink(s) != ok {
			return
		}
		lower := strings.ToLower(s)
		if !strings.HasPrefix(lower, "https://") && !strings.HasPrefix(lower, "http://localhost") && !strings.HasPrefix(lower, "http://127.") && !strings.HasPrefix(lower, "http://[") {
			t.Errorf("%q may be opened", s)
		}
	})
}
