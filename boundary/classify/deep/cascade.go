// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"context"
	"errors"
	"math"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
)

// A Cascade asks the fast model about every text, and the deep one about those that the fast
// one is unsure of.
type Cascade struct {
	Fast *local.Model
	Deep *Model
}

var _ classify.Classifier = Cascade{}

// errScore says that the numbers of a file are of a form, but too large to compute with.
var errScore = errors.New("deep: the score of a text is not a number: the weights are of no use")

// Unsure reports whether the deep model looks at a text with this score of the fast one.
func (n *Numbers) Unsure(fast float32) bool { return fast >= n.Low && fast <= n.High }

// Score joins the score of the fast model and the logit of the deep one.
func (n *Numbers) Score(fast, logit float32) float64 {
	x := float64(n.Fast)*logitOf(fast) + float64(n.Deep)*float64(logit) + float64(n.Bias)
	return 1 / (1 + math.Exp(-x))
}

// logitOf is finite for every score.
func logitOf(p float32) float64 {
	const edge = 1e-6
	x := min(max(float64(p), edge), 1-edge)
	return math.Log(x / (1 - x))
}

// Judge is the score of a text, and whether the deep model has looked. A text of more than
// [Windows] windows has to be cut before.
func (c Cascade) Judge(text string) (p float64, looked bool) {
	fast := c.Fast.Score(text).P
	n := &c.Deep.Numbers
	switch {
	case fast < n.Low:
		return n.Score(fast, n.Below), false
	case fast > n.High:
		return n.Score(fast, n.Above), false
	}
	return n.Score(fast, c.Deep.Logit(text)), true
}

// Classify implements classify.Classifier. It ends when ctx does, between two texts.
func (c Cascade) Classify(ctx context.Context, texts []string) ([]classify.Score, error) {
	out := make([]classify.Score, len(texts))
	for i, t := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, looked := c.Judge(t)
		if math.IsNaN(p) {
			return nil, errScore
		}
		out[i] = classify.Score{P: p, Flagged: p >= float64(c.Deep.Limit)}
		if looked {
			out[i].Code = "deep"
		}
	}
	return out, nil
}

// Limits implements classify.Classifier. A code point gives at most one piece, so a text of
// this size has no more than [Windows] windows, and nothing of it goes unread.
func (c Cascade) Limits() classify.Limits {
	return classify.Limits{Texts: 4, Chars: min(4000, c.Deep.window+(Windows-1)*c.Deep.stride-2)}
}

// Version implements classify.Classifier.
func (c Cascade) Version() string { return c.Fast.Version() + "." + c.Deep.Version() }
