// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

const plainTool = `{"name":"t","description":"Does a thing.","inputSchema":{"type":"object"}}`

// TestRepeatLooksFirst: a call that a server did not carry out, since it had forgotten the session, is made in the
// new session if the tool is still the one that was approved.
func TestRepeatLooksFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		tools string
		calls int
		want  string
	}{
		"the same":              {plainTool, 2, "did it"},
		"another tool beside":   {plainTool + `,{"name":"new","inputSchema":{"type":"object"}}`, 2, "did it"},
		"another description":   {strings.Replace(plainTool, "a thing", "another", 1), 1, "pellucid holds this tool"},
		"forgets again at once": {"", 1, "the server ended the session"},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			tools, session, sessions, calls, forgets := plainTool, "", 0, 0, false
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				m, err := wire.Decode(b, strictjson.Limits{})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					w.WriteHeader(http.StatusMethodNotAllowed)
					return
				case m.Method == mcpmsg.Initialize:
					sessions++
					session = strconv.Itoa(sessions)
					w.Header().Set("Mcp-Session-Id", session)
				case r.Header.Get("Mcp-Session-Id") != session, forgets && m.Method == mcpmsg.CallTool:
					if forgets {
						session = "forgotten"
					}
					w.WriteHeader(http.StatusNotFound)
					return
				case m.Kind != wire.Request:
					w.WriteHeader(http.StatusAccepted)
					return
				}
				result := map[string]string{
					mcpmsg.Initialize: `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`,
					mcpmsg.ListTools:  `{"tools":[` + tools + `]}`,
					mcpmsg.CallTool:   `{"content":[{"type":"text","text":"did it"}]}`,
				}[m.Method]
				if m.Method == mcpmsg.CallTool {
					calls++
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(wire.NewResult(m.ID, []byte(result)).Append(nil))
			}))
			defer srv.Close()
			up, err := wire.NewHTTP(srv.URL, wire.HTTPOptions{})
			if err != nil {
				t.Fatal(err)
			}
			fromClient, clientW := io.Pipe()
			clientR, toClient := io.Pipe()
			client := newPeer(t, clientR, clientW)
			a := newAllow(t, "", mcpmsg.ListTools, plainTool)
			key, _ := frame.NewKey(bytes.Repeat([]byte{7}, 32))
			done := make(chan error, 1)
			ctx, stop := context.WithCancel(t.Context())
			go func() {
				done <- Run(ctx, wire.NewLines(fromClient, toClient, wire.LinesOptions{}), up, Config{Name: "srv", Key: key, Sink: &memory{}, Admission: a, Repeat: true})
			}()
			answer := func(id string) string {
				t.Helper()
				for {
					if line := client.next(); strings.Contains(line, `"id":`+id+`,`) {
						return line
					}
				}
			}
			client.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
			answer("1")
			client.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			call := func(id string) string {
				client.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"t","arguments":{}}}`)
				return answer(id)
			}
			if got := call("2"); !strings.Contains(got, "did it") {
				t.Fatalf("before: %s", got)
			}
			mu.Lock()
			tools, session, forgets = tc.tools, "", tc.tools == ""
			if forgets {
				tools = plainTool
			}
			mu.Unlock()
			if got := call("3"); !strings.Contains(got, tc.want) {
				t.Errorf("afterwards: %s", got)
			}
			mu.Lock()
			if calls != tc.calls || sessions < 2 || sessions > 3 {
				t.Errorf("%d calls, %d sessions", calls, sessions)
			}
			mu.Unlock()
			stop()
			<-done
			clientW.Close()
			for range client.lines {
			}
		})
	}
}
