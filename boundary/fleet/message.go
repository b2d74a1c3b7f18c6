// SPDX-License-Identifier: Apache-2.0

package fleet

import (
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

// own gives a message that this package has put together its values; nil if it cannot.
func own(m *wire.Message) *wire.Message {
	if m.Parse() != nil {
		return nil
	}
	return m
}

func clone(s string) string { return strings.Clone(s) }
