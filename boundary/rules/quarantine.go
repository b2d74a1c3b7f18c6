// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"github.com/pellucid-mcp/pellucid/platform/capture"
)

// quarantine reads who alone may read what is held.
func (c *compiler) quarantine(p place) {
	c.object(p, members{"recipients": func(p place) {
		list := c.checkedList(p, capture.MaxRecipients, "a public key of age, age1…", func(s string) bool {
			_, err := capture.ParseRecipients([]string{s})
			return err == nil
		})
		if len(list) > 0 {
			c.out.Reviewers, _ = capture.ParseRecipients(list) // each of them was read
		}
	}})
}

func (d *dumper) quarantine(r *capture.Recipients) {
	if r == nil {
		return
	}
	d.object("quarantine", func() { d.list("recipients", r.Names()) })
}

func sameQuarantine(a, b *Rules) bool {
	if a.Reviewers == nil || b.Reviewers == nil {
		return a.Reviewers == b.Reviewers
	}
	return slices.Equal(a.Reviewers.Names(), b.Reviewers.Names())
}
