// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"math"
	"sync"

	"github.com/pellucid-mcp/pellucid/model/format"
)

// A Ceiling names one of the Limits.
type Ceiling string

// The ceilings.
const (
	CeilingCalls  Ceiling = "calls"
	CeilingTokens Ceiling = "tokens"
)

// Limits are the ceilings of a Budget. 0 = none at all may be spent; use
// Unlimited for what is not to be limited.
type Limits struct {
	Calls  int64 // attempts that reach the wire
	Tokens int64 // input, cached or not, and output
}

// Unlimited is a ceiling that is not reached.
const Unlimited = math.MaxInt64

// Spent is what was charged to a Budget.
type Spent struct {
	Calls  int64
	Tokens int64

	Usage format.Usage // of all answers whose usage the provider has said; Known if there was one
	// Guessed counts the attempts that were charged as reserved, since the provider
	// did not say what they used: a timeout, a cut stream.
	Guessed int64
}

// A Budget is a ceiling for several requests together. Before an attempt its
// greatest possible price is set aside, and what is left of that afterwards comes
// back, so that requests at the same time cannot exceed together what each alone
// may spend. What Spent says is never above the Limits unless a provider reports
// more than the caller's bound on the input or than the MaxTokens it was given;
// then nothing further is granted.
//
// A Budget may be used by several requests at the same time. A nil *Budget has no
// limits.
type Budget struct {
	mu       sync.Mutex
	limits   Limits
	spent    Spent
	reserved price
}

// A price is what an attempt may cost, or did.
type price struct{ calls, tokens int64 }

// NewBudget is a budget of which nothing is spent.
func NewBudget(l Limits) *Budget { return &Budget{limits: l} }

// Spent is what was charged until now, without what is set aside.
func (b *Budget) Spent() Spent {
	if b == nil {
		return Spent{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spent
}

// Limits are the ceilings.
func (b *Budget) Limits() Limits {
	if b == nil {
		return Limits{Unlimited, Unlimited}
	}
	return b.limits
}

// reserve sets p aside, or says which ceiling forbids it.
func (b *Budget) reserve(p price) Ceiling {
	if b == nil {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case over(b.limits.Calls, b.spent.Calls, b.reserved.calls, p.calls):
		return CeilingCalls
	case over(b.limits.Tokens, b.spent.Tokens, b.reserved.tokens, p.tokens):
		return CeilingTokens
	}
	b.reserved.calls += p.calls
	b.reserved.tokens += p.tokens
	return ""
}

// over reports whether more goes above limit; none of them is negative, and
// reserved never exceeds limit.
func over(limit, spent, reserved, more int64) bool {
	left := max(limit, 0) - min(spent, max(limit, 0)) - reserved
	return more > left
}

// A settlement is how an attempt ended, as far as it costs.
type settlement uint8

const (
	settleFree    settlement = iota // it did not reach the wire, or was answered by an error
	settleUsage                     // the provider has said
	settleGuessed                   // nobody has said: as reserved
)

// settle gives back what was reserved as p and charges what was used.
func (b *Budget) settle(p price, how settlement, sent bool, u format.Usage) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reserved.calls -= p.calls
	b.reserved.tokens -= p.tokens
	if sent {
		b.spent.Calls += p.calls
	}
	switch how {
	case settleGuessed:
		b.spent.Guessed++
		b.spent.Tokens = plus(b.spent.Tokens, p.tokens)
	case settleUsage:
		b.spent.Tokens = plus(b.spent.Tokens, u.Input+u.Output)
		t := &b.spent.Usage
		t.Known = true
		t.Input, t.Cached, t.CacheWrite = plus(t.Input, u.Input), plus(t.Cached, u.Cached), plus(t.CacheWrite, u.CacheWrite)
		t.Output, t.Reasoning = plus(t.Output, u.Output), plus(t.Reasoning, u.Reasoning)
	}
}

// plus adds what is not negative, up to the greatest int64.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// budgets are reserved and settled together.
type budgets []*Budget

func (bs budgets) reserve(p price) Ceiling {
	for i, b := range bs {
		if c := b.reserve(p); c != "" {
			bs[:i].settle(p, settleFree, false, format.Usage{})
			return c
		}
	}
	return ""
}

func (bs budgets) settle(p price, how settlement, sent bool, u format.Usage) {
	for _, b := range bs {
		b.settle(p, how, sent, u)
	}
}
