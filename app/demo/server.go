// SPDX-License-Identifier: Apache-2.0

// Package demo is a server whose tools return poisoned and benign results, and
// a client that compares what it says with what arrives through Pellucid.
package demo

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Serve answers on standard input and output until the client is gone. With results
// alone it leaves out the tools whose own description is poisoned, which no client would
// see.
func Serve(ctx context.Context, results bool) error {
	s := mcp.NewServer(&mcp.Implementation{Name: "demo", Version: "1"}, nil)
	for i := range Cases {
		c := &Cases[i]
		if results && c.describes() {
			continue
		}
		description := c.describe
		if description == "" {
			description = "Returns " + c.What + "."
		}
		add(s, c.Tool, description, true, c.result())
	}
	// A server that writes is scrubbed faithfully: what is read must match when it
	// is edited.
	add(s, "write_file", "Writes nothing.", false, &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "ok"}}})
	return s.Run(ctx, &mcp.StdioTransport{})
}

func add(s *mcp.Server, name, description string, readOnly bool, result *mcp.CallToolResult) {
	s.AddTool(&mcp.Tool{
		Name: name, Description: description,
		InputSchema: json.RawMessage(`{"type":"object"}`),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: readOnly},
	}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return result, nil })
}
