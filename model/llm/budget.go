// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"math"
	"math/bits"
	"sync"

	"github.com/pellucid-mcp/pellucid/model/format"
)

// Micros is an amount of money in millionths of a unit of the operator's currency.
type Micros int64

// Prices are what a provider charges for a million tokens. The zero Prices charge
// nothing: then a ceiling of cost is not enforced by this package.
type Prices struct {
	Input      Micros
	Cached     Micros // of input read from the prompt cache; 0 = as Input
	CacheWrite Micros // of input written to it; 0 = as Input
	Output     Micros
}

// Cost is the price of u, rounded up.
func (p Prices) Cost(u format.Usage) Micros {
	cached, write := p.Cached, p.CacheWrite
	if cached == 0 {
		cached = p.Input
	}
	if write == 0 {
		write = p.Input
	}
	plain := max(u.Input-u.Cached-u.CacheWrite, 0)
	var sum total
	sum.add(plain, p.Input)
	sum.add(u.Cached, cached)
	sum.add(u.CacheWrite, write)
	sum.add(u.Output, p.Output)
	return sum.perMillion()
}

// atMost is the highest cost of input and output tokens.
func (p Prices) atMost(input, output int64) Micros {
	var sum total
	sum.add(input, max(p.Input, p.Cached, p.CacheWrite))
	sum.add(output, p.Output)
	return sum.perMillion()
}

// A total is a sum of products in 128 bits, so that no price and no count of a
// hostile provider overflows it.
type total struct{ hi, lo uint64 }

func (t *total) add(tokens int64, price Micros) {
	hi, lo := bits.Mul64(uint64(max(tokens, 0)), uint64(max(price, 0)))
	var carry uint64
	t.lo, carry = bits.Add64(t.lo, lo, 0)
	t.hi, _ = bits.Add64(t.hi, hi, carry)
}

func (t *total) perMillion() Micros {
	const million = 1_000_000
	if t.hi >= million/2 {
		return math.MaxInt64
	}
	q, r := bits.Div64(t.hi, t.lo, million)
	if r > 0 {
		q++
	}
	return Micros(min(q, math.MaxInt64))
}

// A Ceiling names one of the Limits.
type Ceiling string

// The ceilings.
const (
	CeilingCalls  Ceiling = "calls"
	CeilingTokens Ceiling = "tokens"
	CeilingCost   Ceiling = "cost"
)

// Limits are the ceilings of a Budget. 0 = none at all may be spent; use
// Unlimited for what is not to be limited.
type Limits struct {
	Calls  int64 // attempts that reach the wire
	Tokens int64 // input, cached or not, and output
	Cost   Micros
}

// Unlimited is a ceiling that is not reached.
const Unlimited = math.MaxInt64

// Spent is what was charged to a Budget.
type Spent struct {
	Calls  int64
	Tokens int64
	Cost   Micros

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
type price struct {
	calls, tokens int64
	cost          Micros
}

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
		return Limits{Unlimited, Unlimited, Unlimited}
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
	case over(int64(b.limits.Cost), int64(b.spent.Cost), int64(b.reserved.cost), int64(p.cost)):
		return CeilingCost
	}
	b.reserved.calls += p.calls
	b.reserved.tokens += p.tokens
	b.reserved.cost += p.cost
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
func (b *Budget) settle(p price, how settlement, sent bool, u format.Usage, cost Micros) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reserved.calls -= p.calls
	b.reserved.tokens -= p.tokens
	b.reserved.cost -= p.cost
	if sent {
		b.spent.Calls += p.calls
	}
	switch how {
	case settleGuessed:
		b.spent.Guessed++
		b.charge(p.tokens, p.cost)
	case settleUsage:
		b.charge(u.Input+u.Output, cost)
		t := &b.spent.Usage
		t.Known = true
		t.Input, t.Cached, t.CacheWrite = plus(t.Input, u.Input), plus(t.Cached, u.Cached), plus(t.CacheWrite, u.CacheWrite)
		t.Output, t.Reasoning = plus(t.Output, u.Output), plus(t.Reasoning, u.Reasoning)
	}
}

func (b *Budget) charge(tokens int64, cost Micros) {
	b.spent.Tokens = plus(b.spent.Tokens, tokens)
	b.spent.Cost = Micros(plus(int64(b.spent.Cost), int64(cost)))
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
			bs[:i].settle(p, settleFree, false, format.Usage{}, 0)
			return c
		}
	}
	return ""
}

func (bs budgets) settle(p price, how settlement, sent bool, u format.Usage, cost Micros) {
	for _, b := range bs {
		b.settle(p, how, sent, u, cost)
	}
}
