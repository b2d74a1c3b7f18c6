// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app/audit"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/review"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// tell fills the explanation from what was found.
func (x *teller) tell(ctx context.Context) {
	o := x.out
	o.ID = x.id.String()
	if x.item != nil {
		x.item = review.Believed(x.item)
		o.Found, o.State = append(o.Found, "queue"), string(x.item.State)
		o.Server, o.Tool, o.Time = x.item.Server, x.item.Tool, when(x.item.Held)
	}
	if x.journal != nil {
		j := x.journal
		o.Found = append(o.Found, "journal")
		o.Server, o.Tool, o.Method, o.Verdict, o.Time = j.Server, j.Tool, j.Method, j.Verdict, when(j.Time)
	}
	if x.st != nil {
		st := x.st
		o.Found, o.Index, o.Kind = append([]string{"ledger"}, o.Found...), &x.index, string(st.Kind)
		o.Server, o.Tool, o.Method, o.Verdict, o.Time = st.Server, st.Tool, st.Method, st.Verdict, when(st.Time)
	}
	d := x.decision()
	switch {
	case d != nil:
		x.message(d)
	case x.isGuard():
		x.guard()
	case x.item != nil:
		x.itemAlone()
	default:
		x.other()
	}
	x.causesOfAll(ctx, d)
	x.later(ctx)
	x.commands(ctx, d)
	if x.more {
		o.Notes = append(o.Notes, "The log is long: not every record behind this one was looked at, so something that happened much later may be missing.")
	}
}

// A ruled is the decision about one message, from its record or from the journal.
type ruled struct {
	shape, verdict, method, reason, rule, profile string
	found, withheld, uninspected                  []ledger.Count
	policy, would                                 audit.JournalMatch
	schema                                        string // the verdict of the validation; "": not known
	delivered, failed                             bool
	repeated                                      int64
	fault                                         trust.Kind // lowers the score of the server
}

// decision is that of the message; nil where what is explained is something else.
func (x *teller) decision() *ruled {
	if st := x.st; st != nil {
		if st.Kind != ledger.Message && st.Kind != ledger.ResultTaken {
			return nil
		}
		d := &ruled{shape: st.Shape, verdict: st.Verdict, method: st.Method, reason: st.Reason, rule: st.Rule, profile: st.Profile,
			found: st.Findings, withheld: st.Withheld, uninspected: st.NotInspected}
		d.delivered = slices.ContainsFunc(st.Subjects, func(s ledger.Subject) bool { return s.Role == ledger.Delivered })
		for _, n := range st.Numbers {
			if n.Name == "repeated" {
				d.repeated = n.N
			}
			d.failed = d.failed || n.Name == standing.PolicyFailed
		}
		if o, counts := standing.Of(&st.Event); counts && o.Kind.Lowers() {
			d.fault = o.Kind
		}
		if x.journal != nil {
			d.policy, d.would = x.journal.Policy, x.journal.Would
		}
		return d
	}
	if j := x.journal; j != nil {
		d := &ruled{shape: j.Kind, verdict: j.Verdict, method: j.Method, profile: j.Profile, policy: j.Policy, would: j.Would,
			schema: j.Validation.Verdict, delivered: j.Delivered != "", repeated: j.Repeated, failed: j.Policy.Failed, fault: trust.Kind(j.Fault),
			found: counts(j.Findings), withheld: counts(j.Withheld), uninspected: counts(j.NotInspected)}
		if len(d.withheld) == 1 && (d.verdict == "withheld" || d.verdict == "dropped") {
			d.reason = string(d.withheld[0].Code)
		}
		if d.policy.Rule != "" && d.policy.Action != "allow" {
			d.rule = "policy:" + d.policy.Rule
		}
		if d.schema == "invalid" || d.schema == "unverifiable" {
			d.rule = "schema"
		}
		return d
	}
	return nil
}

func counts(m map[string]int64) (out []ledger.Count) {
	for code, n := range m {
		out = append(out, ledger.Count{Code: finding.Code(code), N: n})
	}
	slices.SortFunc(out, func(a, b ledger.Count) int { return strings.Compare(string(a.Code), string(b.Code)) })
	return out
}

func when(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// source names a server and its tool in a sentence.
func (x *teller) source() string {
	o := x.out
	switch {
	case o.Server == "":
		return "a server"
	case o.Tool == "":
		return "server " + o.Server
	}
	return "tool " + o.Tool + " of server " + o.Server
}

// message says what was done with a message.
func (x *teller) message(d *ruled) {
	o := x.out
	say := func(format string, args ...any) { o.Happened = append(o.Happened, fmt.Sprintf(format, args...)) }
	method := ""
	if d.method != "" && d.method != frame.Other {
		method = " (" + d.method + ")"
	}
	switch d.shape {
	case "call":
		if x.out.Tool == "" && method != "" {
			say("The client sent a request%s for %s.", method, x.source())
		} else {
			say("The client called %s.", x.source())
		}
	case "result":
		say("The answer of %s came back%s.", x.source(), method)
	case "error":
		say("An error of %s came back%s.", x.source(), method)
	case "request":
		say("%s sent a request to the client%s.", capital(x.source()), method)
	case "notification":
		say("%s sent a notification%s.", capital(x.source()), method)
	default:
		say("%s sent a message that could not be read as MCP.", capital(x.source()))
	}
	if d.repeated > 1 {
		say("The decision is about %d messages of this kind within one second.", d.repeated)
	}
	if x.st != nil && x.st.Kind == ledger.ResultTaken {
		say("A reviewer had released this result: it is item %s of the queue.", x.st.Of)
	}
	x.became(d, say)
	if d.wasSanitised() {
		say("A rule had it treated more strictly: any invisible characters that are usually kept for languages and emoji were removed too. Nothing visible was changed.")
	}
	if d.failed {
		say("The rule could not be evaluated, as where an argument or a claim that it reads is missing: on_error decided.")
	}
	if does, known := faults[d.fault]; known {
		say("This lowers the trust score of %s, once for this content (%s): %s", x.source(), d.fault, does)
	}
	x.codes("found", d.found)
	x.codes("withheld", d.withheld)
	x.codes("not-inspected", d.uninspected)
	x.got(d)
	for _, c := range d.found {
		switch c.Code {
		case finding.AmbiguousToken, finding.PrivateUse, finding.Unassigned, finding.BlankSymbol:
			o.Notes = append(o.Notes, "Code "+string(c.Code)+" is noted only: its characters were delivered.")
		}
	}
}

func (x *teller) became(d *ruled, say func(string, ...any)) {
	held := x.item != nil || slices.ContainsFunc(x.about, func(t told) bool { return t.st.Kind == ledger.ResultHeld })
	switch {
	case d.verdict == "passed" && d.shape == "call":
		say("The call went to the server.")
	case d.verdict == "passed":
		say("Nothing had to be removed from it.")
	case d.verdict == "changed":
		if n := d.leftOut(); n > 0 {
			say("%s left out of it: a reviewer has not approved this version.", map[bool]string{true: "1 item was", false: fmt.Sprintf("%d items were", n)}[n == 1])
		}
		if d.removed() {
			say("Text was removed or replaced in it before it was delivered.")
		}
	case held && d.shape == "call":
		say("The call was held: the server did not get it.")
	case held:
		say("It was withheld and put into the queue for a reviewer.")
	case d.shape == "call" && d.reason == string(finding.Unapproved):
		say("It was refused, because what it asks for waits for a reviewer: the server did not get it.")
	case d.shape == "call" && x.out.Tool != "":
		say("The call was refused: the server did not get it.")
	case d.shape == "call":
		say("The request was refused: the server did not get it.")
	case d.verdict == "withheld" && slices.ContainsFunc(d.withheld, func(c ledger.Count) bool { return c.Code == finding.QueueFull }):
		say("It was withheld for good: it was to wait for a reviewer, and the queue had no room.")
	case d.verdict == "withheld":
		say("It was withheld.")
	case d.verdict == "dropped":
		say("It was dropped.")
	}
}

// got says what the client got.
func (x *teller) got(d *ruled) {
	o := x.out
	say := func(s string) { o.Delivered = append(o.Delivered, s) }
	held := x.item != nil || slices.ContainsFunc(x.about, func(t told) bool { return t.st.Kind == ledger.ResultHeld })
	switch {
	case d.verdict == "passed" && d.shape == "call":
		say("The client got what the server answered. That answer has a decision of its own.")
	case d.verdict == "passed":
		say("The client got the text as the server sent it, with the label that the configuration asks for.")
	case d.verdict == "changed" && !d.removed():
		say("The client got the list without what was left out.")
	case d.verdict == "changed":
		say("The client got the message without what was found in it.")
	case held && d.shape == "call":
		say("The client got a constant text: [pellucid holds this call until a person has looked at it; once it is released, the same call goes through; run: pellucid explain " + o.ID + "]")
	case held:
		say("The client got a constant text: [pellucid holds this result until a person has looked at it; run: pellucid explain " + o.ID + "]")
	case d.shape == "call" && d.method != "" && d.method != "tools/call":
		say("The client got an error with a constant text that names this evidence id.")
	case d.shape == "call" && d.reason == string(finding.Unapproved):
		say("The client got a constant text: [pellucid holds this tool until a person has looked at it; run: pellucid explain " + o.ID + "], or of a blocked tool that a reviewer has blocked it.")
	case d.shape == "call" && d.reason == string(finding.ShapeInvalid):
		say("The client got a constant text: [pellucid refused this call: the server's description of the tool is not valid; run: pellucid explain " + o.ID + "]")
	case d.shape == "call":
		say("The client got a constant text: [pellucid refused this call: the operator's policy does not allow it; run: pellucid explain " + o.ID + "]")
	case d.verdict == "withheld":
		say("The client got a constant text that names this evidence id, in place of the message.")
	case d.verdict == "dropped":
		say("The client got nothing of it.")
	}
}

// wasSanitised reports whether the policy had the message treated more strictly.
func (d *ruled) wasSanitised() bool {
	return d.reason == rulePolicy+policy.Sanitise.String() || d.policy.Action == policy.Sanitise.String()
}

// faults say what a message did that lowers the trust in its server.
var faults = map[trust.Kind]string{
	trust.HiddenMessage: "invisible characters in it were decoded to a text.",
	trust.ForgedFrame:   "it imitates the tags or the provenance that only Pellucid writes.",
	trust.ShapeLie:      "it is not what the protocol or its own schema allows.",
}

// leftOut is how many items of a list were left out because they are not approved.
func (d *ruled) leftOut() (n int64) {
	for _, c := range d.withheld {
		if c.Code == finding.Unapproved {
			n += c.N
		}
	}
	return n
}

// removed reports whether something else was taken out of a changed message.
func (d *ruled) removed() bool {
	return d.verdict == "changed" && (d.leftOut() == 0 || len(d.found) > 0 || len(d.withheld) > 1)
}

// codes adds codes in the order in which they are given.
func (x *teller) codes(role string, list []ledger.Count) {
	for _, c := range list {
		x.out.Codes = append(x.out.Codes, codeOf(c.Code, role, c.N))
	}
}

func codeOf(c finding.Code, role string, n int64) Code {
	if !c.Known() {
		return Code{Code: frame.Label(string(c)), Role: role, N: n, Severity: c.Severity().String(),
			Meaning: "This version of Pellucid does not know the code."}
	}
	return Code{Code: string(c), Role: role, N: n, Severity: c.Severity().String(), Meaning: c.Meaning()}
}

// itemAlone tells an item of the queue of which nothing else is known.
func (x *teller) itemAlone() {
	it, o := x.item, x.out
	if it.IsCall() {
		o.Happened = append(o.Happened, "The client called "+x.source()+".", "The call was held: the server did not get it.")
		o.Delivered = append(o.Delivered, "The client got a constant text: [pellucid holds this call until a person has looked at it; once it is released, the same call goes through; run: pellucid explain "+o.ID+"]")
	} else {
		o.Happened = append(o.Happened, "The answer of "+x.source()+" came back.", "It was withheld and put into the queue for a reviewer.")
		o.Delivered = append(o.Delivered, "The client got a constant text: [pellucid holds this result until a person has looked at it; run: pellucid explain "+o.ID+"]")
	}
	o.Notes = append(o.Notes, "The decision itself has no record here: only the queue knows of it.")
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// held reports whether the item waits for a decision of a reviewer.
func (x *teller) waits() bool { return x.item != nil && x.item.State == hold.Held }
