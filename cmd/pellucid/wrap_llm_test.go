// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Sampling, of the older revisions, is what is tested here.

package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// askingServer has one tool, whose answer is what the client's model has said.
func askingServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "asking", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "ask"},
		func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			said, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 9,
				Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "say\u202e it"}}}})
			if err != nil {
				return nil, nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{said.Content}}, nil, nil
		})
	return s
}

// TestWrapSampling: a server puts words before the client's model only where the operator
// says so, and they are scrubbed.
func TestWrapSampling(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		var args []string
		if allowed {
			args = append(args, "--set", "dangerously_allow_sampling=true")
		}
		cmd, _ := wrapped(t, asServer("asking", args...)...)
		cmd.Stderr = os.Stderr
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		asked := ""
		c := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
			CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
				asked = r.Params.Messages[0].Content.(*mcp.TextContent).Text
				return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "said"}}, nil
			}})
		s, err := c.Connect(ctx, &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "ask"})
		if err != nil {
			t.Fatal(err)
		}
		text := r.Content[0].(*mcp.TextContent).Text
		if allowed != (asked == "say it") || allowed != strings.Contains(text, "said") || r.IsError == allowed || !allowed && asked != "" {
			t.Errorf("allowed %v: asked %+q, answer %q", allowed, asked, text)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWrapLLM: the answers of a language model stand in their own envelope, with what the
// operator says of it.
func TestWrapLLM(t *testing.T) {
	for name, x := range map[string]struct {
		args []string
		want []string
	}{
		"model":  {[]string{"--set", "llm.provider=Some AI", "--set", "llm.model=some-2"}, []string{"<some-ai-response", "some-2", "</some-ai-response"}},
		"tag":    {[]string{"--set", "llm.provider=Some AI", "--set", "llm.tag=x-response", "--set", "hold=role-marker"}, []string{"<x-response"}},
		"search": {[]string{"--set", "llm.provider=Some AI", "--set", "llm.model="}, []string{"<some-ai-response"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, _ := wrapped(t, asServer("asking", append([]string{"--set", "dangerously_allow_sampling=true", "--frame", "llm"}, x.args...)...)...)
			cmd.Stderr = os.Stderr
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			c := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
				CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
					return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "said\u202e so"}}, nil
				}})
			s, err := c.Connect(ctx, &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "ask"})
			if err != nil {
				t.Fatal(err)
			}
			text := r.Content[0].(*mcp.TextContent).Text
			for _, want := range append(x.want, "said so") {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in %q", want, text)
				}
			}
		})
	}
}
