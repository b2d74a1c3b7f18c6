// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/intake/intaketest"
)

// TestHoard: one client begins as many requests as it can, and ends none. It has half of
// the places, or of the bytes; another one is served all the while.
func TestHoard(t *testing.T) {
	tokens := map[string]string{"A": "4f1d7c0ab25e9386d0c7b1a2e3f49586", "B": "5a0c3e7b19d846f2c0b7a1e2d3f49587"}
	who, err := auth.ParseTokens([]byte(`{"tokens":[{"principal":"hoarder","scopes":["guard:ask"],"token":"env:A"},{"principal":"other","scopes":["guard:ask"],"token":"env:B"}]}`),
		func(name string) (string, error) { return tokens[strings.TrimPrefix(name, "env:")], nil })
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		places, size int
		want         int // requests of one who hoards
	}{
		"places": {10, 4 << 10, 5},
		"bytes":  {100, 64 << 10, 4}, // 64 KiB each, of 512
	} {
		r := newRig(t, obedient, func(o *guard.Options) {
			o.Auth, o.MaxActive, o.MaxRequest, o.MaxBodies, o.Patience = who, tt.places, 128<<10, 512<<10, time.Minute
			o.Key = llm.NewKey("env:K", func() (string, error) { return secret, nil })
		})
		front := intaketest.Serve(t, r.guard)
		kept := 0
		for range 20 {
			resp, _ := front.Begin("/v1/chat/completions", []string{"Authorization: Bearer " + tokens["A"]}, tt.size)
			if resp == nil {
				kept++ // it is waited for
				continue
			}
			b, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "1" || !bytes.Contains(b, []byte(`"Pellucid: too much of yours is under way"`)) {
				t.Errorf("%s: %d %v %s", name, resp.StatusCode, resp.Header, b)
			}
			break
		}
		if kept != tt.want {
			t.Errorf("%s: %d requests wait", name, kept)
		}
		for range 3 {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/v1/chat/completions", bytes.NewReader(conversation(format.Chat, false, strings.Repeat("Sum up. ", 4000))))
			req.Header.Set("Authorization", "Bearer "+tokens["B"])
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("%s: the other one: %d %s", name, resp.StatusCode, b)
			}
		}
		http.DefaultClient.CloseIdleConnections()
	}
}

// TestRefusedLeaves: a request that is refused has no place while the rest of its body is
// waited for, so the next one is served.
func TestRefusedLeaves(t *testing.T) {
	r := newRig(t, obedient, func(o *guard.Options) {
		o.MaxActive, o.MaxRequest = 1, 64<<10
	})
	front := intaketest.Serve(t, r.guard)
	for range 3 {
		resp, _ := front.Begin("/v1/chat/completions", nil, 65<<10)
		if resp == nil || resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Fatalf("%+v", resp)
		}
	}
	resp := r.post(format.Chat, conversation(format.Chat, false, "Sum up."))
	if b, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Errorf("%d %s", resp.StatusCode, b)
	}
}

// TestBusyLingers: who sends a long body gets it all off, and reads the refusal then.
func TestBusyLingers(t *testing.T) {
	r := newRig(t, obedient, func(o *guard.Options) { o.MaxActive = 1 })
	first, err := net.Dial("tcp", strings.TrimPrefix(r.front.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	first.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(first, "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n")
	if line, err := bufio.NewReader(first).ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") { // it is under way
		t.Fatalf("%q, %v", line, err)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.front.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	const size = 24 << 20 // more than what lies between the two of us
	if _, err := fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", size); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(bytes.Repeat([]byte("x"), size)); err != nil {
		t.Fatalf("the body was not taken: %v", err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || !bytes.Contains(b, []byte(`"Pellucid: too much is under way"`)) {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, b)
	}
}
