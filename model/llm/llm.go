// SPDX-License-Identifier: Apache-2.0

// Package llm completes conversations with language models of several providers, under limits, and keeps the bytes of each exchange.
//
// It speaks the wire formats of package format with small clients of its own, because
// the request and the answer are evidence: a Response holds the bytes of both, and an
// observer sees every retry and every wait. What a model or its provider
// says is third-party text: it stands in a Response and in Bytes, never in an error.
//
// # Wire formats
//
//   - openai-chat: POST BASE/chat/completions; key in Authorization: Bearer; seed: yes; fingerprint: system_fingerprint
//   - openai-responses: POST BASE/responses, store: false; key in the same; seed: no; fingerprint: none
//   - anthropic-messages: POST BASE/messages, version 2023-06-01; key in X-Api-Key; seed: no; fingerprint: none
//   - google-gemini: POST BASE/models/MODEL:generateContent, and :streamGenerateContent?alt=sse; key in X-Goog-Api-Key; seed: yes; fingerprint: none
//   - google-gemini-array: the same, with streams that are one JSON array; key in X-Goog-Api-Key; seed: yes; fingerprint: none
//
// BASE is https, or http where its host is this machine; then it connects to this machine only, whatever the name resolves
// to. Redirects are not followed, proxies not asked, compressed answers refused.
//
// A request is JSON with its members in one order and without white space; schemas and arguments of tools stand in it
// as the caller spelled them. So one request has one spelling, and its SHA-256 names it. A request that the caller has
// written itself goes out to the byte, and may bring headers along in the place of those of the format.
//
// An answer is strict JSON. Members that are not known are passed over; content of
// a kind that was not asked for makes the answer malformed. So does a stream that contradicts itself: a
// second id, model, fingerprint or reason, events out of order, a last event that contradicts the pieces before
// it. A stream ends with its last event ([DONE], message_stop, response.completed); one that ends before it
// is cut.
//
// Arguments of a proposed tool call are one strict JSON object, or the call is marked with the error. It is
// neither repaired nor dropped. No arguments at all are {}.
//
// Embeddings (POST BASE/embeddings of OpenAI's interface, with the key as for openai-chat) have requests of
// one text, {"model":…,"input":[…],"encoding_format":"float"}. The text is cut at 8 KiB. The answer has to hold
// exactly one vector, of 1 to 16,384 numbers that are not all 0. Vectors are kept by the digest of their text, at most
// 1,024. Attempts and budgets are as below.
//
// # Attempts
//
// A request is repeated, three times by default, after a failure that may pass: no connection, a timeout, 408, 429,
// 5xx, a stream that was cut. It is not repeated once a piece of the answer has been handed on. The wait doubles from 0.5 s, is lengthened
// at random by up to a quarter, and is never shorter than Retry-After. A provider that asks for more than 30 s is
// not asked again. A 429 because a quota is used up, and every other 4xx, is final.
//
// After five failures in a row the circuit is open for 30 s; then one attempt decides. Errors of
// the caller and status 429 do not count as failures.
//
// # Budgets
//
// A budget has ceilings for calls (attempts that reach the wire), tokens and cost. Before each attempt its highest
// price is reserved, or it is not made:
//
//   - input: the caller's own bound, or one token for every byte of the request and 1,024 for additions of the provider;
//   - output: the largest answer asked for (4,096 tokens by default);
//   - cost: both at the highest price that could apply.
//
// Afterwards the usage that the provider states is charged, cached input at its own price. Without a usage, or
// with one that contradicts itself, the whole reserve is charged. An answer of an error costs a call and no tokens.
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
