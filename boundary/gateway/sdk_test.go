// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// sdkServer is an unmodified server, some of whose results are poisoned.
func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "real", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "poison", Description: "returns poison"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{
				&mcp.TextContent{Text: "before" + marker + "after"},
				&mcp.ResourceLink{URI: "file:///x\u202e", Name: "n"},
			}}, nil, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "big"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("0123456789", 20_000)}}}, nil, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"},
		func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "failed"}}}, nil, nil
		})
	s.AddResource(&mcp.Resource{URI: "file:///r", Name: "r"},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "file:///r", Text: "body\u200b"}}}, nil
		})
	s.AddPrompt(&mcp.Prompt{Name: "p"},
		func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "hi\u200b"}}}}, nil
		})
	return s
}

// sdkSession connects an unmodified client to it, through a gateway.
func sdkSession(t *testing.T, key frame.Key, version string) *mcp.ClientSession {
	t.Helper()
	fromClient, clientW := io.Pipe()
	clientR, toClient := io.Pipe()
	fromServer, serverW := io.Pipe()
	serverR, toServer := io.Pipe()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	served, relayed := make(chan error, 1), make(chan error, 1)
	go func() { served <- sdkServer().Run(ctx, &mcp.IOTransport{Reader: serverR, Writer: serverW}) }()
	go func() {
		relayed <- Run(ctx, wire.NewLines(fromClient, toClient, wire.LinesOptions{}),
			wire.NewLines(fromServer, toServer, wire.LinesOptions{Limits: testLimits}),
			Config{Name: "real", Key: key, Sink: &memory{}})
	}()
	c := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil)
	session, err := c.Connect(ctx, &mcp.IOTransport{Reader: clientR, Writer: clientW},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() {
		session.Close()
		<-relayed
		stop()
		<-served
	})
	return session
}

func TestRealPeers(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) { testRealPeers(t, version) })
	}
}

func testRealPeers(t *testing.T, version string) {
	key := frame.Key{}
	testPeer(t, sdkSession(t, key, version), key)
}

// testPeer asks sdkServer, behind a gateway, for everything that it has.
func testPeer(t *testing.T, s *mcp.ClientSession, key frame.Key) {
	ctx := t.Context()
	tools, err := s.ListTools(ctx, nil)
	if err != nil || len(tools.Tools) != 3 {
		t.Fatalf("tools: %v %v", tools, err)
	}
	res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "poison"})
	if err != nil || len(res.Content) != 2 {
		t.Fatalf("poison: %v %v", res, err)
	}
	origin, body, err := key.Open(res.Content[0].(*mcp.TextContent).Text, frame.Origin{})
	if err != nil || body != "beforea\u27e8|im_start|\u27e9bafter" || origin.Tool != "poison" {
		t.Errorf("fence: %v %+q %v", origin, body, err)
	}
	// A client of a revision without links gets a text in its place, which is clean.
	if text, isText := res.Content[1].(*mcp.TextContent); !isText || !strings.Contains(text.Text, "withheld") && !strings.HasPrefix(text.Text, "<pellucid-") ||
		strings.ContainsRune(text.Text, '\u202e') {
		t.Errorf("bad link: %#v", res.Content[1])
	}
	if res, err = s.CallTool(ctx, &mcp.CallToolParams{Name: "big"}); err != nil {
		t.Fatalf("big: %v", err)
	}
	if _, body, err := key.Open(res.Content[0].(*mcp.TextContent).Text, frame.Origin{}); err != nil || len(body) != 200_000 {
		t.Errorf("big: %d %v", len(body), err)
	}
	if res, err = s.CallTool(ctx, &mcp.CallToolParams{Name: "ask"}); err != nil || !res.IsError {
		t.Fatalf("error result: %v %v", res, err)
	}
	if _, body, err := key.Open(res.Content[0].(*mcp.TextContent).Text, frame.Origin{}); err != nil || body != "failed" {
		t.Errorf("error result: %q %v", body, err)
	}
	read, err := s.ReadResource(ctx, &mcp.ReadResourceParams{URI: "file:///r"})
	if err != nil || read.Contents[0].Text != "body" || read.Meta[frame.MetaKey] == nil {
		t.Errorf("resource: %v %v", read, err)
	}
	prompt, err := s.GetPrompt(ctx, &mcp.GetPromptParams{Name: "p"})
	if err != nil || prompt.Messages[0].Content.(*mcp.TextContent).Text != "hi" {
		t.Errorf("prompt: %v %v", prompt, err)
	}
}
