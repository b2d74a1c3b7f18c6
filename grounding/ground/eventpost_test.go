// SPDX-License-Identifier: Apache-2.0

package ground_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/ground"
)

// TestPostEvent: an adapter's receipt comes back as the adapter itself gives it.
func TestPostEvent(t *testing.T) {
	issuer := validator(t, "issuer")
	a := newAdapter(t, ground.Options{Now: testClock, Issuers: []string{issuer.DID()}})
	url := serveHTTP(t, a, ground.HTTPOptions{Auth: everybody{}}) + "/ground/events"
	hash := ingest(t, a, sayings(1)...)[0].Hash
	for _, c := range []struct {
		name, by, token string
		code, says      string
	}{
		{"accepted", "issuer", ground.ScopeEvents, "", "RETRACTED sha256:"},
		{"not believed", "stranger", ground.ScopeEvents, ground.CodeNotBelieved, "issuer-not-believed at \"/issuer_did\"\n"},
	} {
		body := event(t, ground.Retract, hash, c.by, testTime.Add(-time.Minute))
		r, err := ground.PostCascade(t.Context(), url, c.token, body)
		if err != nil || r.Accepted != (c.code == "") || r.Code != c.code {
			t.Errorf("%s: %+v, %v", c.name, r, err)
		}
		var out strings.Builder
		if err := r.WriteText(&out, ground.Retract); err != nil || !strings.HasPrefix(out.String(), c.says) {
			t.Errorf("%s: says %q, %v", c.name, out.String(), err)
		}
		if c.code == "" && !strings.HasSuffix(out.String(), "\n1 retracted, 0 withheld for what they depend on, 0 stand again\n") {
			t.Errorf("%s: says %q", c.name, out.String())
		}
	}
	for _, token := range []string{"", ground.ScopeQuery} {
		if r, err := ground.PostCascade(t.Context(), url, token, []byte("{}")); err == nil || r.Accepted {
			t.Errorf("with the token %q: %+v, %v", token, r, err)
		}
	}
}

// TestPostEventHostile: a reply that is no receipt is an error without a word of it, and a
// redirect is not followed. What a receipt says is escaped for a terminal.
func TestPostEventHostile(t *testing.T) {
	const poison = "\x1b[2Jx\u202e"
	followed := false
	mux := http.NewServeMux()
	for path, reply := range map[string]string{
		"/empty": "", "/lines": "accepted\n", "/other": `{"status":"ok"}`, "/cut": `{"accepted":true`,
		"/long": strings.Repeat(" ", 64<<10) + `{"accepted":true}`, "/poison": poison,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(reply)) })
	}
	mux.Handle("/away", http.RedirectHandler("/there", http.StatusTemporaryRedirect))
	mux.HandleFunc("/there", func(w http.ResponseWriter, _ *http.Request) {
		followed = true
		w.Write([]byte(`{"accepted":true}`))
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		srv.Close()
	})
	for path, status := range map[string]string{"/empty": "200", "/lines": "200", "/other": "200", "/cut": "200", "/long": "200",
		"/poison": "200", "/away": "307", "/nothing": "404"} {
		_, err := ground.PostCascade(t.Context(), srv.URL+path, "secret", nil)
		if want := "ground: post: no receipt: status " + status; err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	if followed {
		t.Error("a redirect was followed")
	}
	for _, url := range []string{"http://[::1", "\x7f://x", "http://a b/"} {
		if _, err := ground.PostCascade(t.Context(), url, "", nil); !errors.Is(err, ground.ErrURL) {
			t.Errorf("%q: %v", url, err)
		}
	}
	for _, r := range []ground.CascadeReceipt{
		{Receipt: ground.Receipt{Code: poison, Pointer: poison}},
		{Receipt: ground.Receipt{Accepted: true, Hash: poison}},
	} {
		var out strings.Builder
		if err := r.WriteText(&out, ground.Reverse); err != nil || strings.ContainsAny(out.String(), "\x1b\u202e") {
			t.Errorf("says %+q, %v", out.String(), err)
		}
	}
}
