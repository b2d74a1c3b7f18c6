// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A signal is a member of a result's _meta that is ours.
type signal struct {
	key string
	raw []byte
}

// appendSignals appends them as an object. Their keys need no escape.
func appendSignals(dst []byte, signals []signal) []byte {
	for i, s := range signals {
		dst = append(append(dst, "{,"[min(i, 1)], '"'), s.key...)
		dst = append(append(dst, `":`...), s.raw...)
	}
	return append(dst, '}')
}

// signals finds what a program should know of a result, beside its provenance.
func (in *inspection) signals(root strictjson.Value) (all []signal) {
	if in.row.Mark != mcpmsg.Always || in.p.msg.Kind != wire.Response {
		return nil
	}
	if in.w.llm != nil && isToolResult(in.row) && isAnswer(root) {
		if raw := in.describe(root); raw != nil {
			all = append(all, signal{llmKey, raw})
			in.w.notFramed.Add("_meta/" + llmKey)
		}
	}
	if in.w.grounded {
		if raw := in.grounding(root); raw != nil {
			all = append(all, signal{groundingKey, raw})
		}
	}
	return all
}

// isToolResult reports whether the row is the result of a tool.
func isToolResult(row *mcpmsg.Row) bool {
	return row.Method == mcpmsg.CallTool || row.Method == mcpmsg.TaskResult
}
