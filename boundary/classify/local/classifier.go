// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
)

// A Classifier is a Model behind the interface of package classify. It needs no
// network and ends when ctx does, between two texts.
type Classifier struct{ Model *Model }

var _ classify.Classifier = Classifier{}

// Classify implements classify.Classifier.
func (c Classifier) Classify(ctx context.Context, texts []string) ([]classify.Score, error) {
	out := make([]classify.Score, len(texts))
	for i, t := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p := c.Model.Score(t).P
		out[i] = classify.Score{P: float64(p), Flagged: p > c.Model.Limit()}
	}
	return out, nil
}

// Limits implements classify.Classifier: a text is cut so that the time between two
// looks at ctx is some milliseconds.
func (c Classifier) Limits() classify.Limits { return classify.Limits{Texts: 16, Chars: 256 << 10} }

// Version implements classify.Classifier.
func (c Classifier) Version() string { return c.Model.Version() }
