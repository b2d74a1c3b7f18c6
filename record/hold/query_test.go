// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"errors"
	"testing"
	"time"
)

// TestFilterText: what Postgres does not take as text reaches no store.
func TestFilterText(t *testing.T) {
	q := New(nil, Options{})
	for _, s := range []string{"a\x00b", "a\xffb"} {
		for _, f := range []Filter{{Server: s}, {Tool: s}, {Rule: s}, {Principal: s}, {Text: s}, {ID: s}, {After: s}} {
			f.AsOf = time.Now()
			_, page := q.Page(t.Context(), f)
			_, groups := q.Groups(t.Context(), f, ByServer, NewestFirst, 0)
			_, sel := q.Select(t.Context(), &f)
			_, _, show := q.Show(t.Context(), f)
			for _, err := range []error{page, groups, sel, show} {
				if !errors.Is(err, errText) {
					t.Errorf("%q: %v", s, err)
				}
			}
		}
	}
}
