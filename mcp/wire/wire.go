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
// ID is a string of at most 4 KiB or a number of at most 256 bytes, which comes
// back as its bytes; an error response may carry null or no id. Any other top-level member is refused:
// two peers that read the same bytes must never see two messages.
package wire

import (
	"context"
	"errors"
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
	// ErrSessionGone: the upstream knows neither our session nor a new one.
	ErrSessionGone = errors.New("wire: session ended by the peer")
	// ErrRenewed: the upstream had forgotten our session and has opened a new one. The request
	// was not carried out: see [Message.Recheck].
	ErrRenewed = errors.New("wire: session made anew")
	// ErrClosed: the Conn was closed on this side.
	ErrClosed = errors.New("wire: connection closed")
	// ErrTooLong: a message is longer than the limits allow. A [Violation] is one where
	// the rest could be skipped, else it is a Message's Cause.
	ErrTooLong = errors.New("wire: message too long")
	// ErrPeerClosed: the peer no longer takes messages.
	ErrPeerClosed = errors.New("wire: peer closed its input")
)

// A Claim is what the headers of a request say about its message: decoded, and not trusted.
type Claim struct {
	Name   string            // Mcp-Name; empty without the header
	Params map[string]string // Mcp-Param-*, without prefix and in lower case
}

// Route holds the values that streamable HTTP puts into headers. They are plain text; the
// transport encodes characters that a header cannot carry.
type Route struct {
	Version string            // MCP-Protocol-Version; empty = as negotiated by initialize
	Name    string            // Mcp-Name
	Params  map[string]string // Mcp-Param-* (already without prefix)
	Cancels ID                // for notifications/cancelled: the request whose stream a modern transport closes
}

// The names that a transport has to know of MCP. All others are in package mcpmsg.
const (
	methodInitialize  = "initialize"
	methodInitialized = "notifications/initialized"
	methodSetLevel    = "logging/setLevel"
	methodSubscribe   = "resources/subscribe"
	methodUnsubscribe = "resources/unsubscribe"
	methodCancelled   = "notifications/cancelled"
	methodListen      = "subscriptions/listen"
	methodPing        = "ping"
	keyVersion        = "io.modelcontextprotocol/protocolVersion" // of _meta
)

// A Conn is one side of a connection. It gives every message that it reads to its Receiver, and Write
// sends a message.
//
// Layers (the boundary, the translation between the eras, the union of servers) are Conns and Receivers
// around each other. None of them has a goroutine of its own: the goroutine that has read a message
// carries it through every layer to the other side. So three rules hold for each layer:
//
//   - A caller of a Conn or a Receiver holds no lock.
//   - Several goroutines may call a Receiver at a time, unless all messages come on one stream.
//   - A method of a Receiver that waits delays only the stream of its message.
type Conn interface {
	// Start begins to deliver messages to r, and returns. It is called once. No message is delivered
	// before it.
	Start(r Receiver)
	// Write sends a message, and owns it from then on, also if it fails. It is safe for concurrent
	// use. It may call the Receiver before it returns.
	Write(ctx context.Context, m *Message) error
	// Close ends the Conn. A Receiver may call it, so it does not wait: the call of Ended is the end.
	Close() error
}

// A Receiver takes the messages of a Conn. Messages of one stream come in order: each one after the
// call for the one before has returned.
type Receiver interface {
	// Message takes a parsed message, which the Receiver owns from then on.
	Message(m *Message)
	// Violation takes the description of bytes that are not an acceptable message.
	Violation(v *Violation)
	// Ended is called once, after every other call has returned. err says why no more messages come:
	// io.EOF if the peer has ended the connection, ErrClosed if this side has.
	Ended(err error)
}

// A ReadConn is one side of a connection for a program that waits for one answer after the other.
// Read returns io.EOF when the peer has ended the connection. After a *Violation from Read the
// ReadConn is still usable. A message from Read is parsed. Write owns its message from then on, also
// if it fails. Write is safe for concurrent use; Read is for one goroutine.
type ReadConn interface {
	Read(ctx context.Context) (*Message, error)
	Write(ctx context.Context, m *Message) error
	Close() error
}
