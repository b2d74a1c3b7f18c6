// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/admit"
	"github.com/pellucid-mcp/pellucid/boundary/descriptions"
	"github.com/pellucid-mcp/pellucid/boundary/reviewer"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/build"
)

// newAdmissions makes the check that every server passes before its first session.
func (b *boundary) newAdmissions(o admit.Options) *admit.Admissions {
	o.Pins, o.Version, o.Log = b.pins, b.version, b.log
	if b.version == nil {
		o.Versions = b.store.PinVersions
	}
	o.Describe, o.Described = descriptions.New(), b.described
	o.Review = func() func(server, transport string) *surface.Review {
		if v := b.review.Load(); v != nil {
			return v.Review
		}
		return nil
	}
	return admit.New(o)
}

// setReview has servers judged by the model that r names from now on. A check that is
// under way keeps the one that it began with. progress is told before each question.
func (b *boundary) setReview(r *rules.Rules, progress func(server string, s surface.Step)) error {
	old := b.review.Load()
	if old != nil && old.Of() == r.Review {
		return nil
	}
	var v *reviewer.Model
	if r.Review != nil {
		var err error
		if v, err = reviewer.New(r.Review, b.cache, progress); err != nil {
			return err
		}
	}
	if b.review.Store(v); old != nil {
		old.Close()
	}
	return nil
}

// admission is what the check has to know of a configured server, which people know as called.
// connect opens connections to it.
func (b *boundary) admission(s *rules.Server, called string, connect surface.Connect) admit.Config {
	a := s.Admission
	c := admit.Config{Name: s.Name, Called: called, Identity: identity(s), Transport: install.IdentityOf(s), Pin: install.PinnedAs(s), Flag: b.flag,
		Settings: admit.Settings{Mode: a.Pins, HoldFirst: a.HoldFirst, Narrow: !a.Wide, RejectHidden: a.RejectHidden, HoldShadows: a.HoldShadows,
			Descriptions: a.Descriptions != rules.IgnoreDescriptions, HoldDescriptions: a.Descriptions == rules.HoldDescriptions}}
	c.Settings.Tolerates = strings.Fields(a.Tolerate)
	for text := range strings.FieldsSeq(a.DangerouslyAllow) {
		var d surface.Digest
		if d.UnmarshalText([]byte(text)) == nil { // as package rules has made sure
			c.Settings.DangerouslyAllow = append(c.Settings.DangerouslyAllow, d)
		}
	}
	c.Collect = func(ctx context.Context, bare bool) (*surface.Surface, error) {
		return surface.CollectWhole(ctx, surface.CollectOptions{Version: build.Read().Version, Bare: bare}, connect)
	}
	return c
}
