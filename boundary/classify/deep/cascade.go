// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
)

// A Cascade asks the fast model about every text, and the deep one about those that the fast
// one does not let by.
type Cascade struct {
	Fast *local.Model
	Deep *File
	// Windows bounds how many windows of the texts of one question the deep model looks at: those
	// that the fast one finds the worst. 0 stands for 16.
	Windows int
}

var _ classify.Quoter = Cascade{}

// What the score of both is made of. The numbers were fitted on what tools return, once.
const (
	// Gate is the score of the fast model from which the deep one looks: a third of what tools return has
	// it.
	Gate = .379
	// NotLooked stands for the logit of the deep model where it has not looked.
	NotLooked = -edge

	fastShare = .4 // of the logit of the fast model
	deepShare = .5 // of that of the deep one
	edge      = 12 // of both logits
)

// DefaultWindows is how many windows are looked at where no setting says otherwise.
const DefaultWindows = 16

// errScore says that the numbers of a file are of a form, but too large to compute with.
var errScore = errors.New("deep: the score of a text is not a number: the weights are of no use")

// rates are the false alarms, of 10,000 honest texts of the kinds that tools return, for which the
// limit of the score is known, and limits are those where the deep model looks at every text: the few
// texts on which the fast model calls it are louder than most.
var (
	rates  = []int{10, 25, 50, 100, 200, 500}
	limits = []float32{.8562, .8404, .8173, .7833, .7309, .5852}
)

// LimitFor is the score that so many of 10,000 honest texts exceed. What lies beyond the rates was
// not measured: it is false then.
func LimitFor(falseAlarms int) (float32, bool) { return local.Between(rates, limits, falseAlarms) }

// Join is the score of both models, which is no probability.
func Join(fast, logit float32) float64 {
	x := fastShare*clip(logitOf(fast)) + deepShare*clip(float64(logit))
	return 1 / (1 + math.Exp(-x))
}

func clip(x float64) float64 { return max(-edge, min(edge, x)) }

func logitOf(p float32) float64 { return math.Log(float64(p) / (1 - float64(p))) }

// A window is one that the deep model may look at.
type window struct {
	text     int
	from, to int // bytes
	loud     float32
	ids      []int32
}

// loudest keeps the windows that the fast model finds the worst.
type loudest struct {
	most int
	list []window
}

func (l *loudest) add(w window) {
	if len(l.list) == l.most {
		i := 0
		for k := range l.list {
			if l.list[k].loud < l.list[i].loud {
				i = k
			}
		}
		if w.loud <= l.list[i].loud {
			return
		}
		l.list = slices.Delete(l.list, i, i+1)
	}
	w.ids = slices.Clone(w.ids)
	l.list = append(l.list, w)
}

// hear adds the windows of a text.
func (c Cascade) hear(l *loudest, m *Model, i int, text string) {
	m.vocabulary.windows(text, m.Window, m.Stride, func(ids []int32, from, to int) {
		l.add(window{i, from, to, c.Fast.Score(text[from:to]).P, ids})
	})
}

func (l *loudest) logits(ctx context.Context, m *Model) ([]float32, error) {
	ids := make([][]int32, len(l.list))
	for i, w := range l.list {
		ids[i] = w.ids
	}
	out, err := m.Logits(ctx, ids)
	for _, x := range out {
		if math.IsNaN(float64(x)) {
			return nil, errScore
		}
	}
	return out, err
}

// Classify implements classify.Classifier. It ends when ctx does, between two texts and two layers.
func (c Cascade) Classify(ctx context.Context, texts []string) ([]classify.Score, error) {
	fast, logit := make([]float32, len(texts)), make([]float32, len(texts))
	heard := loudest{most: c.windows()}
	var m *Model
	for i, t := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		fast[i], logit[i] = c.Fast.Score(t).P, NotLooked
		if fast[i] < Gate {
			continue
		}
		if m == nil {
			var err error
			if m, err = c.Deep.Model(); err != nil {
				return nil, err
			}
		}
		c.hear(&heard, m, i, t)
	}
	looked := make([]bool, len(texts))
	if len(heard.list) > 0 {
		found, err := heard.logits(ctx, m)
		if err != nil {
			return nil, err
		}
		for k, x := range found {
			i := heard.list[k].text
			looked[i], logit[i] = true, max(logit[i], x)
		}
	}
	limit, _ := LimitFor(100)
	out := make([]classify.Score, len(texts))
	for i := range texts {
		p := Join(fast[i], logit[i])
		out[i] = classify.Score{P: p, Flagged: p >= float64(limit), Fast: float64(fast[i])}
		if looked[i] {
			out[i].Code, out[i].Deep = "deep", 1/(1+math.Exp(-float64(logit[i])))
		}
	}
	return out, nil
}

func (c Cascade) windows() int {
	if c.Windows > 0 {
		return c.Windows
	}
	return DefaultWindows
}

// looks bounds what it costs to find a sentence.
const looks = 8

// Quote implements classify.Quoter: of the worst window of a text, the sentence without which the window
// is the least bad.
func (c Cascade) Quote(ctx context.Context, text string) (string, error) {
	m, err := c.Deep.Model()
	if err != nil {
		return "", err
	}
	heard := loudest{most: c.windows()}
	c.hear(&heard, m, 0, text)
	found, err := heard.logits(ctx, m)
	if err != nil {
		return "", err
	}
	w := heard.list[indexOf(found, slices.Max(found))]
	parts := sentences(text[w.from:w.to])
	if len(parts) < 2 {
		return strings.TrimSpace(text[w.from:w.to]), nil
	}
	without := make([][]int32, len(parts))
	for i := range parts {
		rest := strings.Join(slices.Concat(parts[:i], parts[i+1:]), " ")
		without[i], _ = m.vocabulary.Cut(nil, rest, m.Window)
	}
	if found, err = m.Logits(ctx, without); err != nil {
		return "", err
	}
	return strings.TrimSpace(parts[indexOf(found, slices.Min(found))]), nil
}

func indexOf(list []float32, x float32) int { return max(0, slices.Index(list, x)) }

// sentences cuts a text behind what ends a sentence or a line, into at most looks parts of which each
// but the last is the shortest that is not too short.
func sentences(text string) (out []string) {
	least := len(text) / looks / 2
	begin := 0
	for i, r := range text {
		if !strings.ContainsRune(".!?\n;\u3002\uff01\uff1f\u0964\u061f", r) || len(out) == looks-1 {
			continue
		}
		end := i + len(string(r))
		if r == '.' && end < len(text) && text[end] > ' ' { // of a number or a name
			continue
		}
		if strings.TrimSpace(text[begin:end]) != "" && end-begin > least {
			out, begin = append(out, text[begin:end]), end
		}
	}
	if strings.TrimSpace(text[begin:]) != "" {
		out = append(out, text[begin:])
	}
	return out
}

// Limits implements classify.Classifier: of all texts of a question the loudest windows are looked at.
func (c Cascade) Limits() classify.Limits { return classify.Limits{Texts: 1 << 16} }

// Version implements classify.Classifier.
func (c Cascade) Version() string { return c.Fast.Version() + ".deep-" + c.Deep.digest[:12] }
