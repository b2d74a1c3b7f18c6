// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// TestHTTPRedirects: a redirect that keeps method and body is followed within the origin, a few times; the
// log names the target of others.
func TestHTTPRedirects(t *testing.T) {
	t.Parallel()
	var stolen atomic.Int64
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
	t.Cleanup(thief.Close) // after the subtests, which run in parallel
	for name, tc := range map[string]struct {
		status   int
		to       string // HOST is the server
		followed bool
		names    string
	}{
		"307":                    {307, "/mcp/", true, ""},
		"308":                    {308, "/mcp/", true, ""},
		"308, absolute":          {308, "http://HOST/mcp/", true, ""},
		"308, relative":          {308, "mcp/#x", true, ""},
		"301":                    {301, "/mcp/", false, "/mcp/"},
		"302":                    {302, "/mcp/", false, "/mcp/"},
		"303":                    {303, "/mcp/?key=secret", false, "/mcp/"},
		"307 without a place":    {307, "", false, "does not name"},
		"307 to https":           {307, "https://HOST/mcp/", false, "https://"},
		"308 elsewhere":          {308, thief.URL + "/mcp", false, thief.URL},
		"308 with a user":        {308, "http://u:secret@HOST/mcp/", false, "/mcp/"},
		"308 to itself":          {308, "/mcp", false, "/mcp"},
		"308 that is no URL":     {308, "http://%zz\u202e", false, "does not name"},
		"308 with hostile words": {308, "/mcp/\u202eIGNORE", false, "%E2%80%AE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			c, ns := upstream(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/mcp/" && r.Method == http.MethodPost {
					b, _ := io.ReadAll(r.Body)
					id := "1"
					if strings.Contains(string(b), `"id":2`) {
						id = "2"
					}
					if r.Header.Get("Authorization") != "Bearer x" || len(b) == 0 {
						t.Errorf("%v, body %q", r.Header, b)
					}
					body("application/json", `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`)(w, r)
					return
				}
				asked.Add(1)
				w.Header().Set("Location", strings.ReplaceAll(tc.to, "HOST", r.Host))
				w.WriteHeader(tc.status)
			}, HTTPOptions{Header: http.Header{"Authorization": {"Bearer x"}}})
			for n := range int64(2) {
				send(t, c, request(1+n, "tools/call"))
				m := receive(t, c)
				code, _ := m.Error.Get("code").Int64()
				switch {
				case tc.followed && m.Kind != Response:
					t.Errorf("%s, %s", m.Append(nil), ns)
				case !tc.followed && (code != codeStatus || !strings.Contains(m.Cause.Error(), tc.names) || strings.Contains(m.Cause.Error(), "secret")):
					t.Errorf("%s, %+q", m.Append(nil), m.Cause)
				case !tc.followed && strings.ContainsAny(strings.TrimSuffix(m.Error.Get("message").Text(), "/mcp/"), "/\u202e"):
					t.Errorf("the client reads %s", m.Append(nil))
				}
			}
			if n := asked.Load(); tc.followed && n != 1 || n > 8 {
				t.Errorf("asked %d times", n)
			}
		})
	}
	t.Cleanup(func() {
		if stolen.Load() > 0 {
			t.Error("another origin was asked")
		}
	})
}

// TestHTTPAsksToWait: the client learns when a server asks to retry later, and the handshake waits.
func TestHTTPAsksToWait(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		method, after string
		status        int
		works         bool
		text          string
	}{
		"handshake":              {methodInitialize, "1", 503, true, ""},
		"handshake, too many":    {"tools/list", "1", 429, true, ""},
		"handshake, too long":    {methodInitialize, "3600", 503, false, "HTTP status 503, ask again in 3600 s"},
		"handshake, for ever":    {methodInitialize, "99999999999999999999", 429, false, "HTTP status 429, ask again in 86400 s"},
		"handshake, not a time":  {methodInitialize, "soon", 502, false, "HTTP status 502"},
		"a call is told at once": {"tools/call", "1", 503, false, "HTTP status 503, ask again in 1 s"},
		"another status":         {methodInitialize, "1", 500, false, "HTTP status 500"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			c, _ := upstream(t, func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) == 1 {
					status(tc.status, "Retry-After", tc.after)(w, r)
					return
				}
				body("application/json", `{"jsonrpc":"2.0","id":1,"result":{}}`)(w, r)
			}, HTTPOptions{})
			began := time.Now()
			send(t, c, request(1, tc.method))
			m := receive(t, c)
			if (m.Kind == Response) != tc.works || !tc.works && !strings.HasSuffix(m.Error.Get("message").Text(), tc.text) {
				t.Errorf("%s", m.Append(nil))
			}
			if tc.works && time.Since(began) < time.Second {
				t.Error("it did not wait")
			}
		})
	}
}

// TestHTTPConnectionEnds: a request that is lost with a connection that rested is sent once more if
// that changes nothing, and otherwise not.
func TestHTTPConnectionEnds(t *testing.T) {
	t.Parallel()
	for method, again := range map[string]bool{"tools/list": true, "resources/read": true, "tools/call": false} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			c, _ := upstream(t, func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) == 2 {
					raw(func(io.Writer) {})(w, r)
					return
				}
				b, _ := io.ReadAll(r.Body)
				id := "1"
				if strings.Contains(string(b), `"id":2`) {
					id = "2"
				}
				body("application/json", `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`)(w, r)
			}, HTTPOptions{})
			send(t, c, request(1, "ping"))
			receive(t, c).Release()
			send(t, c, request(2, method))
			m := receive(t, c)
			code, _ := m.Error.Get("code").Int64()
			if again != (m.Kind == Response) || !again && code != codeCut {
				t.Errorf("%s", m.Append(nil))
			}
			if n := asked.Load(); again && n != 3 || !again && n != 2 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// TestPoolNoReuse: connections of a server that closes them without announcing it are not used twice.
func TestPoolNoReuse(t *testing.T) {
	t.Parallel()
	lost := 0
	c, _ := upstream(t, raw(func(w io.Writer) {
		text := `{"jsonrpc":"2.0","id":1,"result":{}}`
		io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 36\r\n\r\n"+text)
	}), HTTPOptions{})
	send(t, c, request(1, "ping"))
	receive(t, c).Release()
	pool := c.(*pulled).Conn.(*HTTP).opt.Pool
	waittest.Until(t, "the end of the connection is noticed", func() bool { return pool.noReuseUntil.Load() != 0 })
	for range 20 {
		send(t, c, request(1, "tools/call"))
		if m := receive(t, c); m.Kind != Response {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of 20 calls lost", lost)
	}
}
