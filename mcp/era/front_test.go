// SPDX-License-Identifier: Apache-2.0

package era

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// TestFront crosses the eras behind a front of streamable HTTP, as the gateway does.
func TestFront(t *testing.T) {
	for _, era := range []string{legacyOnly, modernOnly} {
		for name, over := range map[string]link{"pipe": overPipes, "http": overHTTP} {
			c := crossing{era: era, version: modernVersion}
			if era == modernOnly {
				c.version = lastLegacy
			}
			t.Run(name+", "+era+" server", func(t *testing.T) { testFront(t, c, over) })
		}
	}
}

func testFront(t *testing.T, c crossing, over link) {
	s := c.server(mcp.ServerOptions{})
	c.asking(s)
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(stop)
	key, _ := frame.NewKey(bytes.Repeat([]byte{7}, 32))
	front := wire.NewFront(wire.FrontOptions{Accept: func(ctx context.Context, fs *wire.FrontSession, ended func(error)) {
		go func() {
			ended(gateway.Run(ctx, fs, Adapt(wire.Push(over(t, ctx, s, c.era)), Options{}), gateway.Config{Name: "real", Key: key, Frame: frame.KindMeta, Sink: nowhere{}}))
		}()
	}})
	srv := httptest.NewServer(front)
	t.Cleanup(func() {
		within, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		front.Shutdown(within)
		srv.CloseClientConnections()
		srv.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	changed := make(chan struct{}, 64)
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": strings.TrimSuffix(r.Params.Message, "?")}}, nil
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
	})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: srv.URL}, &mcp.ClientSessionOptions{ProtocolVersion: c.version})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer session.Close()
	if got := session.InitializeResult().ProtocolVersion; got != c.version {
		t.Fatalf("client speaks %s", got)
	}
	for range 3 {
		r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "ask"})
		if got := textOf(t, r, err); got != "first second" {
			t.Errorf("got %q", got)
		}
	}
	n := 0
	waittest.Until(t, "the list of tools changes", func() bool {
		n++
		tool(s, fmt.Sprintf("more%d", n), func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return said("2"), nil })
		return len(changed) > 0
	})
}
