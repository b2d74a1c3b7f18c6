// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func proxies(t testing.TB, list ...string) (out Proxies) {
	t.Helper()
	for _, s := range list {
		p, ok := ParseProxy(s)
		if !ok {
			t.Fatalf("%q is refused", s)
		}
		out = append(out, p)
	}
	return out
}

// TestClientAddr: only a trusted peer is believed, from the end of the list on, and what the client wrote itself counts for nothing.
func TestClientAddr(t *testing.T) {
	p := proxies(t, "10.0.0.0/8", "192.0.2.1", "fd00::/8")
	for name, tt := range map[string]struct{ peer, header, value, want string }{
		"no proxy":                {"198.51.100.7:1", "X-Forwarded-For", "203.0.113.9", "198.51.100.7"},
		"no header":               {"10.1.2.3:1", "", "", "10.1.2.3"},
		"one":                     {"10.1.2.3:1", "X-Forwarded-For", "203.0.113.9", "203.0.113.9"},
		"one address as a proxy":  {"192.0.2.1:1", "X-Forwarded-For", "203.0.113.9", "203.0.113.9"},
		"beside it":               {"192.0.2.2:1", "X-Forwarded-For", "203.0.113.9", "192.0.2.2"},
		"forged in front":         {"10.1.2.3:1", "X-Forwarded-For", "1.1.1.1, 203.0.113.9", "203.0.113.9"},
		"two proxies":             {"10.1.2.3:1", "X-Forwarded-For", "1.1.1.1,203.0.113.9 , 10.9.9.9", "203.0.113.9"},
		"all are proxies":         {"10.1.2.3:1", "X-Forwarded-For", "10.0.0.5, 10.9.9.9", "10.0.0.5"},
		"with a port":             {"10.1.2.3:1", "X-Forwarded-For", "203.0.113.9:4711", "203.0.113.9"},
		"IPv6":                    {"[fd00::1]:1", "X-Forwarded-For", "2001:db8::1", "2001:db8::1"},
		"IPv6 in brackets":        {"10.1.2.3:1", "X-Forwarded-For", "[2001:db8::1]:443", "2001:db8::1"},
		"IPv4 as IPv6":            {"[::ffff:10.1.2.3]:1", "X-Forwarded-For", "::ffff:203.0.113.9", "203.0.113.9"},
		"a name":                  {"10.1.2.3:1", "X-Forwarded-For", "203.0.113.9, unknown", "10.1.2.3"},
		"nothing":                 {"10.1.2.3:1", "X-Forwarded-For", "203.0.113.9,", "10.1.2.3"},
		"Forwarded":               {"10.1.2.3:1", "Forwarded", `for=1.1.1.1, For="203.0.113.9";proto=https;by=10.1.2.3`, "203.0.113.9"},
		"Forwarded, IPv6":         {"10.1.2.3:1", "Forwarded", `for="[2001:db8::1]:4711"`, "2001:db8::1"},
		"Forwarded, quoted comma": {"10.1.2.3:1", "Forwarded", `for="1.1.1.1, for=2.2.2.2";host="a,for=3.3.3.3", for=203.0.113.9`, "203.0.113.9"},
		"Forwarded, open quote":   {"10.1.2.3:1", "Forwarded", `for=203.0.113.9, for="1.1.1.1`, "10.1.2.3"},
		"Forwarded, hidden":       {"10.1.2.3:1", "Forwarded", `for=_secret`, "10.1.2.3"},
		"a socket":                {"@", "X-Forwarded-For", "203.0.113.9", "invalid IP"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		if r.RemoteAddr = tt.peer; tt.header != "" {
			r.Header.Set(tt.header, tt.value)
		}
		if got := p.ClientAddr(r).Unmap().String(); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr, r.Header = "10.1.2.3:1", http.Header{"X-Forwarded-For": {"1.1.1.1", "203.0.113.9"}}
	if got := p.ClientAddr(r).String(); got != "203.0.113.9" {
		t.Errorf("two headers: %s", got)
	}
	r.Header.Set("Forwarded", "for=1.1.1.1")
	if got := p.ClientAddr(r).String(); got != "10.1.2.3" {
		t.Errorf("both headers: %s", got)
	}
	r.Header = http.Header{"X-Forwarded-For": {"203.0.113.9, " + strings.Repeat("10.0.0.1,", 100_000) + "10.0.0.2"}}
	if got := p.ClientAddr(r).String(); got != "10.0.0.1" {
		t.Errorf("a long list: %s", got)
	}
	if got := Proxies(nil).ClientAddr(r).String(); got != "10.1.2.3" {
		t.Errorf("no proxy is trusted: %s", got)
	}
	for _, s := range []string{"", "0.0.0.0/0", "::/0", "10.0.0.1/8", "10.0.0.0/33", "proxy.example", "10.0.0.0/8 ", "fe80::1%eth0", "::ffff:10.0.0.0/104"} {
		if got, ok := ParseProxy(s); ok {
			t.Errorf("%q is taken as %v", s, got)
		}
	}
}

// TestLimitBehindProxy: clients behind a trusted proxy have an allowance each; of a peer that only says so, one.
func TestLimitBehindProxy(t *testing.T) {
	for peer, want := range map[string]int{"10.1.2.3:1": 200, "198.51.100.7:1": 429} {
		h := mustLimit(t, Limits{Rate: 1e-6, Burst: 1, Proxies: proxies(t, "10.0.0.0/8")}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for i, client := range []string{"203.0.113.1", "203.0.113.2"} {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = peer
			r.Header.Set("X-Forwarded-For", client)
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); i == 1 && w.Code != want {
				t.Errorf("%s: %d, want %d", peer, w.Code, want)
			}
		}
	}
}

// FuzzClientAddr: any headers give an address that is the peer's, or is written in them, and a forged beginning changes nothing.
func FuzzClientAddr(f *testing.F) {
	for _, s := range []string{"203.0.113.9", `for="[2001:db8::1]:4711";by=x`, `for="1.1.1.1`, ",,,", "10.0.0.1, 10.0.0.2", "\\\"", "[]:1"} {
		f.Add(s, s)
	}
	p := proxies(f, "10.0.0.0/8")
	f.Fuzz(func(t *testing.T, list, forwarded string) {
		for name, value := range map[string]string{"X-Forwarded-For": list, "Forwarded": forwarded} {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = "10.1.2.3:1"
			r.Header[name] = []string{value}
			got := p.ClientAddr(r)
			if !got.IsValid() {
				t.Fatalf("%q: no address", value)
			}
			end := map[string]string{"X-Forwarded-For": ", 203.0.113.9", "Forwarded": `, for=203.0.113.9`}[name]
			r.Header[name] = []string{value + end}
			if got := p.ClientAddr(r); got != netip.MustParseAddr("203.0.113.9") && !strings.Contains(value, `"`) && !strings.Contains(value, `\`) {
				t.Fatalf("%q: %v is not what the proxy wrote", value, got)
			}
			r.RemoteAddr = "198.51.100.7:1"
			if got := p.ClientAddr(r); got != netip.MustParseAddr("198.51.100.7") {
				t.Fatalf("%q: %v of a peer that is no proxy", value, got)
			}
		}
	})
}
