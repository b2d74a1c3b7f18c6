// SPDX-License-Identifier: Apache-2.0

// Package policy decides by CEL rules over typed events what becomes of a call or of its result.
//
// The strictest of all rules that match decides, whatever their order: adding a
// rule never loosens what the others do. A rule that cannot be evaluated counts as
// one that matched and wants what OnError says. Rules in audit mode never act; what
// they would have decided stands beside the decision. docs/spec/policy.md lists what
// an expression may name.
package policy

import (
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// An Action is what becomes of a call or a result, the strictest last.
type Action uint8

// The actions.
const (
	Allow    Action = iota // nothing beyond what happens anyway
	Sanitise               // the result is sanitised once more under a stricter profile
	Ask                    // it waits for a person, who is asked a question
	Hold                   // it waits for a person
	Deny                   // it is refused
)

var actionWords = [...]string{"allow", "sanitise", "ask", "hold", "deny"}

// String is the action as a file spells it.
func (a Action) String() string {
	if int(a) < len(actionWords) {
		return actionWords[a]
	}
	return "deny"
}

// A Direction is what a rule is about.
type Direction uint8

// The directions.
const (
	Result Direction = iota // of a tool, on its way to the client
	Call                    // of a tool, before the server gets it
)

// String is "result" or "call".
func (d Direction) String() string {
	if d == Call {
		return "call"
	}
	return "result"
}

// An Event is what is to be decided on. Its strings are labels: no third-party
// text is in it.
type Event struct {
	Direction Direction
	Server    string
	Tool      string

	// What the server says of the tool, with the defaults of MCP where it says
	// nothing. A server can lie; a rule that these loosen believes it.
	ReadOnly, Destructive, OpenWorld bool
	// Privileged: the operator says that the tool acts, or the server does not say
	// that it only reads.
	Privileged bool

	Findings     []Count // of a result
	NotInspected int     // values that passed without a look inside
	Scores       []Score // of classifiers that have judged
	Size         int     // bytes of the result, or of the arguments

	ServerTrust, ToolTrust float64 // in [0, 1]
	Scopes                 []string
}

// A Count is how often a code was found.
type Count struct {
	Code finding.Code
	N    int
}

// A Score is what a classifier gives a text: the higher the more like an injection.
type Score struct {
	Name  string
	Value float64 // in [0, 1]
}

// An Outcome is what a rule wants.
type Outcome struct {
	Action   Action
	Rule     string // by which; "": none matched
	Profile  string // of Sanitise
	Question string // of Ask: the operator's words
	Failed   bool   // the rule could not be evaluated: Action is the policy's OnError
}

// A Decision is what becomes of an event.
type Decision struct {
	Outcome
	// Would is the outcome if rules in audit mode acted too, where that is
	// stricter; else it is zero.
	Would Outcome
}

// A Rule is the source form of one rule.
type Rule struct {
	Name   string // 1 to 64 of a-z 0-9 -, the first a letter or digit
	On     Direction
	When   string // CEL, true: the rule matches
	Unless string // CEL, true: it does not after all; "": there is no exception
	Then   Action

	Profile  string // of Sanitise: one of profiles
	Question string // of Ask
	Audit    bool   // what it wants is recorded only
}

// Source is the source form of a Policy. The zero value allows everything.
type Source struct {
	Rules []Rule
	// OnError is what a rule wants that cannot be evaluated: Hold or Deny, or Allow
	// for the default, which is Hold.
	OnError Action
	Audit   bool // every rule is in audit mode
}

// profiles are those that Sanitise can name.
var profiles = []string{"mcp"}

// Bounds of a policy.
const (
	MaxRules      = 64
	MaxExpression = 4096 // code points
	MaxQuestion   = 512  // bytes
	// maxCost is the most that one expression may cost in the worst case, in CEL's
	// units: about one for each step, and for each ten characters that are looked at.
	maxCost = 2000
	// meterFrom is the worst cost from which on an expression is metered while it
	// runs. What is cheaper than that is proven to be; the meter costs as much again.
	meterFrom = 100
)

// MaxScopes and MaxName bound what an expression meets, by which its cost is known
// before it runs: longer lists are cut, longer names are "other".
const (
	MaxScopes = 64
	MaxName   = 128
)
