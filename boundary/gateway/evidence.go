// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// mustRecord reports whether a message is delivered only with its record.
func (in *inspection) mustRecord() bool {
	return in.cfg.RequireEvidence && in.ofTool() && !in.rule.Unprivileged
}

// unrecorded takes the place of what there is no record of. The id that it names stands in
// the operator's log, and in the record that follows once the store works again.
func (in *inspection) unrecorded() *wire.Message {
	in.p.watched.giveUp()
	if in.p.msg.Kind == wire.Notification {
		return nil
	}
	return errUnrecorded.message(in.p.id, &in.d.ID)
}

// refuse records a message that never got as far as the choke point.
func (in *inspector) refuse(kind string, v Verdict, code finding.Code) *ID {
	return in.refuseOf(Decision{Method: frame.Other, Kind: kind, Verdict: v}, code)
}

// refuseOf is refuse of a message of which more is known: d has its method, tool, kind and verdict.
func (in *inspector) refuseOf(d Decision, code finding.Code) *ID {
	d.Withheld = []policy.Count{{Code: code, N: 1}}
	return in.recordDecision(d)
}

// recordDecision records a decision about what does not pass the choke point: d has all but its id, time,
// server and versions.
func (in *inspector) recordDecision(d Decision) *ID {
	id, err := in.ids.next()
	if err != nil {
		return nil
	}
	d.ID, d.Time, d.Server = id, in.cfg.now(), in.cfg.Name
	d.SanitationVersion, d.UnicodeVersion = scrub.Version, scrub.UnicodeVersion
	d.Fault = d.shapeFault()
	_ = in.record(&d, nil)
	return &id
}

// conclude records what became of the message, with all that the walk has noted.
func (in *inspection) conclude() error {
	d := in.concluded()
	return in.record(&d, in.p.store)
}

// concluded is the decision with all that the walk has noted. It shares no memory with
// the message.
func (in *inspection) concluded() Decision {
	w, d := &in.w, &in.d
	d.Inspected = w.inspected
	d.Findings = w.findings(d.Findings)
	d.NotInspected = append(d.NotInspected, w.uninspected...)
	d.Withheld = slices.Concat(w.withheld, d.Withheld) // the reason is the first one
	d.Fault = in.worstFault()
	return *d
}

// record gives a decision to the Sink, and tells the operator where that fails.
func (in *inspector) record(d *Decision, store *storeTime) error {
	began := time.Now()
	if store != nil {
		d.Wait = store.left()
	}
	err := in.cfg.Sink.Record(*d)
	store.spend(time.Since(began))
	if err != nil {
		in.cfg.Log.Error("a decision could not be recorded", "evidence", d.ID.String(), "error", err)
	}
	return err
}
