// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// TestProbeApps: a server that offers an app only to clients with the extension is read as
// such a client, and as one without; any other server is asked once.
func TestProbeApps(t *testing.T) {
	for _, apps := range []bool{true, false} {
		var dials atomic.Int64
		connect := func(ctx context.Context, talk func(context.Context, wire.ReadConn) error) error {
			dials.Add(1)
			fromClient, toServer := io.Pipe()
			fromServer, toClient := io.Pipe()
			server, client := wire.Pull(wire.NewLines(fromClient, toClient, wire.LinesOptions{})), wire.Pull(wire.NewLines(fromServer, toServer, wire.LinesOptions{}))
			done := make(chan struct{})
			go func() {
				defer close(done)
				capable := false
				for {
					m, err := server.Read(ctx)
					if err != nil {
						return
					}
					if m.Kind != wire.Request {
						continue
					}
					result := `{"tools":[{"name":"plain","inputSchema":{"type":"object"}}]}`
					switch {
					case m.Method == mcpmsg.Initialize:
						capable = bytes.Contains(m.Params.Raw(), []byte(mcpmsg.ExtensionApps))
						result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
					case m.Method == mcpmsg.ReadResource:
						result = `{"contents":[{"uri":"ui://a","mimeType":"text/html;profile=mcp-app","text":"<p>"}]}`
					case m.Method != mcpmsg.ListTools:
						_ = server.Write(ctx, wire.NewError(m.ID, []byte(`{"code":-32601,"message":"no"}`)))
						continue
					case apps && capable:
						result = strings.Replace(result, "]}", `,{"name":"map","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://a"}}}]}`, 1)
					}
					_ = server.Write(ctx, wire.NewResult(m.ID, []byte(result)))
				}
			}()
			defer func() { client.Close(); server.Close(); <-done }()
			return talk(ctx, client)
		}
		s, err := CollectWhole(t.Context(), CollectOptions{}, connect)
		if err != nil {
			t.Fatal(err)
		}
		_, page := s.Item(Key{Kind: App, Name: "ui://a"})
		_, tool := s.Item(Key{Kind: Tool, Name: "map"})
		_, plain := s.Item(Key{Kind: Tool, Name: "plain"})
		if page != apps || tool != apps || !plain {
			t.Errorf("apps %t: page %t, its tool %t, the other %t", apps, page, tool, plain)
		}
		if want := map[bool]int64{true: 2, false: 1}[apps]; dials.Load() != want {
			t.Errorf("apps %t: %d connections, want %d", apps, dials.Load(), want)
		}
	}
}

func TestWhyUnreachable(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("wire: read: %w", io.EOF), "the server ended without an answer"},
		{fmt.Errorf("surface: collect: %w", wire.ErrPeerClosed), "the server ended without an answer"},
		{fmt.Errorf("fleet: dial: %w: connection refused", wire.ErrUnreachable), "no connection: connection refused"},
		{fmt.Errorf("surface: %w", &RefusedError{Err: errors.New("too many tools")}), "too many tools"},
		{fmt.Errorf("surface: %w", &RefusedError{Reason: NoAnswer, Err: wire.StatusError(401)}), "it wants a login or a key (HTTP status 401)"},
		{errors.New("child: start: not found"), "child: start: not found"},
	} {
		if got := WhyUnreachable(tt.err); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
	}
}
