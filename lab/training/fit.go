// SPDX-License-Identifier: Apache-2.0

package training

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
)

// How weights are fitted. The figures were chosen on the same left-out families that
// MODELS.md reports, by hand and in few steps: its recall is a little too good for it.
const (
	rounds    = 2
	epochs    = 3 // of a round
	kindRate  = 0.1
	wordRate  = 0.05 // slower: kinds hold for new families, words often do not
	decay     = 1e-3 // of a weight at every use
	minGroups = 2    // that a feature must occur in
	levels    = 42   // of a weight on each side of 0
	least     = 1    // weights up to this level are left out
	nearTop   = 0.8  // a window of an attack is positive from this probability
	seed      = 1
)

// A fit is logistic regression on windows. Where in an attack the injection stands
// is not known: in the first round only short attacks count; then, of every attack,
// the windows that look most like one (multiple-instance learning, mi-SVM: Andrews,
// Tsochantaridis and Hofmann 2003).
type fit struct {
	w    []weight
	b    float32
	bg   float32
	kind []bool // features that are kinds of words
}

// A weight stands beside the sum of its squared gradients (AdaGrad: Duchi, Hazan and Singer 2011).
type weight struct{ w, g float32 }

type example struct {
	win    *window
	y      float32
	weight float32
}

// A packed text has the windows of a text with the features that have a weight, which are numbered
// closely: that the weights fit into the processor's cache makes training several times faster.
type packed struct {
	*text
	windows []window
}

// train fits weights. The same texts in the same order give the same weights on one
// architecture; where multiplication and addition are fused they may differ in the
// last bits.
func train(texts []*text, kind []bool) *fit {
	numbers, list := pack(texts, sharedBy(texts))
	m := &fit{}
	for f, n := range numbers {
		if n > 0 {
			m.kind = append(m.kind, kind[f])
		}
	}
	for round := range rounds {
		examples := m.examples(list, round == 0)
		m.w = make([]weight, len(m.kind))
		m.b, m.bg = 0, 0
		m.run(examples)
	}
	whole := &fit{w: make([]weight, local.Buckets), b: m.b, kind: kind}
	for f, n := range numbers {
		if n > 0 {
			whole.w[f] = m.w[n-1]
		}
	}
	whole.round()
	return whole
}

// round gives the weights the few levels in which they are kept: how small the file gets depends on
// how few there are. The least ones, which say next to nothing, become nothing.
func (m *fit) round() {
	var most float32
	for _, w := range m.w {
		most = max(most, w.w, -w.w)
	}
	scale := most / levels
	for i, w := range m.w {
		q := float32(math.RoundToEven(float64(w.w / scale)))
		if -least <= q && q <= least {
			q = 0
		}
		m.w[i].w = q * scale
	}
}

// pack numbers the features that are shared, from 1, and packs the texts.
func pack(texts []*text, shared []bool) (numbers []uint32, list []packed) {
	numbers = make([]uint32, local.Buckets)
	next := uint32(1)
	for f, s := range shared {
		if s {
			numbers[f] = next
			next++
		}
	}
	for _, t := range texts {
		p := packed{t, make([]window, len(t.windows))}
		for i, w := range t.windows {
			p.windows[i].norm, p.windows[i].holds = w.norm, w.holds
			for _, f := range w.features {
				if n := numbers[f]; n > 0 {
					p.windows[i].features = append(p.windows[i].features, n-1)
				}
			}
		}
		list = append(list, p)
	}
	return numbers, list
}

// weights are those of every feature.
func (m *fit) weights() []float32 {
	out := make([]float32, len(m.w))
	for i, w := range m.w {
		out[i] = w.w
	}
	return out
}

// sharedBy marks the features that occur in texts of minGroups groups: what only
// one author writes is a template, no sign of an injection.
func sharedBy(texts []*text) []bool {
	byGroup := map[string][]*text{}
	for _, t := range texts {
		byGroup[t.author] = append(byGroup[t.author], t)
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
func (m *fit) examples(texts []packed, first bool) (out []example) {
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
		if strings.HasPrefix(t.family, ownPrefix) {
			if t.attack {
				each *= ownAttack
			} else {
				each *= ownHonest
			}
		}
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
func (m *fit) positives(out []example, t packed, first bool) []example {
	if len(t.windows) > 0 && t.windows[0].holds >= 0 {
		most := float32(0)
		for i := range t.windows {
			most = max(most, t.windows[i].holds)
		}
		for i := range t.windows {
			switch w := &t.windows[i]; {
			case w.holds > 0.6*most:
				out = append(out, example{win: w, y: 1})
			case w.holds == 0:
				out = append(out, example{win: w})
			}
		}
		return out
	}
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
		s += m.w[f].w
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
		rate := float32(wordRate)
		if m.kind[f] {
			rate = kindRate
		}
		w := &m.w[f]
		g := x + decay*w.w
		w.g += g * g
		w.w -= rate * g / (float32(math.Sqrt(float64(w.g))) + tiny)
	}
	m.bg += d * d
	m.b -= kindRate * d / (float32(math.Sqrt(float64(m.bg))) + tiny)
}
