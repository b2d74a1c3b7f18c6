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

// A Claim is what headers say of a message: decoded, and not believed.
type Claim struct {
	Name   string            // Mcp-Name; empty = none
	Params map[string]string // Mcp-Param-*, without prefix and in lower case
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

// A Conn is one side of a conversation. It calls its Receiver for what comes, and is written to.
//
// A Conn needs no goroutine between messages but those of its transport: an answer goes from the goroutine
// that has read it through every layer to the client. So three rules hold for each layer.
// A caller of a Conn or a Receiver holds no lock. A Receiver may be called by several goroutines at
// a time, unless all messages come on one stream. A method of a Receiver that waits holds up its own stream only.
type Conn interface {
	// Start begins to deliver to r and returns. It is called once; nothing is delivered before it.
	Start(r Receiver)
	// Write owns the message from then on, also where it fails. It is safe for concurrent use, and
	// may call the Receiver before it returns.
	Write(ctx context.Context, m *Message) error
	// Close ends the Conn. It may be called by the Receiver, so it does not wait: Ended is what comes last.
	Close() error
}

// A Receiver takes what comes on a Conn. Messages of one stream come in order: the next one when the call
// for the one before has returned.
type Receiver interface {
	Message(m *Message) // it has its values, and is the Receiver's from then on
	Violation(v *Violation)
	// Ended is called once, after every other call has returned: nothing comes any more, and why.
	// io.EOF: the peer has ended it; ErrClosed: this side has.
	Ended(err error)
}

// A ReadConn is one side of a conversation that is read: by a program that waits for one answer after the
// other. Read returns io.EOF when the peer is gone; a *Violation from Read
// leaves the ReadConn usable. What Read returns has its values. Write owns the message from then on, also
// where it fails. Write is safe for concurrent use; Read is for one reader.
type ReadConn interface {
	Read(ctx context.Context) (*Message, error)
	Write(ctx context.Context, m *Message) error
	Close() error
}
