// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// A Told is a description or an instruction that the model which comes with the
// program takes for an order to a model. It decides nothing.
type Told struct {
	Place string  `json:"place"`
	Score float64 `json:"score"` // 0 to 1; no probability
	Shown string  `json:"shown"`

	key  surface.Key
	path string
}

// told scores descriptions, descriptions of parameters and instructions. The limit is the
// model's own: the score that 1 % of the benign texts exceed on which it was not trained
// (boundary/classify/local/MODEL.md).
func told(s *surface.Surface) (out []Told) {
	model := local.Default()
	var r scrub.Result
	for _, x := range s.Prose() {
		asModelsSee.Scrub(x.Text, &r)
		text := r.Clean.String()
		score := model.Score(text)
		if score.P <= model.Limit() {
			continue
		}
		out = append(out, Told{x.Place.String(), float64(int(score.P*100)) / 100, finding.Quote(text[score.Start:score.End]), x.Key, x.Path})
	}
	return out
}

// asModelsSee is the form of the texts that the model was trained on.
var asModelsSee = func() *scrub.Scrubber {
	s, err := scrub.Compile(scrub.Policy{Profile: scrub.MCP})
	if err != nil {
		panic(err) // a constant of this package
	}
	return s
}()
