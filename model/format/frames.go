// SPDX-License-Identifier: Apache-2.0

package format

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/awsstream"
	"github.com/pellucid-mcp/pellucid/text/eventstream"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

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

// frames is the framing of Amazon Bedrock's formats: application/vnd.amazon.eventstream.
type frames struct{}

func (frames) ContentType() string { return "application/vnd.amazon.eventstream" }

// Split returns events whose name is the type of the message: for an exception
// ":exception" and for an error ":error", which no event can be called.
func (frames) Split(most int, _ bool) Splitter {
	return &frameSplitter{d: awsstream.Decoder{Max: most}}
}

// AppendBeat appends an event of a type that no client knows: by the interface's own rule
// clients pass over it.
func (frames) AppendBeat(dst []byte) []byte { return appendFrame(dst, "pellucidHeld", []byte("{}")) }

func (frames) AppendComment(dst []byte, _ string) []byte { return dst }

func appendFrame(dst []byte, name string, payload []byte) []byte {
	return awsstream.Append(dst, payload, ":event-type", name, ":content-type", "application/json", ":message-type", "event")
}

// framed appends, as messages, the events that are written in sse.
func framed(dst, sse []byte, appendEvent func(dst []byte, e *eventstream.Event) []byte) []byte {
	d := eventstream.Decoder{Max: len(sse)}
	d.Feed(sse)
	for e, ok, _ := d.Next(); ok; e, ok, _ = d.Next() {
		dst = appendEvent(dst, &e)
	}
	return dst
}

// What the types of messages are called here; an event cannot be called so.
const (
	frameException = ":exception"
	frameError     = ":error"
)

// frameHeaders are the headers that say what a message is.
var frameHeaders = []string{":message-type", ":event-type", ":exception-type", ":error-code", ":error-message", ":content-type"}

// A frameSplitter finds the messages of a stream.
type frameSplitter struct{ d awsstream.Decoder }

func (s *frameSplitter) Feed(p []byte) { s.d.Feed(p) }
func (s *frameSplitter) Rest() []byte  { return s.d.Rest() }

func (s *frameSplitter) Next() (eventstream.Event, bool, error) {
	m, ok, err := s.d.Next()
	if errors.Is(err, awsstream.ErrTooLong) {
		err = eventstream.ErrTooLong
	}
	if !ok {
		return eventstream.Event{}, false, err
	}
	e := eventstream.Event{Data: slices.Clone(m.Payload), HasData: true, Raw: m.Raw}
	switch m.Text(":message-type") {
	case "event":
		e.Name = m.Text(":event-type")
		e.Odd = e.Name == "" || strings.HasPrefix(e.Name, ":")
	case "exception":
		e.Name = frameException
	case "error":
		e.Name = frameError
	default:
		e.Odd = true
	}
	// Another reader may not mind the case of a name, or the type of a value.
	for i := range m.Headers {
		h := &m.Headers[i]
		for _, name := range frameHeaders {
			e.Odd = e.Odd || strings.EqualFold(h.Name, name) && (h.Name != name || h.Type != awsstream.Text)
		}
	}
	return e, true, nil
}

// frameFailed is the object in which a message reports an error. It is no part of the
// message where the message is no exception, or cannot be read.
func frameFailed(e *eventstream.Event) (strictjson.Value, bool) {
	if e.Odd || e.Name != frameException && e.Name != frameError {
		return strictjson.Value{}, false
	}
	v := Parse(e.Data)
	if !v.Exists() {
		v = Parse([]byte("{}"))
	}
	return v, true
}

// bedrockMessages is Anthropic's messages as Amazon Bedrock's InvokeModel has them: the
// model stands in the path, and each event of a stream is the base64 text in a chunk.
type bedrockMessages struct {
	messages
	frames
}

func (bedrockMessages) Split(most int, raw bool) Splitter {
	return &chunkSplitter{frames{}.Split(most, raw)}
}

func (bedrockMessages) AppendBeat(dst []byte) []byte {
	return appendChunk(dst, []byte(`{"type":"ping"}`))
}

func (bedrockMessages) Name() Name { return BedrockMessages }

func (bedrockMessages) Path(model string, stream bool) string {
	if stream {
		return bedrockPath(model, "invoke-with-response-stream")
	}
	return bedrockPath(model, "invoke")
}

// bedrockPath is the path of an operation, with the model's id spelled as Amazon's clients do.
func bedrockPath(model, operation string) string {
	return "/model/" + strings.NewReplacer(":", "%3A", "/", "%2F").Replace(model) + "/" + operation
}

func (bedrockMessages) NewStream() Stream { return chunkStream{&messagesStream{}} }

func (bedrockMessages) AppendEvents(dst []byte, root strictjson.Value) []byte {
	return chunked(dst, messages{}.AppendEvents(nil, root))
}

func (bedrockMessages) AppendError(dst []byte, kind, text string) []byte {
	return converse{}.AppendError(dst, kind, text)
}

type chunkStream struct{ *messagesStream }

func (s chunkStream) Event(e eventstream.Event) ([]Part, Odd) {
	if v, failed := frameFailed(&e); failed {
		s.odd, s.parts = 0, append(s.parts[:0], Part{Kind: PartError, Value: v})
		return s.parts, 0
	}
	return s.messagesStream.Event(e)
}

func (s chunkStream) AppendTail(dst []byte, text string) []byte {
	return chunked(dst, s.messagesStream.AppendTail(nil, text))
}

func chunked(dst, sse []byte) []byte {
	return framed(dst, sse, func(dst []byte, e *eventstream.Event) []byte { return appendChunk(dst, e.Data) })
}

func appendChunk(dst, data []byte) []byte {
	payload := base64.StdEncoding.AppendEncode([]byte(`{"bytes":"`), data)
	return appendFrame(dst, "chunk", append(payload, `"}`...))
}

// A chunkSplitter takes the events out of chunks. An event of another type has no data.
type chunkSplitter struct{ Splitter }

func (s *chunkSplitter) Next() (eventstream.Event, bool, error) {
	e, ok, err := s.Splitter.Next()
	if !ok || e.Odd || e.Name == frameException || e.Name == frameError {
		return e, ok, err
	}
	data := e.Data
	e.Data, e.HasData = nil, false
	if e.Name != "chunk" {
		e.Odd = strings.EqualFold(e.Name, "chunk")
		e.Name = ""
		return e, true, nil
	}
	e.Name = ""
	v := Parse(data)
	_, stray := v.Strays([]string{"bytes"})
	if at := v.Get("bytes"); stray || at.Kind() != '"' {
		e.Odd = true
	} else if e.Data, err = base64.StdEncoding.Strict().DecodeString(at.Text()); err != nil {
		e.Data, e.Odd = nil, true
	}
	e.HasData = !e.Odd
	return e, true, nil
}
