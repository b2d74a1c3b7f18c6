// SPDX-License-Identifier: Apache-2.0

package plug

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
)

// open begins a request of some bytes and sends all but the last of them.
func open(t *testing.T, s *httptest.Server, who string, octets int) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST /v1/result HTTP/1.1\r\nHost: a\r\nX-Who: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		who, octets, strings.Repeat("x", octets-1))
	return conn, bufio.NewReader(conn)
}

// TestBusy: whoever begins requests and ends none has half of the room, and others are
// served; a body that does not come is given up.
func TestBusy(t *testing.T) {
	i, err := gateway.NewInspector(gateway.Config{Sink: &counter{}})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Default: i, MaxBody: 128 << 10, maxBodies: 512 << 10, Principal: func(r *http.Request) string { return r.Header.Get("X-Who") }}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	defer s.CloseClientConnections()
	kept := 0
	for range 10 {
		conn, r := open(t, s, "hoarder", 64<<10)
		wait := 300 * time.Millisecond // no answer comes
		if kept >= 4 {
			wait = time.Minute // the answer comes
		}
		conn.SetReadDeadline(time.Now().Add(wait))
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			kept++
			continue
		}
		b, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "1" || !strings.Contains(string(b), `"code":"busy"`) {
			t.Errorf("%d %v %s", resp.StatusCode, resp.Header, b)
		}
		break
	}
	if kept != 4 {
		t.Errorf("%d requests wait", kept)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/scrub", strings.NewReader(`{"text":"`+strings.Repeat("x", 60<<10)+`"}`))
	req.Header = http.Header{"Content-Type": {"application/json"}, "X-Who": {"other"}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the other one: %d", resp.StatusCode)
	}

	o.patience = 300 * time.Millisecond
	if h, err = New(o); err != nil {
		t.Fatal(err)
	}
	slow := httptest.NewServer(h)
	defer slow.CloseClientConnections()
	conn, r := open(t, slow, "slow", 9)
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	if resp, err = http.ReadResponse(r, nil); err != nil || resp.StatusCode != 400 {
		t.Errorf("who sends nothing: %v, %v", resp, err)
	}
}
