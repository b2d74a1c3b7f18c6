// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"io"

	"github.com/pellucid-mcp/pellucid/text/eventstream"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

const (
	maxEventID = eventstream.MaxID
	maxRetry   = eventstream.MaxRetry
)

// newEvents returns a reader of server-sent events. The data of each is in a buffer of the
// pool, and the receiver's own.
func newEvents(r io.Reader, l strictjson.Limits) *eventstream.Reader {
	return &eventstream.Reader{R: r, Decoder: eventstream.Decoder{Max: maxMessage(l), Append: appendPooled}}
}

func appendPooled(b, more []byte) []byte {
	if need := len(b) + len(more); need > cap(b) {
		grown := append(GetBuffer(max(need, 2*len(b))), b...)
		PutBuffer(b)
		b = grown
	}
	return append(b, more...)
}

// messageOf returns what an event of MCP carries, or why it is not a message; nil twice
// for an event that is about something else. It owns the event's data.
func messageOf(e eventstream.Event, l strictjson.Limits) (*Message, *Violation) {
	if e.Name != "" && e.Name != "message" || len(e.Data) == 0 {
		PutBuffer(e.Data)
		return nil, nil
	}
	m, err := Decode(e.Data, l)
	if err != nil {
		PutBuffer(e.Data)
		return nil, violationOf(err)
	}
	m.buf = e.Data
	return m, nil
}
