// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"io"
	"slices"

	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/platform/reuse"
	"github.com/pellucid-mcp/pellucid/text/eventstream"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

const (
	maxEventID = eventstream.MaxID
	maxRetry   = eventstream.MaxRetry
)

// eventReader reads messages out of server-sent events.
type eventReader struct {
	eventstream.Reader
	lim strictjson.Limits
	// growing are the Buffers to which the Reader appends: that of a line, and that of the data
	// of an event.
	growing []*reuse.Buffer
	in      arrival
}

func newEvents(ctx context.Context, r io.Reader, l strictjson.Limits, newRoom func() *intake.Room) *eventReader {
	es := &eventReader{lim: l, in: arrival{ctx: ctx, newRoom: newRoom, patience: streamWait}}
	es.Reader = eventstream.Reader{R: r, Decoder: eventstream.Decoder{Max: maxMessage(l), Append: es.append}}
	return es
}

// append appends to a Buffer, of which b is the beginning: a new one where b has no memory.
func (es *eventReader) append(b, more []byte) []byte {
	i := es.find(b)
	if i < 0 {
		i = len(es.growing)
		es.growing = append(es.growing, reuse.NewBuffer(len(b)+len(more)))
	}
	buf := es.growing[i]
	buf.Set(b)
	buf.Append(more)
	return buf.Bytes()
}

// heldReader reserves memory for the event that arrives before it reads on.
type heldReader struct {
	io.Reader
	es *eventReader
}

func (h heldReader) Read(p []byte) (int, error) {
	es, n := h.es, len(p)
	for _, b := range es.growing {
		n += len(b.Bytes())
	}
	if err := es.in.reserve(n); err != nil {
		es.in.giveUp().Leave()
		return 0, err
	}
	return h.Reader.Read(p)
}

func (es *eventReader) find(b []byte) int {
	return slices.IndexFunc(es.growing, func(buf *reuse.Buffer) bool { return buf.Holds(b) })
}

// own is the Buffer of the event's data, which becomes the caller's; nil for no data.
func (es *eventReader) own(e eventstream.Event) *reuse.Buffer {
	i := es.find(e.Data)
	if i < 0 {
		return nil
	}
	buf := es.growing[i]
	es.growing = slices.Delete(es.growing, i, i+1)
	return buf
}

// message returns what an event of MCP carries, or why it is not a message; nil twice for an
// event that is about something else.
func (es *eventReader) message(e eventstream.Event) (*Message, *Violation) {
	buf, room := es.own(e), es.in.takeRoom()
	if e.Name != "" && e.Name != "message" || len(e.Data) == 0 {
		buf.Release()
		room.Leave()
		return nil, nil
	}
	m, err := Decode(e.Data, es.lim)
	if err != nil {
		buf.Release()
		room.Leave()
		return nil, violationOf(err)
	}
	m.buf, m.room = buf, room
	return m, nil
}
