// SPDX-License-Identifier: Apache-2.0

package surface

import "github.com/pellucid-mcp/pellucid/boundary/blob"

// inside says what a string holds that looks like a data URI.
type inside uint8

const (
	noDataURI inside = iota
	textInside
	blobInside
)

// insideDataURI returns the texts that readers find in a data URI. Whatever looks like
// text is text, since what it calls itself binds no reader. Other content is a blob, and so
// is what readers decode differently.
func insideDataURI(s string) ([]string, inside) {
	u, ok := blob.ParseDataURI(s)
	if !ok {
		return nil, noDataURI
	}
	var texts []string
	for _, c := range u.Contents {
		for _, r := range c.Readings {
			texts = append(texts, r.Text())
		}
	}
	switch {
	case u.Ambiguous, len(u.Contents) > 0 && len(texts) == 0:
		return texts, blobInside
	case len(texts) == 0:
		return nil, noDataURI
	}
	return texts, textInside
}
