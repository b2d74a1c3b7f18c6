// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"io"

	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// What the fuzz targets of the package's edges reach for.
var (
	GroundArguments      = groundArguments
	AttestationArguments = attestationArguments
)

// MaxQueries is how many MCP requests may be under way over HTTP.
const MaxQueries = maxQueries

// A Line is one line of a stream; nil Text: it was too long.
type Line struct {
	Number int
	Text   []byte
}

// ReadLines reads a stream to its end, in batches.
func ReadLines(r io.Reader, limit, lines, size int) ([]Line, error) {
	var all []Line
	in := newLineReader(r, limit, func() {})
	for {
		batch, err := in.batch(lines, size)
		for _, l := range batch {
			all = append(all, Line{l.number, l.text})
		}
		if err != nil {
			return all, err
		}
	}
}

// Fence puts an answer into a fence.
func Fence(k frame.Key, answer []byte) string {
	plain, err := scrub.Compile(scrub.Policy{Profile: scrub.Faithful, MaxChars: maxAnswer})
	if err != nil {
		panic(err)
	}
	return (&mcpServer{o: MCPOptions{Key: func() frame.Key { return k }}, plain: plain}).fence(toolGround, answer)
}
