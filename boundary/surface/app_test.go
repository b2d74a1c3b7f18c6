// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// appServer answers as a server with one app, whose page and domains are given.
func appServer(page, domain string) script {
	return func(method, _ string) string {
		switch method {
		case "initialize":
			return `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"s","version":"1"}}`
		case "tools/list":
			return `{"tools":[{"name":"map","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://map/app.html"}}},` +
				`{"name":"old","inputSchema":{"type":"object"},"_meta":{"ui/resourceUri":"ui://gone/app.html"}}]}`
		case "resources/read":
			if page == "" {
				return "-32002"
			}
			return `{"contents":[{"uri":"ui://map/app.html","mimeType":"text/html;profile=mcp-app","text":"` + page + `",` +
				`"_meta":{"ui":{"csp":{"connectDomains":["` + domain + `"]},"permissions":{"camera":{}}}}}]}`
		}
		return "-32601"
	}
}

func collectApp(t *testing.T, page, domain string) *Surface {
	t.Helper()
	s, err := Collect(context.Background(), serve(t, appServer(page, domain)), CollectOptions{Legacy: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestApps: the page of an app and its domains are part of the surface, and the page
// itself is in none of it.
func TestApps(t *testing.T) {
	key := Key{App, "ui://map/app.html"}
	s := collectApp(t, "<p>one</p>", "https://a.example")
	it, ok := s.Item(key)
	if !ok || !strings.Contains(string(it.JSON), "https://a.example") || !strings.Contains(string(it.JSON), `"sha256":"`) ||
		!strings.Contains(string(it.JSON), `"camera"`) || strings.Contains(string(it.JSON), "<p>") {
		t.Fatalf("app %s", it.JSON)
	}
	for name, other := range map[string]*Surface{
		"page":   collectApp(t, "<p>two</p>", "https://a.example"),
		"domain": collectApp(t, "<p>one</p>", "https://b.example"),
		"unread": collectApp(t, "", ""),
	} {
		if o, ok := other.Item(key); !ok || o.Digest == it.Digest || other.Fingerprint() == s.Fingerprint() {
			t.Errorf("another %s makes no difference: %s", name, o.JSON)
		}
	}
	if same := collectApp(t, "<p>one</p>", "https://a.example"); same.Fingerprint() != s.Fingerprint() {
		t.Error("the same app differs")
	}
	dump := s.AppendDump(nil)
	again, err := ParseDump(dump, Limits{})
	if err != nil || again.Fingerprint() != s.Fingerprint() || !bytes.Equal(again.AppendDump(nil), dump) {
		t.Errorf("dump: %v %s", err, dump)
	}
}

// TestAppHeld: of a server with a pin, a changed page is held, and only that.
func TestAppHeld(t *testing.T) {
	g := newGate()
	if o, err := g.Check(context.Background(), "s", "stdio", collectApp(t, "<p>one</p>", "https://a.example")); err != nil || o.Conclusion != Clean {
		t.Fatal(o, err)
	}
	o, err := g.Check(context.Background(), "s", "stdio", collectApp(t, "<p>one</p>", "https://evil.example"))
	if err != nil || o.Conclusion != Differs {
		t.Fatal(o, err)
	}
	if o.live(Key{App, "ui://map/app.html"}) || !o.live(Key{Tool, "map"}) {
		t.Error("the changed app is live, or more than it is held")
	}
}

// TestAppsOnlyToCapable: a server that offers an app, and another description of a tool, only
// to clients with the extension is read in full; a client without it is held back from
// nothing, and only what is described twice waits for a client that has it.
func TestAppsOnlyToCapable(t *testing.T) {
	collect := func(opt CollectOptions) *Surface {
		t.Helper()
		capable := strings.Contains((&talk{opt: opt}).capabilities(), "io.modelcontextprotocol/ui")
		s, err := Collect(context.Background(), serve(t, func(method, _ string) string {
			switch {
			case method == "initialize":
				return hello
			case method == "tools/list" && capable:
				return tools(tool("both", "Same."), `{"name":"twice","description":"With an app.","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://a"}}}`, tool("more", "Only there."))
			case method == "tools/list":
				return tools(tool("both", "Same."), tool("twice", "Plain."))
			case method == "resources/read":
				return `{"contents":[{"uri":"ui://a","mimeType":"text/html;profile=mcp-app","text":"<p>"}]}`
			}
			return noMethod
		}), opt)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	able, plain, bare := collect(CollectOptions{Legacy: true}), collect(CollectOptions{Legacy: true, withoutApps: true}), collect(CollectOptions{Legacy: true, Bare: true})
	if !able.hasApps() || plain.hasApps() {
		t.Fatal("the capability is not declared")
	}
	merged := plain.offeredMore(able)
	g := newGate()
	g.Bare = func(context.Context) (*Surface, error) { return bare, nil }
	if o, err := g.Check(context.Background(), "s", "stdio", merged); err != nil || o.Conclusion != Clean || !o.Pinned {
		t.Fatal(o, err)
	}
	for _, s := range []*Surface{plain, bare, merged} {
		if o, err := g.Check(context.Background(), "s", "stdio", s); err != nil || o.Conclusion != Clean {
			t.Errorf("a client without the extension: %+v, %v", o.Conclusion, err)
		}
	}
	o, err := g.Check(context.Background(), "s", "stdio", able)
	if err != nil || !o.live(Key{App, "ui://a"}) || !o.live(Key{Tool, "more"}) || !o.live(Key{Tool, "both"}) || o.live(Key{Tool, "twice"}) {
		t.Errorf("a client with the extension: %v %v", o.Admission.Held(), err)
	}
	hidden := plain.offeredMore(surfaceOf(t, tool("x", "a\u200bb")))
	if hidden.Inspect(Rules{}).Err() == nil {
		t.Error("what only capable clients are offered is not inspected")
	}
}
