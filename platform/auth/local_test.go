// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestLocal(t *testing.T) {
	loopback := []string(nil)
	named := []string{"Mcp.Example.", "mcp.example:8443", "[2001:db8::1]:443", "10.0.0.1"}
	origins := []string{"https://Console.example:443", "http://localhost:6274", "vscode-webview://abc", "http://[2001:DB8:0::1]"}
	none := "\x00" // no Origin header
	for _, tt := range []struct {
		name   string
		hosts  []string
		host   string
		origin string // values, separated by |
		want   int
	}{
		{"loopback name", loopback, "localhost", none, 200},
		{"loopback name, port", loopback, "localhost:7420", none, 200},
		{"loopback name, case and dot", loopback, "LocalHost.:7420", none, 200},
		{"loopback address", loopback, "127.0.0.1:7420", none, 200},
		{"other loopback address", loopback, "127.8.9.1", none, 200},
		{"loopback IPv6", loopback, "[::1]:7420", none, 200},
		{"loopback IPv6, long", loopback, "[0:0:0:0:0:0:0:1]", none, 200},
		{"loopback IPv4 in IPv6", loopback, "[::ffff:127.0.0.1]", none, 200},
		{"rebound name", loopback, "evil.example:7420", none, 403},
		{"name that begins alike", loopback, "localhost.evil.example", none, 403},
		{"name that ends alike", loopback, "evil-localhost", none, 403},
		{"below localhost", loopback, "a.localhost", none, 403},
		{"two dots", loopback, "localhost..", none, 403},
		{"no host", loopback, "", none, 403},
		{"user", loopback, "localhost@evil.example", none, 403},
		{"path", loopback, "localhost/evil", none, 403},
		{"space", loopback, "localhost ", none, 403},
		{"two hosts", loopback, "localhost,evil.example", none, 403},
		{"empty port", loopback, "localhost:", none, 403},
		{"port 0", loopback, "localhost:0", none, 403},
		{"signed port", loopback, "localhost:+80", none, 403},
		{"large port", loopback, "localhost:65536", none, 403},
		{"two ports", loopback, "localhost:80:80", none, 403},
		{"IPv6 bare", loopback, "::1", none, 403},
		{"IPv6 with a zone", loopback, "[::1%25lo]:80", none, 403},
		{"IPv6 not closed", loopback, "[::1", none, 403},
		{"IPv6 and more", loopback, "[::1]evil", none, 403},
		{"IPv4 in brackets", loopback, "[127.0.0.1]", none, 403},
		{"short IPv4", loopback, "127.1", none, 403},
		{"octal IPv4", loopback, "0177.0.0.1", none, 403},
		{"hexadecimal IPv4", loopback, "0x7f.0.0.1", none, 403},
		{"decimal IPv4", loopback, "2130706433", none, 403},
		{"every address", loopback, "0.0.0.0:7420", none, 403},
		{"IPv6 without a number", loopback, "[::]", none, 403},
		{"private address", loopback, "192.168.0.1", none, 403},
		{"Kelvin sign", []string{"kiosk.example"}, "\u212Aiosk.example", none, 403},
		{"long s", loopback, "localho\u017ft", none, 403},
		{"full stop of another kind", loopback, "localhost\u3002", none, 403},
		{"endless", loopback, strings.Repeat("a.", 500) + "localhost", none, 403},

		{"named", named, "mcp.example", none, 200},
		{"named, any port", named, "MCP.EXAMPLE.:81", none, 200},
		{"named IPv6", named, "[2001:DB8:0:0::1]:443", none, 200},
		{"named IPv6, other port", named, "[2001:db8::1]:444", none, 403},
		{"named IPv6, no port", named, "[2001:db8::1]", none, 403},
		{"named IPv4", named, "10.0.0.1:80", none, 200},
		{"named IPv4 in IPv6", named, "[::ffff:10.0.0.1]", none, 200},
		{"loopback is not named", named, "localhost", none, 403},
		{"only nonsense named", []string{"*", "a b", ""}, "localhost", none, 403},

		{"own origin", loopback, "localhost:7420", "http://localhost:7420", 200},
		{"own origin, TLS in front", loopback, "localhost:7420", "https://LOCALHOST:7420", 200},
		{"own origin, usual port", named, "mcp.example", "https://mcp.example:443", 200},
		{"own origin, usual port of http", named, "mcp.example:80", "http://mcp.example", 200},
		{"own origin, other port", loopback, "localhost:7420", "http://localhost:3000", 403},
		{"own origin, other name", loopback, "localhost:7420", "http://127.0.0.1:7420", 403},
		{"own origin, other scheme", loopback, "localhost:7420", "ftp://localhost:7420", 403},
		{"listed origin", loopback, "localhost:7420", "https://console.example", 200},
		{"listed origin, dot", loopback, "localhost:7420", "https://console.example.:443", 200},
		{"listed origin, other port", loopback, "localhost:7420", "https://console.example:444", 403},
		{"listed origin, other scheme", loopback, "localhost:7420", "http://console.example", 403},
		{"listed origin, other port of loopback", loopback, "localhost:7420", "http://localhost:6274", 200},
		{"listed origin, IPv6", loopback, "localhost:7420", "http://[2001:db8::1]:80", 200},
		{"listed origin of a program", loopback, "localhost:7420", "vscode-webview://abc", 200},
		{"foreign origin", loopback, "localhost:7420", "https://evil.example", 403},
		{"null", loopback, "localhost:7420", "null", 403},
		{"empty", loopback, "localhost:7420", "", 403},
		{"two headers", loopback, "localhost:7420", "http://localhost:7420|http://localhost:7420", 403},
		{"two values", loopback, "localhost:7420", "http://localhost:7420 http://localhost:7420", 403},
		{"two values, comma", loopback, "localhost:7420", "http://localhost:7420, https://evil.example", 403},
		{"origin with a path", loopback, "localhost:7420", "http://localhost:7420/", 403},
		{"origin with a user", loopback, "localhost:7420", "http://localhost:7420@evil.example", 403},
		{"origin below", loopback, "localhost:7420", "https://console.example.evil.example", 403},
		{"origin without a scheme", loopback, "localhost:7420", "localhost:7420", 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			passed := false
			h := Local(LocalOptions{Hosts: tt.hosts, Origins: origins}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed = true }))
			r := httptest.NewRequest("POST", "/", nil)
			r.Host = tt.host
			if tt.origin != none {
				r.Header["Origin"] = strings.Split(tt.origin, "|")
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tt.want || passed != (tt.want == 200) {
				t.Errorf("Host %+q, Origin %+q: %d, want %d", tt.host, tt.origin, w.Code, tt.want)
			}
			if strings.Contains(w.Body.String(), "evil") {
				t.Error("the answer repeats the request")
			}
		})
	}
}

func TestCheckLocal(t *testing.T) {
	if err := CheckLocal([]string{"localhost:7420", "[::1]", "mcp.example"}, []string{"http://localhost:6274", "app://x"}); err != nil {
		t.Error(err)
	}
	err := CheckLocal([]string{"*", "", "a:b", "http://a", "a\u202eb"}, []string{"null", "*", "a.example", "https://a/", "https://*.a"})
	if err == nil {
		t.Fatal("accepted")
	}
	if got := strings.Split(err.Error(), "\n"); len(got) != 10 || got[4] != `auth: not a host: "a\u202eb"` {
		t.Errorf("%d mistakes: %q", len(got), got)
	}
}

func FuzzAuthority(f *testing.F) {
	for _, s := range []string{"localhost:7420", "[::1]:80", "127.0.0.1", "a.example.", "0x7f.1", "[::ffff:1.2.3.4]", "a..b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, ok := parseAuthority(s)
		if !ok {
			return
		}
		if (a.name == "") == !a.addr.IsValid() {
			t.Errorf("parseAuthority(%+q) = %+v: want a name or an address", s, a)
		}
		if again, ok := parseAuthority(strings.ToUpper(s)); !ok || again != a {
			t.Errorf("case makes a difference: %+q", s)
		}
		if o, ok := parseOrigin("http://" + s); !ok || o.host.name != a.name || o.host.port == 0 {
			t.Errorf("no origin: %+q, %+v", s, o)
		}
	})
}

// TestLocalArrivedAt: the address at which a request arrived is an accepted host, by its own port
// and as an address only.
func TestLocalArrivedAt(t *testing.T) {
	at := &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 7420}
	for host, want := range map[string]int{
		"10.1.2.3:7420": 200, "[::ffff:10.1.2.3]:7420": 200, "mcp.example": 200,
		"10.1.2.3": 403, "10.1.2.3:80": 403, "10.1.2.4:7420": 403, "rebound.example:7420": 403, "": 403,
	} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Host = host
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at))
		w := httptest.NewRecorder()
		Local(LocalOptions{Hosts: []string{"mcp.example"}}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("host %q: status %d, want %d", host, w.Code, want)
		}
	}
}
