package gateway

import (
	"log/slog"

	"github.com/pellucid-mcp/pellucid/finding"
	"github.com/pellucid-mcp/pellucid/frame"
	"github.com/pellucid-mcp/pellucid/internal/mcpmsg"
	"github.com/pellucid-mcp/pellucid/internal/wire"
	"github.com/pellucid-mcp/pellucid/scrub"
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

// refuse records a message that never got as far as the choke point.
func (in *inspector) refuse(kind string, v Verdict, code finding.Code) *ID {
	in.mu.Lock()
	defer in.mu.Unlock()
	id, err := in.ids.next()
	if err != nil {
		return nil
	}
	in.record(&Decision{
		ID: id, Time: in.cfg.Now(), Server: in.cfg.Name, Method: frame.Other, Kind: kind, Verdict: v,
		SanitationVersion: scrub.Version, UnicodeVersion: scrub.UnicodeVersion,
		Withheld: []Count{{code, 1}},
	})
	return &id
}

func (in *inspector) record(d *Decision) error {
	w := &in.w
	if d.Profile != "" { // it was walked
		d.Inspected = w.inspected
		d.Findings = w.findings(d.Findings)
		d.NotInspected = append(d.NotInspected, w.uninspected...)
		d.Withheld = append(d.Withheld, w.withheld...)
	}
	err := in.cfg.Sink.Record(*d)
	if err != nil {
		in.cfg.Log.Error("decision not recorded", "evidence", d.ID.String(), slog.Any("error", err))
	}
	return err
}
