// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
)

// TestApp: a page that was approved with the surface is delivered; another page, other
// domains, and a page under another URI are answered as a held tool is.
func TestApp(t *testing.T) {
	t.Parallel()
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

// TestAppVerbatim: the page of an approved app passes byte for byte, whatever stands in it,
// and the record says that it was not inspected. What passes unapproved is cleaned as before,
// and so is everything beside the page.
func TestAppVerbatim(t *testing.T) {
	t.Parallel()
	const uri, page = "ui://map/app.html", `"<script>let z=\"\u200b<|im_start|>\\u202e\", data='data:text/html,x'\u003c/script>"`
	for _, field := range []string{"text", "blob"} {
		value := page
		if field == "blob" {
			value = `"PHA+4oCLPHxpbV9zdGFydHw+PC9wPg"` // base64 that no canonical encoder writes
		}
		result := `{"contents":[{"uri":"` + uri + `","mimeType":"text/html;profile=mcp-app","` + field + `":` + value + `,"_meta":{"note":"a\u200bb"}}]}`
		for _, pinned := range []bool{true, false} {
			a := newAllow(t, `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`, "")
			it := surface.AppItem(uri, doc(t, result))
			a.approved[it.Key] = it.Digest
			if pinned {
				a.own[it.Key] = it.JSON
			}
			r := admittedRig(t, a)
			r.server.send(`{"jsonrpc":"2.0","id":` + r.request("1", "resources/read", `{"uri":"`+uri+`"}`) + `,"result":` + result + `}`)
			line := r.client.next()
			got := parse(t, line)
			if strings.Contains(line, `"`+field+`":`+value) != pinned {
				t.Errorf("pinned %t: %s arrived in %+q", pinned, field, line)
			}
			if note := got.text("result", "contents", 0, "_meta", "note"); note != "ab" {
				t.Errorf("beside the page: %+q", note)
			}
			provenance := string(got.at("result", "_meta", "dev.pellucid/provenance", "not_inspected"))
			if strings.Contains(provenance, "contents/0/"+field) != pinned {
				t.Errorf("pinned %t: not inspected: %s", pinned, provenance)
			}
		}
	}
}
