// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/pellucid-mcp/pellucid/platform/capture"
)

// recipients are those who alone may read what is held.
func recipients(to **capture.Recipients) value {
	var names []string
	x := list(&names, nil, capture.MaxRecipients, "a public key of age, age1…", func(s string) bool {
		_, err := capture.ParseRecipients([]string{s})
		return err == nil
	}).then(func(*compiler, place) {
		if len(names) > 0 {
			*to, _ = capture.ParseRecipients(names) // each of them was read
		}
	})
	x.write = func(d *dumper, name string) {
		if *to != nil {
			writeList(d, name, (*to).Names())
		}
	}
	return x
}
