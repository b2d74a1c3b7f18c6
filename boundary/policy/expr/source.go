// SPDX-License-Identifier: Apache-2.0

// Package expr compiles the rules of a policy, which are written in CEL, and decides by them.
//
// The strictest of all rules that match decides, whatever their order: adding a
// rule never loosens what the others do. A rule that cannot be evaluated counts as
// one that matched and wants what OnError says. Rules in audit mode never act; what
// they would have decided stands beside the ruling. docs/spec/policy.md lists what
// an expression may name.
package expr

import (
	"github.com/pellucid-mcp/pellucid/boundary/policy"
)

// A Rule is the source form of one rule.
type Rule struct {
	Name   string // 1 to 64 of a-z 0-9 -, the first a letter or digit
	On     policy.Direction
	When   string // CEL, true: the rule matches
	Unless string // CEL, true: it does not after all; "": there is no exception
	Then   policy.Action

	Profile  string // of policy.Sanitise: formerProfile or nothing, which is the same
	Question string // of policy.Ask
	Audit    bool   // what it wants is recorded only
}

// Source is the source form of Rules. The zero value allows everything.
type Source struct {
	Rules []Rule
	// OnError is what a rule wants that cannot be evaluated: policy.Hold or policy.Deny, or
	// policy.Allow for the default, which is policy.Hold.
	OnError policy.Action
	Audit   bool // every rule is in audit mode
}

// formerProfile is what rules that sanitise had to name once.
const formerProfile = "mcp"

// Bounds of a policy.
const (
	MaxRules      = 64
	MaxExpression = 4096 // code points
	MaxQuestion   = 512  // bytes
	// maxCost is the most that one expression may cost in the worst case, in CEL's
	// units: about one for each step, and for each ten characters that are looked at.
	maxCost = 2000
	// maxFactsCost is the same of an expression that reads args or claims, whose texts are longer than labels: at
	// most a few milliseconds.
	maxFactsCost = 100_000
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
