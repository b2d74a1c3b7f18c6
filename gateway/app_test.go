package gateway

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/surface"
)

// TestApp: a page that was approved with the surface is delivered; another page, other
// domains, and a page under another URI are answered as a held tool is.
func TestApp(t *testing.T) {
	const page = `{"contents":[{"uri":"ui://map/app.html","mimeType":"text/html;profile=mcp-app","text":"<p>one</p>","_meta":{"ui":{"csp":{"connectDomains":["https://a.example"]}}}}]}`
	for _, c := range []struct{ name, uri, result string }{
		{"approved", "ui://map/app.html", page},
		{"another page", "ui://map/app.html", strings.Replace(page, "one", "two", 1)},
		{"another domain", "ui://map/app.html", strings.Replace(page, "a.example", "b.example", 1)},
		{"a page more", "ui://map/app.html", strings.Replace(page, "]}", `,{"uri":"ui://b","text":"x"}]}`, 1)},
		{"another app", "ui://map/b.html", page},
		{"an app in another's place", "file:///readme", page},
		{"upper case", "UI://map/app.html", page},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAllow(t, `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`, "")
			it := surface.AppItem("ui://map/app.html", doc(t, page))
			a.approved[it.Key] = it.Digest
			r := admittedRig(t, a)
			got := r.result(r.request("1", "resources/read", `{"uri":"`+c.uri+`"}`), c.result)
			delivered := strings.Contains(string(got["result"]), "one")
			if delivered != (c.name == "approved") {
				t.Errorf("delivered %t: %s %s", delivered, got["result"], got["error"])
			}
			if !delivered && got.text("error", "message") != errUnapproved.text {
				t.Errorf("answer %s", got["error"])
			}
		})
	}
}
