// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"slices"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// live reports whether a model may see an item of the surface that was checked.
func (o *CheckResult) live(k Key) bool {
	switch {
	case o.Conclusion == Rejected:
		return false
	case o.Admission == nil || o.Admission.First:
		return true
	}
	return o.Admission.live(k)
}

// approvedJSON is the version of the item that may be seen instead of one that is
// held: canonical JSON; nil if there is none.
func (a *Admission) approvedJSON(k Key) []byte {
	if it := a.pin.Item(k); it != nil && it.Approved != "" {
		return []byte(it.Approved)
	}
	return nil
}

// whole reports whether nothing is missing: no list that the server declares
// failed, and none failed for another reason than that it does not exist.
func (s *Surface) whole() bool {
	return !slices.ContainsFunc(s.unlisted, func(u Unlisted) bool { return u.Declared || u.Code != wire.CodeNoMethod })
}
