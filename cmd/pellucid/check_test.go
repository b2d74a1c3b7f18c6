// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/boundary/preflight"
)

// A server for scripts: its tool "now" has the description that this variable holds,
// escaped, and each word of the other names one more tool.
const (
	describeVariable = "PELLUCID_TEST_DESCRIPTION"
	toolsVariable    = "PELLUCID_TEST_TOOLS"
	legacyVariable   = "PELLUCID_TEST_LEGACY" // it ends if another message than initialize comes first
	// Each word of this one names a tool for clients with the capability elicitation.
	capableVariable = "PELLUCID_TEST_CAPABLE"
)

func init() {
	if os.Getenv(roleVariable) != "describing" {
		return
	}
	text, err := strconv.Unquote(`"` + os.Getenv(describeVariable) + `"`)
	if err != nil {
		os.Exit(1)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "describing", Version: "1"}, nil)
	capable := strings.Fields(os.Getenv(capableVariable))
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, r)
			list, is := result.(*mcp.ListToolsResult)
			session, _ := r.GetSession().(*mcp.ServerSession)
			if !is || session.InitializeParams() != nil && session.InitializeParams().Capabilities.Elicitation != nil {
				return result, err
			}
			list.Tools = slices.DeleteFunc(list.Tools, func(t *mcp.Tool) bool { return slices.Contains(capable, t.Name) })
			return result, err
		}
	})
	for _, name := range append(append(strings.Fields(os.Getenv(toolsVariable)), capable...), "now") {
		tool := &mcp.Tool{Name: name, Description: "Does what it is called."}
		if name == "now" {
			tool.Description = text
		}
		mcp.AddTool(s, tool, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			os.Exit(9) // check calls nothing
			return nil, nil, nil
		})
	}
	var over mcp.Transport = &mcp.StdioTransport{}
	if os.Getenv(legacyVariable) != "" {
		in := bufio.NewReader(os.Stdin)
		_, _ = in.Peek(1)
		if first, _ := in.Peek(in.Buffered()); !bytes.Contains(first, []byte(`"initialize"`)) {
			os.Exit(8)
		}
		over = &mcp.IOTransport{Reader: io.NopCloser(in), Writer: os.Stdout}
	}
	if err := s.Run(context.Background(), over); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// TestAskEach: only a yes is one, and the command stands before the question.
func TestAskEach(t *testing.T) {
	for answers, want := range map[string]string{
		"y\nn\n": "started declined", "\nYES\n": "declined started", "yep\n y \n": "declined started", "y\n": "nobody", "": "nobody", "y\ny": "nobody",
	} {
		targets := []*preflight.Target{{Name: "a\u202e", File: "f.json", Command: []string{"x", "a\u200bb"}}, {Name: "b", File: "f.json", Command: []string{"y"}}}
		var out bytes.Buffer
		got := "nobody"
		if err := askEach(strings.NewReader(answers), &out, targets); err == nil {
			words := []string{}
			for _, x := range targets {
				words = append(words, map[bool]string{false: "started", true: "declined"}[x.Declined])
			}
			got = strings.Join(words, " ")
		}
		if got != want {
			t.Errorf("%q: %s, want %s", answers, got, want)
		}
		if !strings.Contains(out.String(), "\n  x $'a\\u200bb'\nStart it? [y/N] ") || strings.ContainsAny(out.String(), "\u202e\u200b") {
			t.Errorf("%+q", out.String())
		}
	}
}
