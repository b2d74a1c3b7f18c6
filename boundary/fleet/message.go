// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// idOf reads an id inside of params.
func idOf(v strictjson.Value) (wire.ID, bool) {
	const longest, last = 256, 1 << 53
	switch v.Kind() {
	case '"':
		if s := v.Text(); len(s) <= longest {
			return wire.StringID(s), true
		}
	case '0':
		if n, isInt := v.Int64(); isInt && -last <= n && n <= last {
			return wire.IntID(n), true
		}
	}
	return wire.ID{}, false
}

// violation is what was no message; nil if err is something else.
func violation(err error) *wire.Violation {
	var v *wire.Violation
	if errors.As(err, &v) {
		return v
	}
	return nil
}

func clone(s string) string { return strings.Clone(s) }
