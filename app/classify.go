// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/app/audit"
	"github.com/pellucid-mcp/pellucid/boundary/classifiers"
	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/descriptions"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// setJudges has answers judged by the classifiers of r from now on. back undoes that.
func (b *boundary) setJudges(r *rules.Rules) (back func(), err error) {
	old := b.judges.Load()
	j, err := classifiers.New(r, old)
	if err != nil {
		return nil, err
	}
	b.judges.Store(j)
	if old == nil {
		b.tellModels(r)
	}
	for _, name := range unusedClassifiers(r) {
		b.log.Warn("the classifier judges no result: no classify of defaults, a server or a tool names it", "classifier", name)
	}
	old.CloseAllBut(j)
	return func() {
		if again, err := classifiers.New(old.RulesOr(r), j); err == nil {
			b.judges.Store(again)
			j.CloseAllBut(again)
		}
	}, nil
}

// unusedClassifiers are the names of classifiers that the configuration sets up and asks nowhere.
// The local one is always there, so it counts only where it is to enforce.
func unusedClassifiers(r *rules.Rules) []string {
	used := slices.Clone(r.DefaultClassifiers())
	for _, s := range r.Servers {
		for _, t := range s.All() {
			used = append(used, t.Classifiers...)
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.Classifiers)), func(name string) bool {
		return slices.Contains(used, name) || name == rules.Local && r.Classifiers[name].Mode == policy.Shadow
	})
}

// tellModels says, when a gateway starts, where a deep model is configured and cannot be used.
func (b *boundary) tellModels(r *rules.Rules) {
	for _, name := range slices.Sorted(maps.Keys(r.Classifiers)) {
		if file, model, err := r.Classifiers[name].Deep(); err == nil && model == nil && file != "" {
			b.log.Warn("the deep model is not installed: the fast one judges alone until the gateway starts again", "classifier", name, "file", finding.Quote(file))
		}
	}
}

// classifiers are those for a server's answers, as they are at the time of each; nil: nothing
// judges them.
func (b *boundary) classifiers(server string) *gateway.Classifiers {
	if b.shadow == nil {
		return nil
	}
	return &gateway.Classifiers{
		Of:     func(tool string) []*classify.Member { return b.judges.Load().Members(server, tool) },
		Any:    func() []*classify.Member { return b.judges.Load().Any(server) },
		Also:   func(kind gateway.Elsewhere) []*classify.Member { return b.judges.Load().Also(server, kind) },
		Shadow: b.shadow, Record: b.classified,
	}
}

// described keeps the verdict about an item of a server's surface. What was judged is named
// by the digest of the item, as the pin has it; no message is concerned.
func (b *boundary) described(server string, v *descriptions.Findings) {
	b.classified(gateway.Classified{Time: time.Now(), Server: server, Kind: gateway.InDescriptions, Input: frame.Digest(v.Item.Digest), Assessment: v.Of})
}

// classified keeps a verdict. Where there is a log, scores are made of it.
func (b *boundary) classified(c gateway.Classified) {
	if b.meter != nil {
		b.meter.Classified(c)
	}
	if b.flagged != nil && c.Sentence != "" {
		if err := b.flagged.Append(audit.AppendFlagged(nil, &c)); err != nil {
			b.log.Error("a sentence that a classifier has flagged could not be kept", "error", err, "evidence", c.Of.String())
		}
	}
	if b.records != nil {
		b.records.Classified(c)
		return
	}
	if err := b.journal.Append(c.AppendJSON(nil)); err != nil {
		b.log.Error("the verdict of a classifier could not be recorded", "error", err, "evidence", c.Of.String())
	}
}

// closeJudges judges what waits, as far as there is time. It returns the number of answers that
// nothing was asked about.
func (b *boundary) closeJudges(within time.Duration) (dropped int) {
	if b.shadow == nil {
		return 0
	}
	ctx, stop := context.WithTimeout(context.Background(), within)
	defer stop()
	b.shadow.Close(ctx)
	b.judges.Load().CloseAllBut(nil)
	return int(b.shadow.Dropped())
}
