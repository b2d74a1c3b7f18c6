// SPDX-License-Identifier: Apache-2.0

// Package format reads and writes the wire formats of providers of language models.
//
// All that is known of one format stands in the files that have its name. A Format reads a
// request into Places, whose Values lie in the bytes of the request, and an answer, whole or
// as a stream of events, into Parts. What a Place or a Part means for safety is decided by
// the packages above, which see the same call in the same bytes. What a request and a
// provider say is third-party text: it stands in Places, Parts and Answers, and in no error.
package format

import (
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/eventstream"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Name names a wire format in configurations and records.
type Name string

// The names.
const (
	Chat      Name = "openai-chat"        // POST BASE/chat/completions
	Responses Name = "openai-responses"   // POST BASE/responses
	Messages  Name = "anthropic-messages" // POST BASE/messages

	Gemini      Name = "google-gemini"       // POST BASE/models/ID:generateContent, or :streamGenerateContent?alt=sse
	GeminiArray Name = "google-gemini-array" // the same, with streams that are one JSON array
)

// A Format is one wire format.
type Format interface {
	Answers
	Requests
}

// Answers is what a Format knows of answers.
type Answers interface {
	Name() Name
	// Path is appended to the base URL of a provider, such as "/chat/completions". Some
	// formats name the model in it, and ask for a stream by it.
	Path(model string, stream bool) string
	// Read reads the body of an answer that is not streamed.
	Read(root strictjson.Value) *Answer
	// NewStream reads a streamed answer.
	NewStream() Stream
	// ContentType is that of a streamed answer, such as "text/event-stream".
	ContentType() string
	// Split finds the events of a streamed answer; an event has at most so many bytes. raw:
	// Event.Raw and Event.Odd are wanted.
	Split(most int, raw bool) Splitter
	// AppendBeat appends an event that clients pass over: a sign of life.
	AppendBeat(dst []byte) []byte
	// AppendComment appends a comment, which is one line of text, to a streamed answer; nothing
	// where the format, or a client of its provider, has no comments.
	AppendComment(dst []byte, text string) []byte

	// AppendText appends the body of an answer of the model with that name that says text
	// and calls no tool. id is made of letters, digits, '-' and '_'.
	AppendText(dst []byte, id, model, text string) []byte
	// AppendEvents appends the events that stream the answer whose body is root.
	AppendEvents(dst []byte, root strictjson.Value) []byte
	// AppendNotice appends an answer, whose body is root, with a text before what the model says.
	AppendNotice(dst []byte, root strictjson.Value, text string) []byte
	// AppendError appends the body of an error. kind is a word of the format, such as
	// "invalid_request_error".
	AppendError(dst []byte, kind, text string) []byte
}

// Requests is what a Format knows of requests.
type Requests interface {
	// List is the member of a request that holds the list of its messages.
	List() string
	// Looks says how much a request, or the bare list of its messages, looks like one.
	Looks(root strictjson.Value) Likeness
	// Asks reads what a request asks for, beside its context.
	Asks(root strictjson.Value) Asked
	// Places calls each with the places of a request, or of the bare list of its messages, in
	// their order. It reports whether it is a request of the format.
	Places(root strictjson.Value, each func(Place)) bool
	// Question edits a request so that to ask does nothing else: one answer of at most answer
	// tokens (0: what the request says, else 4096), no stream, nothing that the provider keeps,
	// and no tool that it would run by itself. It returns the bound of the answer.
	Question(e *strictjson.Edits, root strictjson.Value, answer int64) (int64, error)
	// AppendRequest appends the request for r. The error is about what the format, or JSON,
	// cannot say.
	AppendRequest(dst []byte, r *Request) ([]byte, error)
	// Sign sets the headers by which a request is signed, and says its version.
	Sign(key string, set func(name, value string))
}

// Of is the format of that name; nil if the name is not known.
func Of(n Name) Format {
	for _, f := range All {
		if f.Name() == n {
			return f
		}
	}
	return nil
}

// All are the formats.
var All = []Format{chat{}, responses{}, messages{}, gemini{}, geminiArray{}}

// A Stream reads one streamed answer. It keeps at most MaxKept bytes of text, cut there,
// and as many of arguments: a call that is longer is an OddCall.
type Stream interface {
	// Event reads the next event. parts are valid until the next call.
	Event(e eventstream.Event) (parts []Part, odd Odd)
	// Answer is what was read. Its Odd is what only the end shows: that the answer has none,
	// or is another one than the events before have said.
	Answer() *Answer
	// Whole reports whether the stream may end behind the last event, although no PartEnd has
	// said so: formats whose streams have no last event say why the answer ended.
	Whole() bool
	// Passed says that a client gets the event that was read last.
	Passed()
	// AppendTail appends events that end, with a text, the answer of which a client has got
	// the events that were Passed.
	AppendTail(dst []byte, text string) []byte
}

// Bounds of an answer.
const (
	MaxCalls = 128     // calls
	MaxKept  = 8 << 20 // bytes that a Stream keeps of texts, and of arguments
)

// An Odd is a set of reasons why an answer does not say for sure what it means.
type Odd uint8

// The reasons.
const (
	// OddCall: something is there that is not read here and that another reader may take for
	// a call: a part of an unknown kind, a name that is almost that of a member, a second
	// answer, an event that cannot be read.
	OddCall Odd = 1 << iota
	// OddOrder: events do not follow each other as the format has it, so that readers may
	// put a piece of a call into different places.
	OddOrder
	// OddShape: something else is not as the format has it. No call can hide there.
	OddShape
)

// A PartKind says what a Part is.
type PartKind uint8

// The kinds.
const (
	PartOther     PartKind = iota // of the answer, and of no kind below: a client may show it
	PartText                      // Text
	PartReasoning                 // Text
	PartRefusal                   // Text: in the model's words, where the format keeps them apart
	PartCall                      // Call; in a stream it begins, and Index counts it from 0
	PartArguments                 // Text: a piece of the arguments of the call Index
	PartCallWhole                 // Call: in a stream, a call that is done
	PartServed                    // the provider has run, or runs, a tool by itself
	PartError                     // Value: the object in which the provider reports an error
	PartEnd                       // the answer is over
)

// A Part is a part of an answer. Its strings are third-party text.
type Part struct {
	Kind  PartKind
	Text  string
	Index int
	Call  Call
	Value strictjson.Value
	// Paragraph: the text begins a text of its own.
	Paragraph bool
}

// A CallKind says in which of several ways a format spells a call.
type CallKind uint8

// The kinds.
const (
	CallFunction CallKind = iota // of a tool of the request
	CallLegacy                   // function_call of chat completions, before there were tools
	CallCustom                   // of a tool whose arguments are a text and no object
	CallOther                    // of another kind; Name may be empty
	CallWritten                  // in a text of the model: see Written
)

// A Call is a call of a tool that a model proposes.
type Call struct {
	ID, Name  string
	Kind      CallKind
	Arguments []byte // as the model spelled them; "{}" for none
}

// An Answer is one turn of a model.
type Answer struct {
	ID, Model, Fingerprint string // by the provider; "" where it does not say
	Parts                  []Part // of a body; of a stream its texts and calls, put together
	Stop                   Stop   // "" where the provider does not say
	Usage                  Usage
	// Fetched: the provider has run something before the answer was complete, and the model
	// has read the result, which is in no request.
	Fetched bool
	Odd     Odd
}

// Text joins the texts of a kind. between stands between paragraphs.
func (a *Answer) Text(kind PartKind, between string) string {
	var b strings.Builder
	for i := range a.Parts {
		p := &a.Parts[i]
		if p.Kind != kind || p.Text == "" {
			continue
		}
		if b.Len() > 0 && p.Paragraph {
			b.WriteString(between)
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

// Calls are the calls of an answer, in their order.
func (a *Answer) Calls() (calls []Call) {
	for i := range a.Parts {
		if a.Parts[i].Kind == PartCall {
			calls = append(calls, a.Parts[i].Call)
		}
	}
	return calls
}

// Own reports whether the answer is all the model's: no tool was run by the provider.
func (a *Answer) Own() bool {
	return !slices.ContainsFunc(a.Parts, func(p Part) bool { return p.Kind == PartServed })
}

// Failed is the object in which the provider reports an error; absent where it does not.
func (a *Answer) Failed() strictjson.Value {
	for i := range a.Parts {
		if a.Parts[i].Kind == PartError {
			return a.Parts[i].Value
		}
	}
	return strictjson.Value{}
}

// A Stop says why an answer ended.
type Stop string

// The reasons, the same for every provider.
const (
	StopEnd      Stop = "end"        // the model had said all
	StopCalls    Stop = "tool-calls" // it waits for the results of its calls
	StopLength   Stop = "length"     // the bound of the answer or the context was used up
	StopSequence Stop = "sequence"
	StopRefusal  Stop = "refusal"        // the model refused
	StopFilter   Stop = "content-filter" // the provider held the answer back
	StopPause    Stop = "pause"          // the provider wants to be asked to go on
	StopOther    Stop = "other"          // not said, or a reason that this package does not know
)

// Usage is what an answer has consumed, in tokens, as the provider counts.
type Usage struct {
	Known      bool  // the provider has said; the rest is 0 otherwise
	Input      int64 // all of the request, cached or not
	Cached     int64 // of Input: read from the prompt cache
	CacheWrite int64 // of Input: written to it
	Output     int64 // all of the answer, reasoning included
	Reasoning  int64 // of Output
}
