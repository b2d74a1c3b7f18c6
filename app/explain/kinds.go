// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// isGuard reports whether what is explained is a decision of pellucid guard about an answer of a
// model.
func (x *teller) isGuard() bool {
	if x.st != nil {
		return x.st.Kind == ledger.Counterfactual && x.st.Of == (ledger.ID{}) && acts[x.st.Verdict] != ""
	}
	return x.item != nil && x.item.Rule == hold.GuardCall
}

// acts are what the guard does with an answer, and what its client got.
var acts = map[string]string{
	"forwarded": "The client got the answer of the model as it was, or with a label.",
	"repaired":  "The client got an answer that the model gave once the text that took control was taken out of its context.",
	"refused":   "The client got an answer that says that the calls were refused.",
	"waiting":   "The client got an answer that says that a reviewer decides about the calls.",
}

// guardReasons say why the guard decided.
var guardReasons = map[string]string{
	"found-out":          "The guard asked the model again with parts of the context left out, and decided by what each call depends on.",
	"no-untrusted-text":  "No third-party text stood in the context: the calls are the user's.",
	"harmless":           "Nothing in the answer needed a decision.",
	"released":           "A reviewer had released the call, or approved it for a time.",
	"unreadable-answer":  "The guard could not read the answer of the model.",
	"unreadable-context": "The guard could not read the context.",
	"context-not-seen":   "A part of the context lies with the provider, where the guard does not see it.",
	"too-many-calls":     "The answer proposed more calls than the guard decides about.",
	"not-recorded":       "The decision could not be recorded.",
}

func (x *teller) guard() {
	o := x.out
	o.Happened = append(o.Happened, "A model proposed a call of a privileged tool, and pellucid guard decided about it.")
	act := "waiting"
	if x.st != nil {
		act = x.st.Verdict
		if text := guardReasons[x.st.Reason]; text != "" {
			o.Why = append(o.Why, Cause{"guard", x.st.Reason, text})
		}
		if x.st.Rule != "" {
			o.Why = append(o.Why, Cause{"guard", x.st.Rule, "The configured response to such a call is " + x.st.Rule + "."})
		}
	}
	o.Verdict = act
	o.Happened = append(o.Happened, map[string]string{"forwarded": "The answer passed.", "repaired": "The answer was repaired.",
		"refused": "The calls were refused.", "waiting": "The calls wait for a reviewer."}[act])
	o.Delivered = append(o.Delivered, acts[act])
}

// words are the sentences for records that are about no message. S stands for the server.
var words = map[ledger.Kind]string{
	ledger.ResultHeld:          "A result or call of S was put into the queue for a reviewer.",
	ledger.ResultReleased:      "A reviewer released the held item.",
	ledger.ResultTaken:         "The released result was delivered to the client.",
	ledger.ResultDenied:        "A reviewer denied the held item; its content was destroyed.",
	ledger.ResultExpired:       "The held item expired; its content was destroyed.",
	ledger.SurfaceVerified:     "What S says of itself was checked and pinned.",
	ledger.SurfaceChanged:      "What S says of itself is no longer what was pinned.",
	ledger.SurfaceRejected:     "The check refused what S says of itself.",
	ledger.SurfaceApproved:     "A reviewer approved an item of S.",
	ledger.SurfaceBlocked:      "A reviewer blocked an item of S.",
	ledger.SurfaceDropped:      "The pin of S was removed.",
	ledger.AttestationAccepted: "An attestation was stored.",
	ledger.AttestationRefused:  "An attestation was refused.",
	ledger.AttestationEvent:    "A retraction or reversal of an attestation was applied.",
	ledger.RulesLoaded:         "A configuration took effect.",
	ledger.Classified:          "A classifier gave its verdict about a text of S.",
	ledger.Counterfactual:      "A counterfactual run ended.",
	ledger.TrustChanged:        "The trust score of S changed.",
	ledger.PolicyDecided:       "A rule of the policy that only watches would have acted on S.",
	ledger.KeyInstalled:        "Another key signs the log from the next record on.",
	ledger.PrincipalForgotten:  "The data that names one person was erased.",
	ledger.ConsoleUsed:         "A person signed in to the console or out, or was refused.",
	ledger.RecordsLost:         "Events could not be recorded, and are missing in the log.",
}

// sentence says what a record says.
func sentence(st *ledger.Statement, source string) string {
	s := strings.Replace(words[st.Kind], " S ", " "+source+" ", 1)
	s = strings.Replace(s, " S.", " "+source+".", 1)
	switch {
	case st.Kind == ledger.PrincipalForgotten && st.Of != (ledger.ID{}):
		return "The held item was erased with the data that names one person; its content was destroyed."
	case st.Kind == ledger.SurfaceChanged && st.Reason == "suspended":
		return "The pin of " + source + " was suspended."
	case st.Kind == ledger.Counterfactual && st.Verdict == standing.Hijack:
		return "pellucid guard found that text of " + source + " took control of a model."
	case st.Kind == ledger.Counterfactual && strings.HasPrefix(st.Rule, "quarantine-") && st.Verdict == "quarantined":
		return "Text of " + source + " was blocked (" + strings.TrimPrefix(st.Rule, "quarantine-") + "), because it took control of a model."
	case st.Kind == ledger.Counterfactual && strings.HasPrefix(st.Rule, "quarantine-"):
		return "A reviewer lifted the block of " + source + "."
	case st.Kind == ledger.Counterfactual && st.Rule == "approval" && st.Verdict == "revoked":
		return "A reviewer ended the approval of calls like this one."
	case st.Kind == ledger.Counterfactual && st.Rule == "approval":
		return "A reviewer approved calls like this one for a time."
	case st.Kind == ledger.Classified:
		return classifierSentence(st)
	case st.Kind == ledger.PolicyDecided && st.Rule == hold.RuleException && st.Verdict == "revoked":
		return "A reviewer ended an exception for " + source + ": results in which " + st.Reason + " is found are held again."
	case st.Kind == ledger.PolicyDecided && st.Rule == hold.RuleException && st.Verdict == "proposed":
		return "A reviewer proposed an exception for " + source + " and " + st.Reason + "; another reviewer has to confirm it."
	case st.Kind == ledger.PolicyDecided && st.Rule == hold.RuleException:
		return "A reviewer granted an exception for " + source + ": results in which " + st.Reason + " is found pass for a time."
	case st.Kind == ledger.PolicyDecided && st.Rule == hold.RuleTwoPersons:
		return "A reviewer proposed to release the held item; another reviewer has to confirm it."
	case st.Kind == ledger.PolicyDecided:
		return fmt.Sprintf("Rule %s of the policy only watches; it would have asked to %s.", strings.TrimPrefix(st.Rule, "policy:"), st.Verdict)
	case install.IsKilled(st):
		return "A process was killed: records of its last 50 ms may be missing in the log."
	case st.Kind == ledger.RecordsLost:
		return fmt.Sprintf("%d events could not be recorded, and are missing in the log.", number(st, "lost"))
	}
	return s
}

// judgedTexts are the kinds of texts that a record of a verdict names, beside results of tools.
var judgedTexts = map[string]string{
	string(gateway.InDescriptions): "what the server says of itself",
	string(gateway.InPrompts):      "a prompt",
	string(gateway.InResources):    "a resource",
	string(gateway.InCompletions):  "suggestions for an argument",
	string(gateway.InSampling):     "a request to the client's model",
	string(gateway.InElicitation):  "a question to the person at the client",
	string(gateway.InProgress):     "a message about progress",
	string(gateway.InLogs):         "a line of the server's log",
	string(gateway.InErrors):       "an error",
}

func classifierSentence(st *ledger.Statement) string {
	name := "Classifier " + strings.TrimPrefix(st.Rule, "classifier:")
	score := ""
	for _, n := range st.Numbers {
		if n.Name == "score" {
			score = fmt.Sprintf(", with a score of %.2f of 1", float64(n.N)/1e6)
		}
	}
	text := cmp.Or(judgedTexts[st.Shape], "the text")
	switch st.Verdict {
	case "injection":
		return name + " took the text for an injection" + score + "."
	case "suspected":
		return name + ", which only watches, took " + text + " for an injection" + score + "."
	case "benign":
		return name + " found no injection in " + text + score + "."
	}
	return name + " could not judge " + text + " (" + st.Verdict + ")."
}

func number(st *ledger.Statement, name string) int64 {
	for _, n := range st.Numbers {
		if n.Name == name {
			return n.N
		}
	}
	return 0
}

// other tells a record that is about no message.
func (x *teller) other() {
	st, o := x.st, x.out
	if st.Kind == ledger.KeyInstalled && x.index == 0 {
		o.Happened = append(o.Happened, "The log begins: this key signs it from its first record on.")
	} else {
		o.Happened = append(o.Happened, sentence(st, x.source()))
	}
	x.codes("found", st.Findings)
	x.codes("withheld", st.Withheld)
	if c := finding.Code(strings.TrimPrefix(st.Reason, "proven:")); c.Known() && len(o.Codes) == 0 {
		o.Codes = append(o.Codes, codeOf(c, "withheld", 0))
	}
	if st.Of != (ledger.ID{}) {
		o.Notes = append(o.Notes, "It is about "+st.Of.String()+", of which nothing is kept here any more.")
	}
	if st.Actor == "person" {
		o.Notes = append(o.Notes, "The record names the reviewer only by a salted digest.")
	}
}
