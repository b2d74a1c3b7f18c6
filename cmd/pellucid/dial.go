package main

import (
	"github.com/pellucid-mcp/pellucid/internal/fleet"
	"github.com/pellucid-mcp/pellucid/internal/rules"
	"github.com/pellucid-mcp/pellucid/internal/wire"
)

// dialers are how a server at a URL is reached. The error is one of the URL.
var dialers = map[rules.Transport]func(string, wire.HTTPOptions) (fleet.Dialer, error){
	rules.AutoTransport:  fleet.Auto,
	rules.StreamableHTTP: fleet.HTTP,
	rules.SSE:            fleet.SSE,
}
