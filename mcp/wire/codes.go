// SPDX-License-Identifier: Apache-2.0

package wire

// Codes of JSON-RPC. A [Violation] carries one of the first two.
const (
	CodeParse    = -32700 // not strict JSON
	CodeInvalid  = -32600 // JSON, but not a message, or over a limit
	CodeNoMethod = -32601
	CodeParams   = -32602 // not those of the method
	CodeInternal = -32603
)

// Codes that MCP reserves.
const (
	CodeHeaderMismatch     = -32020 // a header and the body differ; from 2026-07-28 on, like the next two
	CodeMissingCapability  = -32021 // of the client
	CodeUnsupportedVersion = -32022
	CodeNoResource         = -32002 // to 2025-11-25; then CodeParams
	CodeURLElicitation     = -32042 // 2025-11-25 only
)

// All codes of our own, of every package, in one place, so that each means one thing.
// They lie outside -32768..-32000, which JSON-RPC reserves, and come with constant
// texts. docs/spec/errors.md lists them.

// Codes of the error responses that this package makes itself (Message.Local).
const (
	codeUnreachable  = 7401 // no connection to the upstream
	codeStatus       = 7402 // the upstream answered with an HTTP status of failure
	codeBadAnswer    = 7403 // the upstream's answer was no acceptable message
	codeCut          = 7404 // the upstream's answer ended early
	codeSessionGone  = 7405 // the upstream ended the session
	codeUnauthorized = 7406 // the upstream asked for credentials
	codeNoSession    = 7407 // the client names no session that it has here
	codeOverloaded   = 7408 // no room for another session or request, or shutting down
	codeNotKept      = 7409 // the store of what sessions survive by is away
	codeLost         = 7410 // the answer is lost: the request may have been carried out
)

// Codes of package gateway: what the boundary says in a server's place.
const (
	CodeWithheld     = 7501 // the answer could not be made safe
	CodeTimeout      = 7502 // no answer in time
	CodeGone         = 7503 // the server is gone
	CodeBusy         = 7504 // too many requests under way
	CodeUnacceptable = 7505 // the answer was not acceptable MCP
	CodeDenied       = 7506 // by policy
	CodeUnsent       = 7507 // the request could not be passed on
	CodeClientGone   = 7508 // the client did not answer
	CodeUnapproved   = 7509 // what the server says of it differs from what was approved
	CodeUnrecorded   = 7510 // the decision could not be recorded
	CodeNoSampling   = 7512 // the server may not ask for sampling
	CodeNoRoom       = 7513 // too much is under way to look at the answer
	CodeHeld         = 7514 // the answer waits for a person
)

// Codes of packages fleet and admit: whether there is a server at all.
const (
	CodeAbsent   = 7601 // it is gone, or was never there
	CodeQueued   = 7602 // too much waits for it
	CodeRejected = 7603 // what it says of itself was refused
)

// Codes of package era: a client and a server of different eras.
const (
	CodeSilent       = 7701 // no answer in time
	CodeHandshake    = 7702 // the server could not be initialized
	CodeRounds       = 7703 // the server asked for input too often
	CodeInput        = 7704 // the client did not give the input that the server asked for
	CodeEraAnswer    = 7705 // the answer was not acceptable MCP
	CodeEraBusy      = 7706 // too many requests under way
	CodeExpired      = 7707 // the client did not come back in time
	CodeUnsubscribed = 7708 // the server did not accept the subscription
)

// Codes of package ground: the grounding adapter as a server.
const (
	CodeUnavailable   = 7801 // attestations cannot be read
	CodeGroundTooLong = 7802 // the message
	CodeGroundBusy    = 7803 // too many requests under way
	CodeTooSlow       = 7804 // the message did not arrive in time
	CodeRefused       = 7805 // the request
)
