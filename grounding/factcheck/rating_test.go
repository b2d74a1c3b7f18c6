// SPDX-License-Identifier: Apache-2.0

package factcheck

import (
	"strings"
	"testing"
)

// TestRatingTable wants every word once: of two verdicts for one, chance would
// decide.
func TestRatingTable(t *testing.T) {
	seen := map[string]string{}
	for verdict, words := range ratingWords {
		for _, w := range strings.FieldsFunc(words, separates) {
			w = fold(unescape(w))
			if other, twice := seen[w]; twice && other != string(verdict) {
				t.Errorf("%q is both %s and %s", w, other, verdict)
			}
			seen[w] = string(verdict)
			if w == "" || fold(w) != w {
				t.Errorf("%q is not in the form of the table", w)
			}
		}
	}
	if len(seen) != len(ratings()) || len(seen) < 200 {
		t.Errorf("%d words, %d in the table", len(seen), len(ratings()))
	}
}
