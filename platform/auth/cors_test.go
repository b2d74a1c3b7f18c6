// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const page = "https://app.example"

// ofPage is a request of a browser for a page of that origin.
func ofPage(method, origin string, header ...string) *http.Request {
	r := httptest.NewRequest(method, "/mcp/a", nil)
	r.Host = "localhost:7420"
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

func TestPagesOfOrigins(t *testing.T) {
	unknown := Require(Any(), "", http.NotFoundHandler())
	for _, tt := range []struct {
		name    string
		origins []string
		r       *http.Request
		next    http.Handler
		want    int
		allow   string
		reads   bool
		vary    string
	}{
		{"page", []string{page}, ofPage("POST", page), http.NotFoundHandler(), 404, page, true, "Origin"},
		{"page, spelled otherwise", []string{"https://App.example:443"}, ofPage("POST", page), http.NotFoundHandler(), 404, page, true, "Origin"},
		{"page without a token", []string{page}, ofPage("POST", page), unknown, 401, page, true, "Origin"},
		{"other page", []string{page}, ofPage("POST", "https://evil.example"), http.NotFoundHandler(), 403, "", false, ""},
		{"sandboxed page", []string{page}, ofPage("POST", "null"), http.NotFoundHandler(), 403, "", false, ""},
		{"page of our own", []string{page}, ofPage("POST", "http://localhost:7420"), http.NotFoundHandler(), 404, "", false, "Origin"},
		{"program", []string{page}, ofPage("POST", ""), http.NotFoundHandler(), 404, "", false, "Origin"},
		{"no origins", nil, ofPage("POST", ""), http.NotFoundHandler(), 404, "", false, ""},
		{"preflight", []string{page}, ofPage("OPTIONS", page, "Access-Control-Request-Method", "POST"), unknown, 204, page, false, "Origin, Access-Control-Request-Headers"},
		{"preflight of another page", []string{page}, ofPage("OPTIONS", "https://evil.example", "Access-Control-Request-Method", "POST"), unknown, 403, "", false, ""},
		{"preflight of a sandboxed page", []string{page}, ofPage("OPTIONS", "null", "Access-Control-Request-Method", "POST"), unknown, 403, "", false, ""},
		{"preflight without origins", nil, ofPage("OPTIONS", page, "Access-Control-Request-Method", "POST"), unknown, 403, "", false, ""},
		{"OPTIONS of a page that is no preflight", []string{page}, ofPage("OPTIONS", page), unknown, 401, page, true, "Origin"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			Local(LocalOptions{Origins: tt.origins}, tt.next).ServeHTTP(w, tt.r)
			h := w.Header()
			if w.Code != tt.want || h.Get("Access-Control-Allow-Origin") != tt.allow || strings.Join(h["Vary"], ", ") != tt.vary {
				t.Errorf("%d %v", w.Code, h)
			}
			reads := h.Get("Access-Control-Expose-Headers")
			if (reads != "") != tt.reads || tt.reads && !(strings.Contains(reads, "Mcp-Session-Id") && strings.Contains(reads, "WWW-Authenticate")) {
				t.Errorf("the page may read %q", reads)
			}
			if h.Get("Access-Control-Allow-Credentials") != "" {
				t.Error("cookies are allowed")
			}
			if methods := h.Get("Access-Control-Allow-Methods"); (methods != "") != (tt.want == 204) {
				t.Errorf("methods %q", methods)
			}
		})
	}
}

func TestHeadersOfPages(t *testing.T) {
	for asked, want := range map[string]string{
		"":                                pageSends,
		"mcp-param-region,x-own":          pageSends + ", mcp-param-region, x-own",
		"a b, c\r\nset-cookie: x, \u00e4": pageSends,
		strings.Repeat("a", 5000):         pageSends,
	} {
		if got := allowedHeaders(asked); got != want {
			t.Errorf("%.40q: %q", asked, got)
		}
	}
	for _, name := range []string{"Authorization", "Content-Type", "Mcp-Session-Id", "Mcp-Protocol-Version", "Last-Event-ID"} {
		if !strings.Contains(pageSends, name) {
			t.Errorf("a page may not send %s", name)
		}
	}
}

// TestRefusalsAreLogged: the line names the setting, holds nothing raw, and comes once.
func TestRefusalsAreLogged(t *testing.T) {
	var log bytes.Buffer
	h := Local(LocalOptions{Log: slog.New(slog.NewTextHandler(&log, nil)), HostsSetting: "http.hosts", OriginsSetting: "http.origins"}, http.NotFoundHandler())
	serve := func(host, origin string) {
		r := ofPage("POST", origin)
		r.Host = host
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	for range 3 {
		serve("host.docker.internal:7420", "")
		serve("localhost", "http://evil.example\u202e"+strings.Repeat("x", 500))
	}
	got := log.String()
	if strings.Count(got, "\n") != 2 || strings.Count(got, "allow_with=http.hosts") != 1 || strings.Count(got, "allow_with=http.origins") != 1 ||
		!strings.Contains(got, "host.docker.internal:7420") || strings.Contains(got, "\u202e") || len(got) > 600 {
		t.Error(got)
	}
	for i := range 1000 {
		serve(fmt.Sprintf("h%d.example", i), "")
	}
	if n := strings.Count(log.String(), "\n"); n != refusalsLogged {
		t.Errorf("%d lines", n)
	}
}
