// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/classifiers"
	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/record/trust"
)

// setJury has answers judged by the classifiers of r from now on. back undoes that.
func (b *Gateway) setJury(r *rules.Rules) (back func(), err error) {
	old := b.jury.Load()
	j, err := classifiers.New(r, old)
	if err != nil {
		return nil, err
	}
	b.jury.Store(j)
	old.CloseAllBut(j)
	return func() {
		if again, err := classifiers.New(old.RulesOr(r), j); err == nil {
			b.jury.Store(again)
			j.CloseAllBut(again)
		}
	}, nil
}

// classifiers are those for a server's answers, as they are at the time of each.
func (b *Gateway) classifiers(server string) *gateway.Classifiers {
	return &gateway.Classifiers{
		Of:     func(tool string) []*classify.Member { return b.jury.Load().Members(server, tool) },
		Shadow: b.shadow, Record: b.classified,
	}
}

// classified keeps a verdict. Where there is a log, scores are made of it.
func (b *Gateway) classified(c gateway.Classified) {
	b.Meter.Classified(c)
	if b.records != nil {
		b.records.Classified(c)
		return
	}
	if err := b.journal.Append(c.AppendJSON(nil)); err != nil {
		b.log.Error("verdict not recorded", "error", err, "evidence", c.Of.String())
	}
	if c.Flagged() && c.Mode == classify.Enforce {
		b.trust.Apply(trust.Event{Kind: trust.Classified, Time: c.Time.Unix(), Origin: trust.Origin{Server: c.Server, Tool: c.Tool}})
	}
}

// closeJury judges what waits, as far as there is time.
func (b *Gateway) closeJury() {
	if b.shadow == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), install.CloseWait/5)
	defer stop()
	b.shadow.Close(ctx)
	b.jury.Load().CloseAllBut(nil)
	if n := b.shadow.Dropped(); n > 0 {
		b.log.Warn("answers that classifiers in shadow mode were not asked about", "answers", n)
	}
}
