// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestFrontUnread: who is refused by the headers alone is answered at once, not when the
// body has come that was announced; the connection ends then.
func TestFrontUnread(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const mcp = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
	for name, tt := range map[string]struct {
		head   string
		status int
	}{
		"media":        {"POST / HTTP/1.1\r\nAccept: */*\r\nContent-Type: text/plain\r\n", 415},
		"media twice":  {"POST / HTTP/1.1\r\n" + mcp + "Content-Type: text/plain\r\n", 415},
		"coding":       {"POST / HTTP/1.1\r\n" + mcp + "Content-Encoding: gzip\r\n", 415},
		"accept":       {"POST / HTTP/1.1\r\nContent-Type: application/json\r\nAccept: text/html\r\n", 406},
		"delete":       {"DELETE / HTTP/1.1\r\nMcp-Session-Id: none\r\n", 404},
		"get":          {"GET / HTTP/1.1\r\nAccept: text/event-stream\r\nMcp-Session-Id: none\r\n", 404},
		"other method": {"PUT / HTTP/1.1\r\n", 405},
	} {
		for _, body := range []string{"Content-Length: 100\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n"} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(b.http.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			conn.SetDeadline(time.Now().Add(time.Minute))
			io.WriteString(conn, tt.head+"Host: a\r\n"+body)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Errorf("%s: no answer: %v", name, err)
			} else if resp.StatusCode != tt.status || !resp.Close {
				t.Errorf("%s: status %d, close %v", name, resp.StatusCode, resp.Close)
			}
			conn.Close()
		}
	}
	// Without a body the connection stays.
	resp := b.do(t.Context(), http.MethodDelete, "", "Mcp-Session-Id", "none")
	if all(t, resp); resp.Close {
		t.Error("a DELETE without a body ends its connection")
	}
}
