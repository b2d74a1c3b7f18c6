// SPDX-License-Identifier: Apache-2.0

// Package wire frames MCP messages: stdio lines, streamable HTTP, SSE, under limits, as strict JSON-RPC.
//
// A message is one JSON object, exactly one of:
//
//	{"jsonrpc":"2.0","id":ID,"method":M,"params":{…}}     a request; params may be absent
//	{"jsonrpc":"2.0","method":M,"params":{…}}             a notification
//	{"jsonrpc":"2.0","id":ID,"result":{…}}                a response
//	{"jsonrpc":"2.0","id":ID,"error":{"code":N,"message":S,"data":…}}
//
// ID is a string of at most 256 bytes or an integer within ±2^53; an error
// response may carry null or no id. Any other top-level member is refused:
// two peers that read the same bytes must never see two messages.
package wire

import (
	"context"
	"errors"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Kind is the shape of a message.
type Kind uint8

// The four shapes.
const (
	Request Kind = iota + 1
	Notification
	Response
	ErrorResponse
)

// Sentinels. A caller branches on them with errors.Is.
var (
	// ErrUnreachable: no connection to the peer could be made (refused, no such host, TLS).
	ErrUnreachable = errors.New("wire: peer unreachable")
	// ErrSessionGone: the HTTP upstream no longer knows our session; the Conn has ended.
	ErrSessionGone = errors.New("wire: session ended by the peer")
	// ErrClosed: the Conn was closed on this side.
	ErrClosed = errors.New("wire: connection closed")
	// ErrTooLong: a message is longer than the limits allow. A [Violation] is one where
	// the rest could be skipped, else it is a Message's Cause.
	ErrTooLong = errors.New("wire: message too long")
	// ErrPeerClosed: the peer no longer takes messages.
	ErrPeerClosed = errors.New("wire: peer closed its input")
)

// A Message is one strictly decoded JSON-RPC 2.0 message. Its values alias
// bytes that the Message owns: they are valid until Release.
type Message struct {
	Kind                  Kind
	ID                    ID
	Method                string
	Params, Result, Error strictjson.Value
	Doc                   *strictjson.Doc

	// Alias is how the peer itself spells ID where its Conn has given the
	// message an ID of its own, because another of its requests may bear the
	// same; zero = ID. What is sent to the peer has to show it.
	Alias ID
	// Related is the request of ours on whose stream the message came; zero if
	// it came on no request's stream, or the transport has no streams.
	Related ID
	// Whole says that an answer came as one body and not in a stream.
	Whole bool
	// Claim is what the peer's headers say of the message; nil where the
	// transport has none, or the revision does not ask for them. Whoever decides
	// does so on the body and refuses what differs.
	Claim *Claim

	// Local is set on an error response that this package made itself on
	// behalf of a peer that did not answer: its text is constant and ours.
	Local bool
	// Cause is set with Local and says why; it may wrap [ErrUnreachable] or
	// [ErrSessionGone]. For the operator: it never goes to the other peer.
	Cause error

	buf []byte // pooled bytes that Doc aliases; nil if shared or not pooled
}

// Release gives the message's bytes back for reuse. Calling it is optional;
// after it no value of the message, and nothing that aliases one, may be used.
func (m *Message) Release() {
	if m == nil || m.buf == nil {
		return
	}
	b, d := m.buf, m.Doc
	*m = Message{}
	PutBuffer(b)
	putDoc(d)
}

// A Claim is what headers say of a message: decoded, and believed by nobody.
type Claim struct {
	Name   string            // Mcp-Name; empty = there is none
	Params map[string]string // Mcp-Param-*, without prefix and in lower case
}

// Outgoing is a message on its way out, with what a transport must know of it.
type Outgoing struct {
	Raw    []byte // one message; a transport may retain it until the Conn is closed
	Kind   Kind
	ID     ID // of the Message that is answered; Raw may show its Alias
	Method string
	Route  Route

	Related ID   // the peer's request that a request or notification belongs to; zero = none
	Whole   bool // an answer that may go as one body, as it came
}

// Route is what streamable HTTP puts into headers. Values are given plain; the
// transport encodes what a header cannot carry.
type Route struct {
	Version string            // MCP-Protocol-Version; empty = as negotiated by initialize
	Name    string            // Mcp-Name
	Params  map[string]string // Mcp-Param-* (already without prefix)
	Cancels ID                // for notifications/cancelled: the request whose stream a modern transport closes
}

// What a transport has to know of MCP; all else is in package mcpmsg.
const (
	methodInitialize  = "initialize"
	methodInitialized = "notifications/initialized"
	methodCancelled   = "notifications/cancelled"
	methodListen      = "subscriptions/listen"
	keyVersion        = "io.modelcontextprotocol/protocolVersion" // of _meta
)

// Conn is one side of a conversation. Read returns io.EOF when the peer is gone; a *Violation from Read
// leaves the Conn usable. Write is safe for concurrent use; Read is for one reader.
type Conn interface {
	Read(ctx context.Context) (*Message, error)
	Write(ctx context.Context, m *Outgoing) error
	Close() error
}
