// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"fmt"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/descriptions"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
)

// describe has what the items say judged, and tells the operator what was flagged. pinned
// says that they are pinned as they are: then a flagged one is held if the operator wants that.
func (s *Server) describe(ctx context.Context, items []surface.Item, pinned bool) {
	c := s.config()
	if s.a.opt.Describe == nil || !c.Settings.Descriptions {
		return
	}
	var told []string
	var flagged []surface.Key
	list := s.a.opt.Describe.Judge(ctx, items)
	looked := s.lookedAt(ctx, len(list) > 0)
	for i := range list {
		v := &list[i]
		if v.Flagged() || v.Of.Reason != classify.Judged && v.Of.Reason != classify.Canceled {
			s.a.opt.Described(c.Name, v)
		}
		if !v.Flagged() || looked[v.Item.Digest] {
			continue
		}
		flagged = append(flagged, v.Item.Key)
		if len(told) < maxTold {
			told = append(told, toldOf(v))
		}
	}
	if len(flagged) > 0 {
		held := 0
		if pinned {
			held = s.holdFlagged(ctx, flagged)
		}
		run := "pellucid pins list --items " + c.Pin + c.Flag
		if c.Settings.Mode == policy.Off { // there is no pin to show
			run = "pellucid check"
		}
		s.a.log.Warn("descriptions of a server read like orders to a model: look at them", "server", c.Name, "items", len(flagged), "held_now", held,
			"among_them", told, "classifier", s.a.opt.Describe.Version(), "run", run)
	}
}

// lookedAt are the versions of items that a person has approved: they need no second look.
func (s *Server) lookedAt(ctx context.Context, any bool) map[surface.Digest]bool {
	c := s.config()
	if !any || c.Settings.Mode == policy.Off {
		return nil
	}
	p, err := s.a.opt.Pins.Get(ctx, c.Pin)
	if err != nil {
		return nil // then all is told
	}
	out := map[surface.Digest]bool{}
	for i := range p.Items {
		if it := &p.Items[i]; it.State() == surface.Approved {
			out[it.ApprovedDigest()] = true
		}
	}
	return out
}

// toldOf says in which item what has found something first.
func toldOf(v *descriptions.Findings) string {
	var what string
	if len(v.Wording) > 0 {
		w := &v.Wording[0]
		what = fmt.Sprintf("%s: wording %s: %s", w.Pointer, w.Family, w.Shown())
	}
	if len(v.Told) > 0 {
		if what != "" {
			what += "; "
		}
		x := &v.Told[0]
		what += fmt.Sprintf("%s: score %.2f: %s", x.Pointer, x.Score, x.Shown)
	}
	return v.Item.Key.String() + " " + what
}

// holdFlagged holds those of the flagged items that only their first use has approved.
func (s *Server) holdFlagged(ctx context.Context, flagged []surface.Key) int {
	c := s.config()
	if !c.Settings.HoldDescriptions || c.Settings.Mode != policy.Enforce {
		return 0
	}
	n, err := s.a.opt.Pins.Suspend(ctx, c.Pin, flagged...)
	if err != nil {
		s.a.log.Error("flagged items could not be held", "server", c.Name, "error", err)
	}
	return n
}
