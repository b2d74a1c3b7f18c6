// SPDX-License-Identifier: Apache-2.0

package era

import (
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// A passage says which messages pass by the translator as they are: those that it would pass on
// unchanged, and would not have to remember. A message that it does not let through closes the
// passage until the translator has nothing under way.
type passage uint32

const (
	noPassage     passage = iota
	legacyPassage         // client and server speak the legacy era
	modernPassage         // client and server speak the modern era
)

// letsClient reports whether a message of the client passes.
func (p passage) letsClient(m *wire.Message) bool {
	switch {
	case p == noPassage, m.Kind == wire.Request && isOwn(m.ID):
		return false
	case m.Kind == wire.Notification:
		return p == modernPassage && m.Method != mcpmsg.Cancelled // which gets its revision from the translator
	case m.Kind == wire.Request:
		return isModern(m) == (p == modernPassage) && m.Method != mcpmsg.Initialize
	}
	return p == legacyPassage // a modern client has no requests to answer
}

// letsServer reports whether a message of the server passes. Its requests do not, since a modern server has
// none; nor do answers in its place (Local), which must not wait for the client.
func (p passage) letsServer(m *wire.Message) bool {
	return p != noPassage && !m.Local && (m.Kind == wire.Notification || m.Kind != wire.Request && !isOwn(m.ID))
}
