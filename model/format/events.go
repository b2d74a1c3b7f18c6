// SPDX-License-Identifier: Apache-2.0

package format

import "github.com/pellucid-mcp/pellucid/text/eventstream"

// A Splitter finds the events of a stream that comes in pieces, as eventstream.Decoder
// does. An error is final, and eventstream.ErrTooLong or about what cannot be read; Rest then holds everything from the place on where it is.
type Splitter interface {
	Feed(p []byte)
	Next() (eventstream.Event, bool, error)
	Rest() []byte
}

// sse is the framing of formats that stream server-sent events.
type sse struct{}

func (sse) ContentType() string { return "text/event-stream" }

func (sse) Split(most int, raw bool) Splitter { return &eventstream.Decoder{Raw: raw, Max: most} }

func (s sse) AppendBeat(dst []byte) []byte { return s.AppendComment(dst, "held") }

func (sse) AppendComment(dst []byte, text string) []byte { return append(dst, ": "+text+"\n\n"...) }
