// SPDX-License-Identifier: Apache-2.0

package review

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

var filterNow = time.Date(2026, 4, 25, 12, 0, 0, 0, time.UTC)

func TestFilter(t *testing.T) {
	for text, want := range map[string]hold.Filter{
		"":                                      {},
		"server:mail code:hidden-tag since:24h": {Server: "mail", Code: finding.HiddenTag, Since: filterNow.Add(-24 * time.Hour)},
		`principal:"Ann \"Lee\"" text:key`:      {Principal: `Ann "Lee"`, Text: "key"},
		"found:hidden-tag tool:a,b rule:policy:x until:2026-04-25T11:00:00Z": {Found: finding.HiddenTag, Tool: "a,b", Rule: "policy:x",
			AsOf: filterNow.Add(-time.Hour - 1)},
		strings.Repeat("a", 32) + " without:tool,principal": {ID: strings.Repeat("a", 32), NoTool: true, NoPrincipal: true},
		strings.Repeat("ab", 32):                            {Digest: hold.Digest([]byte(strings.Repeat("\xab", 32)))},
	} {
		if got, err := Filter(text, filterNow); err != nil {
			t.Errorf("%q: %v", text, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	for text, want := range map[string]string{
		"server:":           "review: server: a value is missing",
		"server:a server:b": "stands twice",
		"verdict:passed":    "review: verdict: no such term: items of the queue have states",
		"sever:mail":        "review: sever: no such term: want one of server, ",
		"without:server":    "want tool, principal",
		"id:00":             "32 hexadecimal digits",
		"code:no-such-code": "is not the code of a finding",
		"digest:00":         "64 hexadecimal digits",
		"since:tomorrow":    "review: since: want a time",
		"mail":              "is not a term",
		"text:\u202e" + strings.Repeat("x", 5000): "too long",
	} {
		if _, err := Filter(text, filterNow); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

func FuzzFilter(f *testing.F) {
	f.Add("server:mail code:hidden-tag since:24h")
	f.Add(`principal:"Ann \"Lee\\" text:a\b found:hidden-tag`)
	f.Add(strings.Repeat("ab", 32))
	f.Add(strings.Repeat("ab", 16) + " without:principal,tool")
	f.Fuzz(func(t *testing.T, text string) {
		one, err := Filter(text, filterNow)
		if err != nil {
			if len(err.Error()) > 1000 {
				t.Fatalf("the error has %d bytes", len(err.Error()))
			}
			return
		}
		one.AsOf = time.Time{}
		if written := FilterText(&one); len(written) <= 4096 {
			again, err := Filter(written, filterNow.Add(48*time.Hour))
			if diff := cmp.Diff(one, again); err != nil || diff != "" {
				t.Fatalf("%q is written as %q: %v %s", text, written, err, diff)
			}
		}
	})
}
