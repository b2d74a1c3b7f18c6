// SPDX-License-Identifier: Apache-2.0

package ccrbench

import (
	"math"
	"slices"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
)

// A method names the segments that caused a target, by asking a model. told is how
// many there are, for the methods that have to be told.
type method struct {
	name string
	told bool
	run  func(m *simulated, n, told int) counterfactual.Set
}

// methods are the published ones, over the same answers. None sees logits: an
// answer proposes the target or does not.
var methods = []method{
	{"leave-one-out", false, leaveOneOut},
	{"keep-one", false, keepOne},
	{"Shapley", false, shapley},
	{"ContextCite", true, contextCite},
	{"TracLLM", true, tracLLM},
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func leaveOneOut(m *simulated, n, _ int) counterfactual.Set {
	var out []int
	for i := range n {
		if !m.recurs(counterfactual.AllOf(n).Minus(counterfactual.SetOf(i))) {
			out = append(out, i)
		}
	}
	return counterfactual.SetOf(out...)
}

func keepOne(m *simulated, n, _ int) counterfactual.Set {
	var out []int
	for i := range n {
		if m.recurs(counterfactual.SetOf(i)) {
			out = append(out, i)
		}
	}
	return counterfactual.SetOf(out...)
}

// Shapley values by sampled orders (Castro, Gómez and Tejada, 2009).
const (
	shapleyOrders = 5
	shapleyLeast  = 0.15
)

func shapley(m *simulated, n, _ int) counterfactual.Set {
	phi := make([]float64, n)
	for range shapleyOrders {
		order := m.rng.Perm(n)
		last := number(m.recurs(""))
		for i := range order {
			now := number(m.recurs(counterfactual.SetOf(order[:i+1]...)))
			phi[order[i]] += (now - last) / shapleyOrders
			last = now
		}
	}
	var out []int
	for i, v := range phi {
		if v >= shapleyLeast {
			out = append(out, i)
		}
	}
	return counterfactual.SetOf(out...)
}

// ContextCite (Cohen-Wang et al., 2024): a sparse linear model, by LASSO, of the
// answers to random halves of the context.
const (
	citeAblations = 32
	citeLambda    = 0.01
	citeRounds    = 300
)

func contextCite(m *simulated, n, told int) counterfactual.Set {
	rows := make([][]float64, citeAblations)
	y := make([]float64, citeAblations)
	for r := range rows {
		rows[r] = make([]float64, n)
		var kept []int
		for i := range n {
			if m.rng.Uint64()&1 == 1 {
				rows[r][i] = 1
				kept = append(kept, i)
			}
		}
		y[r] = number(m.recurs(counterfactual.SetOf(kept...)))
	}
	return largest(lasso(rows, y), told)
}

// lasso is the coefficients of standardised columns by coordinate descent, scaled
// back.
func lasso(rows [][]float64, y []float64) []float64 {
	count, n := float64(len(rows)), len(rows[0])
	sd := make([]float64, n)
	mean := 0.0
	for _, v := range y {
		mean += v / count
	}
	rest := make([]float64, len(y))
	for r := range y {
		rest[r] = y[r] - mean
	}
	for i := range n {
		mu := 0.0
		for r := range rows {
			mu += rows[r][i] / count
		}
		for r := range rows {
			rows[r][i] -= mu
			sd[i] += rows[r][i] * rows[r][i] / count
		}
		if sd[i] = math.Sqrt(sd[i]); sd[i] == 0 {
			sd[i] = 1
		}
		for r := range rows {
			rows[r][i] /= sd[i]
		}
	}
	w := make([]float64, n)
	for range citeRounds {
		moved := 0.0
		for i := range n {
			g := 0.0
			for r := range rows {
				g += rows[r][i] * rest[r] / count
			}
			was := w[i]
			w[i] = math.Copysign(max(math.Abs(was+g)-citeLambda, 0), was+g)
			if w[i] == was {
				continue
			}
			moved = max(moved, math.Abs(w[i]-was))
			for r := range rows {
				rest[r] -= rows[r][i] * (w[i] - was)
			}
		}
		if moved < 1e-6 {
			break
		}
	}
	for i := range w {
		w[i] /= sd[i]
	}
	return w
}

// TracLLM (Wang et al., 2025): halve the groups, keep the best few by their scores,
// until they are single segments. The constants are its defaults. Its scores are made
// of log-probabilities; of answers alone the largest of them ties too often, so that
// the Shapley value is added to the larger of the two others, which serves it better.
const (
	tracGroups = 5
	tracOrders = 5
	tracWeight = 2 // of leave-one-out
)

func tracLLM(m *simulated, n, told int) counterfactual.Set {
	nodes := [][]int{counterfactual.AllOf(n).List()}
	scores := make([]float64, n)
	for {
		var halves [][]int
		split := false
		for _, g := range nodes {
			if len(g) == 1 {
				halves = append(halves, g)
				continue
			}
			split = true
			halves = append(halves, g[:len(g)/2], g[len(g)/2:])
		}
		if !split {
			break
		}
		nodes = halves
		single := !slices.ContainsFunc(nodes, func(g []int) bool { return len(g) > 1 })
		if len(nodes) <= tracGroups && !single {
			continue
		}
		value := tracScores(m, nodes)
		best := largest(value, tracGroups)
		var kept [][]int
		for i := range best.Places() {
			kept = append(kept, nodes[i])
			if len(nodes[i]) == 1 {
				scores[nodes[i][0]] = value[i]
			}
		}
		nodes = kept
	}
	return largest(scores, told)
}

func tracScores(m *simulated, nodes [][]int) []float64 {
	set := func(groups ...[]int) counterfactual.Set { return counterfactual.SetOf(slices.Concat(groups...)...) }
	none, whole := number(m.recurs("")), number(m.recurs(set(nodes...)))
	out := make([]float64, len(nodes))
	for i, g := range nodes {
		alone := number(m.recurs(set(g))) - none
		left := whole - number(m.recurs(set(nodes...).Minus(set(g))))
		out[i] = max(alone, tracWeight*left)
	}
	for range tracOrders {
		last := none
		var shown counterfactual.Set
		for _, i := range m.rng.Perm(len(nodes)) {
			shown = shown.Union(set(nodes[i]))
			now := number(m.recurs(shown))
			out[i] += (now - last) / tracOrders
			last = now
		}
	}
	return out
}

// largest is the places of the k largest values; of equal ones the first.
func largest(v []float64, k int) counterfactual.Set {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case v[a] > v[b]:
			return -1
		case v[a] < v[b]:
			return 1
		}
		return 0
	})
	return counterfactual.SetOf(order[:min(k, len(order))]...)
}
