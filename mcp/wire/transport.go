// SPDX-License-Identifier: Apache-2.0

package wire

// Transport says how a server with a URL is spoken to.
type Transport uint8

// The transports.
const (
	AutoTransport  Transport = iota // StreamableHTTP, or HTTPWithSSE if the server does not speak that
	StreamableHTTP                  // of 2025-03-26 and later
	HTTPWithSSE                     // of 2024-11-05
)

// TransportWords are what a configuration calls the transports, by their numbers.
var TransportWords = []string{AutoTransport: "auto", StreamableHTTP: "http", HTTPWithSSE: "sse"}
