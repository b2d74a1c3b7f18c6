// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/review"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// The rules that records and items name.
const (
	rulePolicy     = "policy:"
	ruleClassifier = "classifier:"
	ruleBlock      = "policy:quarantine-"
)

// causesOfAll says why: by the record, the item and the journal. A cause is named once.
func (x *teller) causesOfAll(ctx context.Context, d *ruled) {
	if x.item != nil {
		x.causeOfItem(x.item)
	} else {
		for _, t := range x.about {
			if t.st.Kind == ledger.ResultHeld {
				x.causeOfItem(&hold.Item{Rule: t.st.Rule, Code: finding.Code(t.st.Reason)})
				break
			}
		}
	}
	if d != nil {
		x.causeOfDecision(d)
	}
	for _, t := range x.about {
		if t.st.Kind == ledger.Classified {
			x.cause("classifier", strings.TrimPrefix(t.st.Rule, ruleClassifier), classifierSentence(t.st))
		}
	}
	if j := x.journal; j != nil {
		for _, a := range j.Classified {
			x.cause("classifier", a.Name, fmt.Sprintf("Classifier %s gave the text a score of %.2f of 1 (%s, %s).", a.Name, a.Score, a.Mode, a.Outcome))
		}
	}
	if x.src.Flagged != nil {
		for _, f := range x.src.Flagged(x.id) {
			x.cause("sentence", f.Classified.Name, fmt.Sprintf("Classifier %s, with a score of %.2f of 1, found this sentence the worst: %s", f.Classified.Name, f.Classified.Score, f.Sentence))
		}
	}
	x.causeOfPin(ctx, d)
	x.causeOfBlock(ctx)
	x.rules()
}

func (x *teller) cause(kind, name, text string) {
	same := func(c Cause) bool { return c.Kind == kind && c.Name == name }
	if !slices.ContainsFunc(x.out.Why, same) {
		x.out.Why = append(x.out.Why, Cause{kind, name, text})
	}
}

// causeOfItem says what put an item into the queue.
func (x *teller) causeOfItem(it *hold.Item) {
	code := string(it.Code)
	if it.Code.Known() && !slices.ContainsFunc(x.out.Codes, func(c Code) bool { return c.Code == code }) {
		x.out.Codes = append(x.out.Codes, codeOf(it.Code, "held-for", 0))
	}
	switch rule := it.Rule; {
	case rule == hold.GuardCall:
		x.cause("guard", "", "pellucid guard holds calls that third-party text may have caused.")
	case strings.HasPrefix(rule, ruleBlock):
		x.blocked(rule)
	case strings.HasPrefix(rule, hold.PolicyCall):
		name := strings.TrimPrefix(rule, hold.PolicyCall)
		x.cause("policy", name, "Rule "+name+" of the policy holds such calls before the server gets them.")
	case strings.HasPrefix(rule, rulePolicy):
		name := strings.TrimPrefix(rule, rulePolicy)
		x.cause("policy", name, "Rule "+name+" of the policy holds such results.")
	case strings.HasPrefix(rule, ruleClassifier):
		name := strings.TrimPrefix(rule, ruleClassifier)
		x.cause("classifier", name, "Classifier "+name+", which is in enforce mode, judged the text.")
	case rule == "schema":
		x.cause("schema", code, "The result was checked against the outputSchema that the tool declares.")
	case rule == "finding":
		x.cause("hold", code, "The configuration holds results in which "+code+" is found (hold, or --set hold=… of wrap).")
	}
}

func (x *teller) blocked(rule string) {
	scope := strings.TrimPrefix(rule, ruleBlock)
	x.cause("block", scope, "A block of this "+frame.Label(scope)+" is in force: its text took control of a model before.")
}

// causeOfDecision says what the decision itself names.
func (x *teller) causeOfDecision(d *ruled) {
	switch {
	case strings.HasPrefix(d.rule, ruleBlock):
		x.blocked(d.rule)
	case strings.HasPrefix(d.rule, rulePolicy):
		name, action := strings.TrimPrefix(d.rule, rulePolicy), d.policy.Action
		if action == "" {
			action = strings.TrimPrefix(d.reason, rulePolicy)
		}
		if action == "" || action == string(finding.Denied) || action == string(finding.Held) {
			x.cause("policy", name, "Rule "+name+" of the policy decided about it.")
		} else {
			x.cause("policy", name, "Rule "+name+" of the policy asks to "+frame.Label(action)+".")
		}
		if d.wasSanitised() {
			x.do("See the trust scores, and what lowered each", "pellucid trust")
		}
	case d.rule == "schema":
		x.cause("schema", "", "The result was checked against the outputSchema that the tool declares.")
	}
	if w := d.would; w.Rule != "" {
		x.cause("policy", w.Rule, "Rule "+w.Rule+" of the policy only watches; it would have asked to "+w.Action+".")
	}
	if len(x.out.Why) > 0 {
		return
	}
	switch {
	case d.removed():
		x.cause("profile", d.profile, "The text profile "+orUnknown(d.profile)+" removes what the codes name.")
	case d.verdict == "withheld" || d.verdict == "dropped":
		if d.shape == "call" && d.reason == string(finding.Unapproved) {
			break // the pin says why
		}
		c := finding.Code(d.reason)
		if len(d.withheld) > 0 && !c.Known() {
			c = d.withheld[0].Code
		}
		if c.Known() && d.shape == "call" {
			x.cause("limit", string(c), c.Meaning()+" Such a request never reaches the server.")
		} else if slices.ContainsFunc(d.found, func(f ledger.Count) bool { return f.Code == c }) {
			x.cause("hold", string(c), "The configuration holds results in which "+string(c)+" is found, and nothing could keep this one for a reviewer.")
		} else if c.Known() {
			x.cause("limit", string(c), c.Meaning()+" Such a message is never delivered.")
		}
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "in force"
	}
	return s
}

// causeOfPin says what the pin of the tool says, where that was the cause.
func (x *teller) causeOfPin(ctx context.Context, d *ruled) {
	unapproved := slices.ContainsFunc(x.out.Codes, func(c Code) bool { return c.Code == string(finding.Unapproved) })
	surface := x.st != nil && strings.HasPrefix(string(x.st.Kind), "surface-")
	if x.src.Pin == nil || !unapproved && !surface || x.out.Server == "" {
		return
	}
	p, ok := x.src.Pin(ctx, x.out.Server, x.out.Tool)
	if !ok {
		return
	}
	text := "The pin of it is " + p.State + " now"
	if p.By != "" {
		text += ", decided by " + finding.Quote(p.By) + " on " + when(p.At)
	}
	x.cause("pin", p.Name, text+".")
}

// causeOfBlock names the block that is in force for the same source, with its id.
func (x *teller) causeOfBlock(ctx context.Context) {
	if x.src.Blocks == nil {
		return
	}
	list, err := x.src.Blocks.List(ctx, true)
	if err != nil {
		x.out.Notes = append(x.out.Notes, "The blocked sources could not be read.")
		return
	}
	cause := slices.ContainsFunc(x.out.Why, func(c Cause) bool { return c.Kind == "block" })
	for i := range list {
		b := review.NewBlock(&list[i])
		ended := !list[i].Lifted.IsZero() || !x.src.Now().Before(list[i].Until)
		covers := cause && !ended && b.Server == x.out.Server && (b.Tool == "" || b.Tool == x.out.Tool)
		if b.Evidence != x.id.String() && !covers {
			continue
		}
		if b.Evidence == x.id.String() {
			step := Step{Time: b.Since, Text: "It led to block " + b.ID + " of the " + b.Scope + ", until " + b.Until + ".", ID: b.ID}
			x.out.Since = append(x.out.Since, step)
		}
		if !ended {
			x.do("End the block of this "+b.Scope+" before "+b.Until, "pellucid quarantine revoke "+b.ID)
		}
		if !slices.Contains(x.out.Found, "blocks") {
			x.out.Found = append(x.out.Found, "blocks")
		}
	}
}

// rules names the configuration that was in force.
func (x *teller) rules() {
	if x.st == nil {
		return
	}
	for _, v := range x.st.Versions {
		if v.Of == "rules" {
			x.cause("rules", v.Version, "The configuration in force was "+v.Version+".")
		}
	}
}
