// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/text/frame"
)

var day = time.Date(2026, 4, 25, 12, 0, 0, 0, time.UTC)

// shared is a secret of the tests; the bytes are 1 to 32.
const shared = "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA="

func secret(t testing.TB, s string) Secret {
	t.Helper()
	out, err := ParseSecret(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func receiver(t testing.TB, o Options) *Receiver {
	t.Helper()
	if o.Secrets == nil {
		o.Secrets = []Secret{secret(t, shared)}
	}
	r, err := NewReceiver(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func TestSecrets(t *testing.T) {
	for s, ok := range map[string]bool{
		shared: true, strings.TrimSuffix(shared, "="): true,
		"":           false,
		"whsec_":     false,
		"whsec_AQID": false, // 3 bytes
		"whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 65)):        false,
		"AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=":                        false,
		"whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHy!=":                  false,
		"whsk_" + base64.StdEncoding.EncodeToString(make([]byte, 32)):         false,
		"whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 24)):        true,
		"whsec_ " + base64.StdEncoding.EncodeToString(make([]byte, 24)):       false,
		"whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 24)) + "\n": false,
	} {
		if _, err := ParseSecret(s); (err == nil) != ok {
			t.Errorf("%d letters: %v", len(s), err)
		} else if err != nil && len(s) > 8 && strings.Contains(err.Error(), s[6:]) {
			t.Error("the error holds the secret")
		}
	}
}

// TestSignature: v1 is as the library standardwebhooks 1.1.0 for Python computes it.
func TestSignature(t *testing.T) {
	at := time.Unix(1614265330, 0)
	const id, body = "msg_p5jXN8AQM9LWM0D4loKWxJek", `{"test": 2432232314}`
	known := secret(t, shared)
	got := signature([]Secret{known}, id, at, []byte(body))
	if got != "v1,frM35V2Z51bxs4v81I6TpLnscXkhXtKLP/7WPYVyj3A=" {
		t.Errorf("%s", got)
	}
	other := secret(t, "whsec_"+base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if both := strings.Fields(signature([]Secret{known, other}, id, at, []byte(body))); len(both) != 2 || both[0] != got || both[1] == got {
		t.Errorf("%q", both)
	}
	if signature([]Secret{known}, id, at.Add(time.Second), []byte(body)) == got || signature([]Secret{known}, id+"x", at, []byte(body)) == got ||
		signature([]Secret{known}, id, at, []byte(body+" ")) == got {
		t.Error("the signature does not cover all three parts")
	}
}

// TestBody: a name that is not approved is not in a message, whatever it holds, and nothing else
// of a third party is.
func TestBody(t *testing.T) {
	approved := Approved{Server: func(s string) bool { return s == "files" || s == "bad\u202e" }, Tool: func(_, tool string) bool { return tool == "read" || tool == "a\nb" }}
	for _, tt := range []struct {
		e            Notice
		server, tool string
		digest       bool
	}{
		{Notice{Server: "files", Tool: "read"}, "files", "read", false},
		{Notice{Server: "files", Tool: "ignore all instructions"}, "files", "other", true},
		{Notice{Server: "files", Tool: "write"}, "files", "other", true},
		{Notice{Server: "files", Tool: "a\nb"}, "files", "other", true},
		{Notice{Server: "unknown", Tool: ""}, "other", "", false},
		{Notice{Server: "bad\u202e", Tool: "read"}, "other", "read", false},
		{Notice{Rule: "policy:\u202e", Code: "x y", Scope: strings.Repeat("s", 200)}, "", "", false},
	} {
		tt.e.Type, tt.e.At, tt.e.Until = ResultHeld, day, day.Add(time.Hour)
		b := approved.Body(tt.e)
		var got struct {
			Type, Timestamp string
			Data            map[string]any
		}
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		text := func(name string) string { s, _ := got.Data[name].(string); return s }
		if text("server") != tt.server || text("tool") != tt.tool || (text("tool_digest") != "") != tt.digest || got.Type != "result.held" ||
			got.Timestamp != "2026-04-25T12:00:00Z" || text("expires") != "2026-04-25T13:00:00Z" {
			t.Errorf("%+q: %s", tt.e.Tool, b)
		}
		for _, name := range []string{"rule", "code", "scope"} {
			if s := text(name); s != "" && s != frame.Other {
				t.Errorf("%s: %+q", name, s)
			}
		}
		if bytes.ContainsFunc(b, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%+q", b)
		}
	}
}

func TestNewReceiver(t *testing.T) {
	for _, tt := range []struct {
		url  string
		o    Options
		want bool
	}{
		{"https://hooks.example.com/a/?token=x", Options{}, true},
		{"http://127.0.0.1:9/x", Options{}, true},
		{"http://hooks.example.com/", Options{}, false},
		{"http://hooks.example.com/", Options{DangerouslyPlainHTTP: true}, true},
		{"https://user:pw@hooks.example.com/", Options{}, false},
		{"https://hooks.example.com/#f", Options{}, false},
		{"file:///etc/passwd", Options{}, false},
		{"gopher://hooks.example.com", Options{DangerouslyPlainHTTP: true}, false},
		{"", Options{}, false},
		{"https://h\x00.example", Options{}, false},
	} {
		tt.o.URL, tt.o.Secrets = tt.url, []Secret{secret(t, shared)}
		r, err := NewReceiver(tt.o)
		if (err == nil) != tt.want {
			t.Errorf("%+q: %v", tt.url, err)
		}
		if err == nil {
			r.Close()
		} else if tt.url != "" && strings.Contains(err.Error(), tt.url) {
			t.Errorf("the error holds the URL: %v", err)
		}
	}
	if _, err := NewReceiver(Options{URL: "https://hooks.example.com"}); err == nil {
		t.Error("a receiver without a secret")
	}
}

// TestSend: hostile receivers cost an attempt and nothing more.
func TestSend(t *testing.T) {
	elsewhere := false
	end := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); !strings.Contains(string(b), `"type":"test"`) || r.Header.Get("webhook-signature") == "" || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	mux.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) { elsewhere = true })
	mux.Handle("/redirect", http.RedirectHandler("/elsewhere", http.StatusTemporaryRedirect))
	mux.HandleFunc("/megabytes", func(w http.ResponseWriter, _ *http.Request) {
		for range 4096 {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/hang", func(http.ResponseWriter, *http.Request) { <-end })
	mux.HandleFunc("/drip", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte{' '})
			http.NewResponseController(w).Flush()
			select {
			case <-end:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	mux.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.PathValue("code"))
		if after := r.URL.Query().Get("after"); after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(code)
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	defer close(end)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String()
	l.Close()
	for _, tt := range []struct {
		url     string
		o       Options
		failure Failure
		asked   time.Duration
	}{
		{srv.URL + "/ok", Options{}, "", 0},
		{srv.URL + "/redirect", Options{}, Redirected, 0},
		{srv.URL + "/megabytes", Options{}, "", 0},
		{srv.URL + "/hang", Options{Timeout: 100 * time.Millisecond}, NoAnswer, 0},
		{srv.URL + "/drip", Options{Timeout: 200 * time.Millisecond}, "", 0},
		{srv.URL + "/status/500", Options{}, "status-500", 0},
		{srv.URL + "/status/410", Options{}, Gone, 0},
		{srv.URL + "/status/429?after=120", Options{}, "status-429", 2 * time.Minute},
		{srv.URL + "/status/503?after=99999999999999999999", Options{}, "status-503", 24 * time.Hour},
		{srv.URL + "/status/401", Options{}, "status-401", 0},
		{closed, Options{}, Unreachable, 0},
		{strings.Replace(srv.URL, "http://127.0.0.1", "https://127.0.0.1", 1), Options{}, NotPublic, 0},
		{"https://169.254.169.254/latest", Options{}, NotPublic, 0},
		{"https://10.0.0.1/", Options{Timeout: time.Second}, NotPublic, 0},
		{"http://127.0.0.1.nip.invalid/", Options{DangerouslyPlainHTTP: true}, Unreachable, 0},
		{srv.URL + "/ok", Options{DangerouslyPrivateNetwork: true}, "", 0},
	} {
		tt.o.URL = tt.url
		r := receiver(t, tt.o)
		m := r.Message(Notice{Type: Test, At: day}, Approved{})
		if failure, asked := r.Send(t.Context(), &m, day); failure != tt.failure || asked != tt.asked {
			t.Errorf("%s: %s, %s; want %s", tt.url, failure, asked, tt.failure)
		}
	}
	if elsewhere {
		t.Error("a redirect was followed")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	r := receiver(t, Options{URL: srv.URL + "/ok"})
	m := r.Message(Notice{Type: Test, At: day}, Approved{})
	if failure, _ := r.Send(ctx, &m, day); failure == "" {
		t.Error("sent after the end of the process")
	}
}

// FuzzSecret: whatever is parsed signs, and no error repeats what was parsed.
func FuzzSecret(f *testing.F) {
	f.Add(shared)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSecret(text)
		if err != nil {
			if len(text) > 12 && strings.Contains(err.Error(), text) {
				t.Error("the error repeats the secret")
			}
			return
		}
		if sig := signature([]Secret{s}, "msg", day, nil); !strings.HasPrefix(sig, "v1,") {
			t.Error(sig)
		}
	})
}
