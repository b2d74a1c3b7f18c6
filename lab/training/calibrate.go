// SPDX-License-Identifier: Apache-2.0

package training

import (
	"math"
	"slices"

	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
)

// pull is how many honest texts of a sort move it half as far as they say.
const pull = 400

// calibrate sets the score of every judgement by a calibration that was fitted without its fold,
// and returns the one that was fitted on all, for the model.
func calibrate(js []judgement) local.Calibration {
	folds := 0
	for _, j := range js {
		folds = max(folds, j.fold+1)
	}
	for fold := range folds {
		var rest []judgement
		for _, j := range js {
			if j.fold != fold {
				rest = append(rest, j)
			}
		}
		lines := linesOf(rest)
		for i := range js {
			if js[i].fold == fold {
				js[i].p = along(lines[js[i].sort], js[i].logit)
			}
		}
	}
	c := local.Calibration{Lines: linesOf(js)}
	for i, rate := range local.Rates {
		c.Limits[i] = limitOf(js, float64(rate)/10_000)
	}
	return c
}

func along(l local.Line, logit float32) float32 { return sigmoid(l.Slope*logit + l.Shift) }

// linesOf fits a line for each sort: first the logits are moved so that high ones are equally rare
// among the honest texts of every sort, then one line makes probabilities of all (Platt 1999), as if
// half of all texts were attacks.
func linesOf(js []judgement) (out [local.Sorts]local.Line) {
	var honest []float32
	var bySort [local.Sorts][]float32
	for _, j := range js {
		if !j.attack && j.logit > empty {
			honest = append(honest, j.logit)
			bySort[j.sort] = append(bySort[j.sort], j.logit)
		}
	}
	to := high(honest)
	for sort, list := range bySort {
		out[sort].Slope = 1
		if len(list) > 0 {
			out[sort].Shift = (to - high(list)) * float32(len(list)) / float32(len(list)+pull)
		}
	}
	slope, shift := platt(js, out)
	for sort := range out {
		out[sort] = local.Line{Slope: slope, Shift: slope*out[sort].Shift + shift}
	}
	return out
}

// high is a logit that few honest texts exceed.
func high(logits []float32) float32 {
	slices.Sort(logits)
	return logits[len(logits)-1-len(logits)/80]
}

// platt fits the line over the moved logits by Newton's method.
func platt(js []judgement, moved [local.Sorts]local.Line) (slope, shift float32) {
	weights := weigh(js)
	a, b := 0.0, 0.0
	for range 50 {
		ga, gb, haa, hab, hbb := 0.0, 0.0, 1e-9, 0.0, 1e-9
		for i, j := range js {
			x, y, w := float64(j.logit+moved[j.sort].Shift), float64(sideOf(j)), weights[i]
			p := 1 / (1 + math.Exp(-a*x-b))
			d, h := w*(p-y), w*p*(1-p)
			ga, gb = ga+d*x, gb+d
			haa, hab, hbb = haa+h*x*x, hab+h*x, hbb+h
		}
		det := haa*hbb - hab*hab
		da, db := (hbb*ga-hab*gb)/det, (haa*gb-hab*ga)/det
		a, b = a-da, b-db
		if math.Abs(da)+math.Abs(db) < 1e-9 {
			break
		}
	}
	return float32(a), float32(b)
}

// weigh says how much each judgement counts: each side as much as the other, and a family as the
// root of its size.
func weigh(js []judgement) []float64 {
	type family struct {
		name string
		side int
	}
	sizes := map[family]float64{}
	for _, j := range js {
		sizes[family{j.family, sideOf(j)}]++
	}
	var sum [2]float64
	out := make([]float64, len(js))
	for i, j := range js {
		out[i] = 1 / math.Sqrt(sizes[family{j.family, sideOf(j)}])
		sum[sideOf(j)] += out[i]
	}
	for i, j := range js {
		out[i] *= (sum[0] + sum[1]) / 2 / sum[sideOf(j)]
	}
	return out
}

func sideOf(j judgement) int {
	if j.attack {
		return 1
	}
	return 0
}
