// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"bytes"
	"fmt"
	"unicode/utf16"

	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// maxAnswer is the longest answer that is sent over MCP, in bytes.
const maxAnswer = 32 << 20

// maxEscapes is how often escaping is tried: what it makes is plain ASCII.
const maxEscapes = 3

// fence puts an answer between the tags of a fence. Profile veritas-0.1 leaves the
// control tokens of chat templates in texts, since the RFC drops no visible
// character; here a model's own tokenizer reads the JSON, so what profile faithful
// would remove is spelled in JSON's escapes. A reader of JSON sees no difference.
func (s *mcpServer) fence(tool string, answer []byte) string {
	text := string(answer)
	var res scrub.Result
	s.plain.Scrub(text, &res)
	for i := 0; i < maxEscapes && res.Changed(); i++ {
		escaped := escape(text, res.Edits)
		if !equalJSON(text, escaped) {
			break
		}
		text = escaped
		s.plain.Scrub(text, &res)
	}
	return s.o.Key().Fence(frame.Origin{Server: serverName, Tool: tool}, res.Clean)
}

// escape writes the parts of text, which is JSON, that events are about as \uXXXX.
// What it makes is the same JSON only where they are inside of strings.
func escape(text string, events []scrub.Edit) string {
	var out []byte
	done := 0
	for _, e := range events {
		out = append(out, text[done:e.Start]...)
		for _, r := range text[e.Start:e.End] {
			for _, u := range utf16.AppendRune(nil, r) {
				out = fmt.Appendf(out, `\u%04x`, u)
			}
		}
		done = e.End
	}
	return string(append(out, text[done:]...))
}

// equalJSON reports whether x and y are the same value, in two spellings.
func equalJSON(x, y string) bool {
	lim := strictjson.Limits{Bytes: 8 * maxAnswer, Values: maxAnswer}
	cx, err := strictjson.Canonical(nil, []byte(x), lim)
	if err != nil {
		return false
	}
	cy, err := strictjson.Canonical(nil, []byte(y), lim)
	return err == nil && bytes.Equal(cx, cy)
}
