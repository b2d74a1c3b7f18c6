package gateway

import (
	"github.com/pellucid-mcp/pellucid/internal/mcpmsg"
	"github.com/pellucid-mcp/pellucid/internal/wire"
)

// mustRecord reports whether a message is delivered only with its record.
func (in *inspector) mustRecord(p passage) bool {
	return in.cfg.RequireEvidence && p.method == mcpmsg.CallTool &&
		(p.msg.Kind == wire.Response || p.msg.Kind == wire.ErrorResponse) && !in.cfg.rule(p.name).Unprivileged
}

// unrecorded takes the place of what there is no record of. It names no evidence, for
// there is none.
func (in *inspector) unrecorded(p passage) *wire.Outgoing {
	p.watched.giveUp()
	return errUnrecorded.outgoing(p.id, nil)
}
