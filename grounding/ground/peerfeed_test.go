// SPDX-License-Identifier: Apache-2.0

package ground_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// TestPeerURL: what may be followed at all.
func TestPeerURL(t *testing.T) {
	for _, c := range []struct {
		url, token string
		ok         bool
	}{
		{"https://peer.example/ground/feed", "", true},
		{"https://peer.example:8443/feed", "abc.DEF-123~+/=", true},
		{"http://127.0.0.1:7420/ground/feed", "", true},
		{"http://[::1]/ground/feed", "", true},
		{"http://localhost/ground/feed", "", true},
		{"http://peer.example/ground/feed", "", false},
		{"http://127.0.0.1.example/", "", false},
		{"http://10.0.0.1/", "", false},
		{"https:///ground/feed", "", false},
		{"https://user:secret@peer.example/", "", false},
		{"https://peer.example/?token=secret", "", false},
		{"https://peer.example/?", "", false},
		{"https://peer.example/#x", "", false},
		{"ftp://peer.example/", "", false},
		{"peer.example/ground/feed", "", false},
		{"https://peer.example\x7f/", "", false},
		{"", "", false},
		{"https://peer.example/", "a b", false},
		{"https://peer.example/", "a\r\nX: y", false},
		{"https://peer.example/", "\u00e9", false},
	} {
		err := ground.CheckPeer(ground.Peer{URL: c.url, Token: c.token})
		if (err == nil) != c.ok {
			t.Errorf("%+q: %v", c.url, err)
		}
		if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "example")) {
			t.Errorf("%v tells what it should not", err)
		}
	}
	a := newAdapter(t, ground.Options{})
	if err := a.Follow(t.Context(), ground.Peer{URL: "http://peer.example/"}, nil); err == nil {
		t.Error("followed over http")
	}
	stop := follow(t, a, ground.Peer{URL: "http://127.0.0.1:1/feed"}, nil)
	defer stop()
	waittest.Until(t, "it fails", func() bool { return only(t, a).Failing })
	if err := a.Follow(t.Context(), ground.Peer{URL: "http://127.0.0.1:1/feed"}, nil); err == nil {
		t.Error("followed twice")
	}
}

// feedOf writes lines as a feed has them.
func feedOf(lines ...string) string { return strings.Join(lines, "\n") + "\n" }

// line is an entry with a body that nobody accepts.
func line(cursor int) string {
	return fmt.Sprintf(`{"cursor":"%d","kind":"attestation","hash":"sha256:%064d","original":"{}"}`, cursor, 0)
}

// TestHostilePeer: whatever a peer answers, what came before it is kept, nothing
// else is, and no more of it is read than there is room for.
func TestHostilePeer(t *testing.T) {
	huge := bytes.Repeat([]byte{'x'}, 1<<20)
	endless := func(w http.ResponseWriter, b []byte) {
		for {
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	}
	answer := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, s) }
	}
	many := make([]string, ground.PeerEntries+1)
	for i := range many {
		many[i] = line(i + 101)
	}
	long := `{"cursor":"101","kind":"attestation","hash":"sha256:` + strings.Repeat("0", 64) + `","original":"` + strings.Repeat("x", 1<<20) + `"}`
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		n      int // entries that are good
		err    string
	}{
		{"nothing", answer(""), 0, "without a last line"},
		{"a page", answer("<html>Please log in</html>"), 0, "without a last line"},
		{"a page of lines", answer("<html>\nPlease log in\n"), 0, "malformed"},
		{"torn", answer(line(101) + "\n" + line(102) + "\n" + line(103)), 2, "without a last line"},
		{"an empty line", answer(feedOf(line(101), "", `{"cursor":"101","kind":"end"}`)), 1, "malformed"},
		{"cursor goes back", answer(feedOf(line(102), line(101))), 1, "come after"},
		{"cursor stands", answer(feedOf(line(101), line(101))), 1, "come after"},
		{"cursor of before", answer(feedOf(line(100))), 0, "come after"},
		{"another last cursor", answer(feedOf(line(101), `{"cursor":"102","kind":"end"}`)), 1, "come after"},
		{"nothing, and more of it", answer(feedOf(`{"cursor":"100","kind":"more"}`)), 0, "brings nothing"},
		{"huge cursor", answer(feedOf(`{"cursor":"9223372036854775808","kind":"end"}`)), 0, "malformed"},
		{"negative cursor", answer(feedOf(`{"cursor":"-1","kind":"end"}`)), 0, "malformed"},
		{"number for a cursor", answer(feedOf(`{"cursor":100,"kind":"end"}`)), 0, "malformed"},
		{"huge number", answer(feedOf(`{"cursor":1e999999999,"kind":"end"}`)), 0, "malformed"},
		{"two cursors", answer(feedOf(`{"cursor":"100","cursor":"101","kind":"end"}`)), 0, "malformed"},
		{"more members", answer(feedOf(`{"cursor":"100","kind":"end","note":"hello"}`)), 0, "malformed"},
		{"another kind", answer(feedOf(strings.Replace(line(101), "attestation", "gift", 1))), 0, "malformed"},
		{"no hash", answer(feedOf(strings.Replace(line(101), "sha256:", "md5:", 1))), 0, "malformed"},
		{"original is an object", answer(feedOf(strings.Replace(line(101), `"{}"`, `{}`, 1))), 0, "malformed"},
		{"ill-formed", answer(feedOf(strings.Replace(line(101), `{}`, "\xff", 1))), 0, "malformed"},
		{"too many lines", answer(feedOf(many...)), ground.PeerEntries, "more lines"},
		{"endless line", func(w http.ResponseWriter, _ *http.Request) { endless(w, huge) }, 0, "too long"},
		{"endless empty lines", func(w http.ResponseWriter, _ *http.Request) { endless(w, []byte{'\n'}) }, 0, "malformed"},
		{"endless lines", func(w http.ResponseWriter, _ *http.Request) {
			for i := 101; ; i++ {
				if _, err := io.WriteString(w, strings.Replace(long, `"101"`, fmt.Sprintf(`"%d"`, i), 1)+"\n"); err != nil {
					return
				}
			}
		}, ground.PeerBytes >> 20, ""}, // enough for now
		{"gzip bomb", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 64 {
				z.Write(bytes.Repeat([]byte{' '}, 1<<20))
			}
			z.Close()
		}, 0, "encoded"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) }, 0, "status 302"},
		{"forbidden", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, 0, "status 403"},
		{"no content", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, 0, "status 204"},
		{"endless header", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", string(huge)) }, 0, "header"},
		{"hangs up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, "EOF"},
		{"hangs up in a line", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, line(101)+"\n"+`{"cursor`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, 1, "without a last line"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(c.answer)
			defer s.Close()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			n, err := ground.Fetch(t.Context(), ground.Peer{URL: s.URL}, 100)
			runtime.ReadMemStats(&after)
			if n != c.n || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%d entries, %v; want %d, %q", n, err, c.n, c.err)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > 8*(ground.PeerBytes+ground.PeerLine) {
				t.Errorf("%d MiB allocated", got>>20)
			}
		})
	}
}

// TestPeerToken: the token goes to the peer and nowhere else.
func TestPeerToken(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	var got, cookie string
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, cookie = r.Header.Get("Authorization"), r.Header.Get("Cookie")
		http.SetCookie(w, &http.Cookie{Name: "id", Value: "1"})
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer peer.Close()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
	defer client.CloseIdleConnections()
	for _, c := range []*http.Client{nil, client} {
		if _, err := ground.Fetch(t.Context(), ground.Peer{URL: peer.URL, Token: "s3cret", Client: c}, 0); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("redirected: %v", err)
		}
	}
	if got != "Bearer s3cret" || cookie != "" || elsewhere.Load() != 0 {
		t.Errorf("Authorization %q, cookie %q, %d requests elsewhere", got, cookie, elsewhere.Load())
	}
}

// TestSlowPeer: a peer that dribbles is left, however it does it.
func TestSlowPeer(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(w io.Writer, flush func(), pause func(time.Duration) bool)
		n      int
		most   time.Duration
	}{
		{"no header", func(_ io.Writer, _ func(), pause func(time.Duration) bool) { pause(time.Hour) }, 0, ground.PeerStall},
		{"a byte at a time", func(w io.Writer, flush func(), pause func(time.Duration) bool) {
			for pause(time.Second) {
				io.WriteString(w, " ")
				flush()
			}
		}, 0, ground.PeerStall},
		{"a line at a time", func(w io.Writer, flush func(), pause func(time.Duration) bool) {
			for i := 1; pause(20 * time.Second); i++ {
				io.WriteString(w, line(i)+"\n")
				flush()
			}
		}, int(ground.PeerAnswer/(20*time.Second)) - 1, ground.PeerAnswer},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, stop := serveOnPipe(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					c.answer(w, w.(http.Flusher).Flush, func(d time.Duration) bool {
						select {
						case <-time.After(d):
							return true
						case <-r.Context().Done():
							return false
						}
					})
				}))
				defer stop()
				began := time.Now()
				n, err := ground.Fetch(t.Context(), ground.Peer{URL: "http://localhost/", Client: client}, 0)
				if took := time.Since(began); took != c.most {
					t.Errorf("left after %v, want %v", took, c.most)
				}
				if n < c.n || n > c.n+1 || err == nil || !strings.Contains(err.Error(), "too long") {
					t.Errorf("%d entries, %v", n, err)
				}
			})
		})
	}
}
