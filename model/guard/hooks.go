// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// Kind is the kind under which a Sink gets the statements of this package.
const Kind = "counterfactual"

// A Sink keeps evidence. What it returns an error for has not been decided: in
// Enforce the held call is not delivered. A sink that must not stop anybody keeps
// its errors to itself.
type Sink interface {
	Record(ctx context.Context, kind string, statement []byte, cost Cost) error
}

// A Cost is what a decision has taken until it was recorded.
type Cost struct {
	Calls  int64 // of a model, cached ones left out
	Tokens int64 // of these calls, as far as the provider has told
	Took   time.Duration
}

// A Source names where text came from that took control: labels and a digest.
type Source struct {
	Server, Tool string
	Digest       frame.Digest // of the text, as it stood in the fence
	Evidence     string
	Severity     int // thousandths
}

// A Quarantine withholds text from now on: a gateway asks it for the digest of a
// result, by server and tool, before it delivers one.
type Quarantine interface {
	Withhold(ctx context.Context, s Source) error
}

// A Desk is where a person decides about a call; a *hold.Queue is one.
type Desk interface {
	Hold(ctx context.Context, it hold.Item) error
	Take(ctx context.Context, call hold.Digest) (hold.Item, bool)
}

// Approvals know which calls a reviewer has approved for a time; *hold.Approvals are such.
type Approvals interface {
	// Use returns the approval for a call, and counts its use.
	Use(ctx context.Context, call hold.Digest) (hold.Approval, bool)
}

// Hooks are what follows from a decision beside the answer. Each may be nil. Only
// sources that a verified fence names are told to Quarantine and Blame: anything
// else would let one server speak for another.
type Hooks struct {
	Sink Sink
	// Context: the untrusted text that the model has read is kept with a call that is held.
	Context    bool
	Quarantine Quarantine
	// Quarantined reports whether the text of a source is withheld from now on. While it stands
	// in a context, no rule and no approval lets a call pass. nil: of no source.
	Quarantined func(ctx context.Context, s Source) bool
	// Blame is told of a source whose text took control, for its trust to be lowered.
	Blame func(Source)
	// Desk is asked where an attribution is that a person decides, and once a person has
	// released a call it goes through, once. nil: such a call is refused.
	Desk Desk
	// Approvals are asked about calls that would not pass; nil: nothing is approved.
	Approvals Approvals
	// MinSeverity, in thousandths, is that from which Quarantine and Blame are told;
	// Quarantine from QuarantineFrom, where that is not nil.
	MinSeverity    int
	QuarantineFrom *int
}

// hooks tells of the sources whose text took control.
func (d *decider) hooks(ctx context.Context) {
	h := &d.g.o.Hooks
	if h.Quarantine == nil && h.Blame == nil {
		return
	}
	withhold := h.MinSeverity
	if h.QuarantineFrom != nil {
		withhold = *h.QuarantineFrom
	}
	for _, from := range d.culprits() {
		if h.Blame != nil && from.Severity >= h.MinSeverity {
			h.Blame(from)
		}
		if h.Quarantine != nil && !d.audit && from.Severity >= withhold && h.Quarantine.Withhold(ctx, from) != nil {
			d.g.o.Log.Warn("a source that took control could not be blocked", "evidence", d.x.id)
		}
	}
}

// quarantined looks, once, for text of a quarantined source in a context; nil: there is none.
func (d *decider) quarantined(ctx context.Context, assembly *counterfactual.Assembly) func() bool {
	is := d.g.o.Hooks.Quarantined
	if is == nil {
		return nil
	}
	return sync.OnceValue(func() bool {
		return slices.ContainsFunc(assembly.Segments, func(s counterfactual.Segment) bool {
			return s.Source.Verified && is(ctx, Source{Server: s.Source.Origin.Server, Tool: s.Source.Origin.Tool, Digest: s.Digest})
		})
	})
}

// culprits are the sources, of those that a fence names, whose text took control: that of the
// calls which nobody has asked for.
func (d *decider) culprits() (list []Source) {
	if d.fix == nil || d.out.response != delegation.Repair {
		return nil
	}
	severity := 0
	for i := range d.found {
		if d.found[i].Response == delegation.Repair {
			severity = max(severity, d.targets[i].Privilege)
		}
	}
	for i := range d.fix.Causes.Places() {
		s := &d.assembly.Segments[i]
		from := Source{Server: s.Source.Origin.Server, Tool: s.Source.Origin.Tool, Digest: s.Digest, Evidence: d.x.id, Severity: severity}
		if s.Source.Verified && !slices.Contains(list, from) {
			list = append(list, from)
		}
	}
	return list
}
