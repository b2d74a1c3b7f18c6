// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"net/http"

	"github.com/pellucid-mcp/pellucid/platform/intake"
)

// OutputSchema is outputSchema.
func OutputSchema() []byte { return outputSchema }

// ParseEvent reports why parseEvent refuses body, or what its canonical hash is.
func ParseEvent(body []byte) (hash string, err error) {
	n, r := parseEvent(body)
	if r != nil {
		return "", r
	}
	return n.hash.String(), nil
}

// MCPHandler is the part of Handler that speaks MCP.
func (a *Adapter) MCPHandler(o MCPOptions) http.Handler {
	return a.mcpHandler(o, intake.NewBudget(DefaultMemory), bodyPatience)
}
