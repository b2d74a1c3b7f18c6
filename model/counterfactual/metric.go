// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"math"
	"slices"
	"strings"
)

// A Metric measures how far an answer is from the base answer. Metrics are
// diagnostic: they are written into the record, no attribution rests on one.
type Metric struct {
	ID string // with its version
	// Measure returns thousandths: 0 = the same, 1000 = nothing in common; negative: it could
	// not be measured.
	Measure func(p *Privileges, base, variant *Answer) int
}

// Divergence is Measure, held to -1 to 1000.
func (m Metric) Divergence(p *Privileges, base, variant *Answer) int {
	return min(max(m.Measure(p, base, variant), -1), 1000)
}

// MetricIDs are the ids of metrics, in their order.
func MetricIDs(metrics []Metric) (out []string) {
	for _, m := range metrics {
		out = append(out, m.ID)
	}
	return out
}

// Metrics are the built-in ones, in the order in which observations list them.
func Metrics() []Metric {
	return []Metric{
		{"recurrence/1", recurrence},
		{"tool-shift/1", toolShift},
		{"path-edit/1", pathEdit},
		{"policy-difference/2", policyDifference},
		{"refusal-flip/1", refusalFlip},
		{"ngram-overlap/1", ngram},
		{"cosine-hashed/1", cosine},
	}
}

// recurrence is the share of the base answer's targets that do not recur.
func recurrence(p *Privileges, base, variant *Answer) int {
	targets, actions := p.Targets(base), p.Proposals(variant)
	gone := 0
	for i := range targets {
		if !slices.ContainsFunc(actions, func(a Proposal) bool { return Recurs(&targets[i], &a, DefaultTheta) }) {
			gone++
		}
	}
	if len(targets) == 0 {
		return 0
	}
	return 1000 * gone / len(targets)
}

// maxShift bounds the calls that tool shift assigns to each other.
const maxShift = 32

// toolShift is the cost of turning the calls of one answer into those of the other,
// in the cheapest assignment that a greedy choice finds: nothing for the same call,
// up to 500 for other arguments of the same tool, 1000 for a call that is missing or
// new; relative to the longer list.
func toolShift(p *Privileges, base, variant *Answer) int {
	x, y := calls(p, base), calls(p, variant)
	type pair struct{ cost, i, j int }
	var pairs []pair
	for i := range x {
		for j := range y {
			if x[i].Tool == y[j].Tool {
				pairs = append(pairs, pair{argumentCost(&x[i], &y[j]), i, j})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return a.cost - b.cost })
	var usedX, usedY [maxShift]bool
	cost, matched := 0, 0
	for _, q := range pairs {
		if !usedX[q.i] && !usedY[q.j] {
			usedX[q.i], usedY[q.j] = true, true
			cost += q.cost
			matched++
		}
	}
	longer := max(len(x), len(y))
	if longer == 0 {
		return 0
	}
	return (cost + 1000*(longer-matched)) / longer
}

func calls(p *Privileges, a *Answer) []Proposal {
	var out []Proposal
	for _, c := range a.Calls[:min(len(a.Calls), maxShift)] {
		out = append(out, p.Proposal(c))
	}
	return out
}

// argumentCost is 0 to 500: critical arguments count three quarters, text one.
func argumentCost(x, y *Proposal) int {
	gone := 0
	if n := len(x.Critical); n > 0 {
		gone = 375 * len(missing(x, y)) / n
	}
	return gone + (1000-similarity(x.Free, y.Free))/8
}

// pathEdit is the edit distance of the sequences of tools, relative to the longer.
func pathEdit(p *Privileges, base, variant *Answer) int {
	x, y := base.Calls[:min(len(base.Calls), maxProposals)], variant.Calls[:min(len(variant.Calls), maxProposals)]
	if len(x) == 0 && len(y) == 0 {
		return 0
	}
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			change := diagonal
			if x[i].Name != y[j].Name {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return 1000 * row[len(y)] / max(len(x), len(y))
}

// policyDifference is the share of calls of which the policy says something that it does not say
// of a call of the other answer: how privileged the tool is, whether the arguments can be read,
// and what the rules about values say.
func policyDifference(p *Privileges, base, variant *Answer) int {
	type ruled struct {
		privilege int
		malformed bool
		ruling    string
	}
	count := map[ruled][2]int{}
	for k, a := range []*Answer{base, variant} {
		for _, c := range a.Calls[:min(len(a.Calls), maxProposals)] {
			act := p.Proposal(c)
			r := ruled{privilege: act.Privilege, malformed: act.Malformed}
			if p != nil && p.Ruling != nil {
				r.ruling = p.Ruling(c)
			}
			if r.privilege > 0 || r.ruling != "" {
				n := count[r]
				n[k]++
				count[r] = n
			}
		}
	}
	var only [2]int
	all := [2]int{}
	for _, n := range count {
		for k := range n {
			all[k] += n[k]
			only[k] += max(n[k]-n[1-k], 0)
		}
	}
	if max(all[0], all[1]) == 0 {
		return 0
	}
	return 1000 * max(only[0], only[1]) / max(all[0], all[1])
}

func refusalFlip(_ *Privileges, base, variant *Answer) int {
	if refused(base) != refused(variant) {
		return 1000
	}
	return 0
}

// ngram is what the two texts do not share of their runs of three characters.
func ngram(_ *Privileges, base, variant *Answer) int { return 1000 - similar(base.Text, variant.Text) }

// cosineBuckets is the size of the hashed vectors.
const cosineBuckets = 1 << 12

// stopWords hardly tell one text from another; a fixed list stands for the inverse
// document frequency, so that a figure means the same everywhere.
const stopWords = " a an and are as at be but by for from has have i in is it its of on or our s so t that the their there these they this to was we were will with would you your "

// cosine is the angle between the hashed vectors of the words of two texts: the
// number of times a word occurs, a tenth of that for a stop word.
func cosine(_ *Privileges, base, variant *Answer) int {
	x, y := wordVector(base.Text), wordVector(variant.Text)
	var xy, xx, yy int64
	for i := range x {
		xy += x[i] * y[i]
		xx += x[i] * x[i]
		yy += y[i] * y[i]
	}
	if xx == 0 || yy == 0 {
		if xx == yy {
			return 0
		}
		return 1000
	}
	return 1000 - int(math.Round(1000*float64(xy)/(math.Sqrt(float64(xx))*math.Sqrt(float64(yy)))))
}

func wordVector(text string) *[cosineBuckets]int64 {
	v := new([cosineBuckets]int64)
	for _, w := range words(cutValue(text)) {
		h := uint64(14695981039346656037)
		for i := range len(w) {
			h = (h ^ uint64(w[i])) * 1099511628211
		}
		weight := int64(10)
		if strings.Contains(stopWords, " "+w+" ") {
			weight = 1
		}
		v[mix(h)%cosineBuckets] += weight
	}
	return v
}

// Conformal is the p-value of x among the values that a metric had where nothing
// had changed: the share of these, and x itself, that are at least x; in
// millionths.
func Conformal(null []int, x int) int {
	above := 1
	for _, v := range null {
		if v >= x {
			above++
		}
	}
	return 1_000_000 * above / (len(null) + 1)
}
