// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// own gives a message that this package has put together its values; nil if it cannot.
func own(m *wire.Message) *wire.Message {
	if m.Parse() != nil {
		return nil
	}
	return m
}

func clone(s string) string { return strings.Clone(s) }
