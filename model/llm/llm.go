// SPDX-License-Identifier: Apache-2.0

// Package llm completes conversations with language models of several providers, under limits, and keeps the bytes of each exchange.
//
// It speaks the wire formats of package format with small clients of its own, because
// the request and the answer are evidence: a Response holds the bytes of both, and an
// observer sees every retry and every wait. What a model or its provider
// says is third-party text: it stands in a Response and in Bytes, never in an error.
package llm

import (
	"context"
	"net/http"
	"time"

	"github.com/pellucid-mcp/pellucid/model/format"
)

// A Client completes conversations. Its methods may be called at the same time.
type Client interface {
	// Complete asks for one turn of the assistant. The error is an *Error.
	Complete(ctx context.Context, req Request) (Response, error)
}

// A Request is a conversation to be continued by one turn. The zero values ask for
// the most reproducible answer: temperature 0, no tools, no stream.
type Request struct {
	System   string
	Messages []Message // at least one
	Tools    []Tool
	Choice   format.Choice

	MaxTokens   int     // of the answer; 0 = 4096
	Temperature float64 // 0 to 2
	Seed        *int64  // for providers that have one (format.Chat); nil = none

	// CachePrefix marks the end of tools and system for the provider's prompt cache,
	// where a format has such a mark (format.Messages); others cache by themselves.
	CachePrefix bool

	// InputTokens is an upper bound that the caller knows for the tokens of this
	// request, by which budgets reserve: a variant from which only something was taken
	// away costs no more than its base did. 0 = one token a byte of the request and
	// 1,024 for what the provider adds, which no tokenizer of today exceeds.
	InputTokens int

	// Budgets are charged by this request, beside the client's own. One that has not
	// enough left refuses an attempt before it is made.
	Budgets []*Budget

	// Raw, if it is not nil, is sent as it is instead of all that stands above but
	// InputTokens: a conversation that this type cannot hold, or one of which every
	// byte matters. It is a strict JSON object in the endpoint's format, names its
	// model, bounds its answer by a member of its own, wants one answer, and asks for a
	// stream if and only if Stream is set. Calls of tools that Tools does not name are
	// marked as unknown all the same.
	Raw []byte
	// Path, if it is not empty, stands behind the base URL in the place of the format's own
	// path, with its query: a proxy asks where its client has asked. It may name the model
	// then, in the place of Raw.
	Path string

	// Header goes out beside the headers of the format, and in the place of those of the
	// same name, the key's among them: a proxy asks in its client's name. It is kept
	// nowhere: no error or Attempt holds it.
	Header http.Header

	// Stream asks for the answer in pieces and is called with each, by the goroutine
	// of Complete. An error ends the call. Once a piece was handed over there is no
	// further attempt: who has seen the beginning of one answer gets no other's.
	Stream func(Delta) error

	// Observe is called after every attempt, beside the client's own.
	Observe func(Attempt)
}

// What a conversation is made of.
type (
	Message = format.Message
	Tool    = format.Tool
)

// The roles of messages, and which tools the model may call.
const (
	User       = format.RoleUser
	Assistant  = format.RoleAssistant
	ToolResult = format.RoleTool

	ChooseAuto = format.ChooseAuto
	ChooseNone = format.ChooseNone
	ChooseAny  = format.ChooseAny
)

// A ToolCall is a call that the model proposes, or proposed. Its strings are
// third-party text.
type ToolCall struct {
	ID, Name  string
	Arguments []byte // as the model spelled them; a strict JSON object if Problem is ""
	Problem   Problem
}

// A Problem says what is wrong with a tool call. Such a call is reported, not
// mended, and not dropped: whoever would execute it has to refuse.
type Problem string

// The problems. The empty Problem means no problem.
const (
	ProblemName      Problem = "bad-name"         // empty or longer than 256 bytes
	ProblemUnknown   Problem = "unknown-tool"     // not one of the request's
	ProblemID        Problem = "bad-id"           // empty or longer than 256 bytes
	ProblemTwice     Problem = "duplicate-id"     // that of another call of this answer
	ProblemArguments Problem = "bad-arguments"    // not strict JSON: cut off, duplicate names, more than one value
	ProblemNoObject  Problem = "arguments-type"   // JSON, but not an object
	ProblemKind      Problem = "unsupported-kind" // a call of something that is no function
)

// A Response is one turn of the assistant. Its strings are third-party text.
type Response struct {
	Text      string
	Refusal   string // in the model's words, where the provider keeps them apart
	Reasoning string // where the provider shows it
	Calls     []ToolCall
	Stop      format.Stop
	Usage     format.Usage

	ID          string // of the answer, by the provider
	Model       string // that has answered, by the provider: may name a version
	Fingerprint string // of the provider's system; "" if it has none

	Attempts int           // made for this request, the last included
	Duration time.Duration // of the last attempt

	Request, Answer Bytes // of the last attempt
}

// Whole reports whether the model ended by itself: it was neither cut off nor
// refused nor wanted anything else.
func (r *Response) Whole() bool {
	return r.Stop == format.StopEnd && r.Refusal == "" && len(r.Calls) == 0
}

// A DeltaKind says what a piece of an answer belongs to.
type DeltaKind uint8

// The kinds.
const (
	DeltaText DeltaKind = iota
	DeltaReasoning
	DeltaRefusal
	DeltaCall      // a tool call begins: Call holds its id and name
	DeltaArguments // more of the arguments of a tool call
)

// A Delta is a piece of an answer that is still coming in: third-party text.
type Delta struct {
	Kind  DeltaKind
	Text  string
	Index int      // of the tool call, from 0
	Call  ToolCall // of DeltaCall: ID and Name, unchecked
}
