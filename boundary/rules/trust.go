// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/pellucid-mcp/pellucid/record/trust"
)

// trust reads the constants of the scores.
func (c *compiler) trust(p place) {
	o := trust.Options{}
	c.object(p, members{
		"rest":      func(p place) { o.Rest = c.score(p) },
		"floor":     func(p place) { o.Floor = c.score(p) },
		"half_life": func(p place) { o.HalfLife = c.duration(p, time.Minute, 365*24*time.Hour) },
	})
	o = o.OrDefault()
	c.out.Trust = &o
}

// score reads a number above 0 and up to 1 with at most six decimals.
func (c *compiler) score(p place) trust.Score {
	before := len(c.problems)
	f := c.number(p, 1)
	s := trust.Score(f*float64(trust.One) + 0.5)
	if len(c.problems) == before && (s <= 0 || s.Float() != f) {
		c.show(p, "want a number above 0 and up to 1, of at most six decimals")
	}
	return s
}

func (d *dumper) trust(o *trust.Options) {
	if o == nil {
		return
	}
	d.object("trust", func() {
		d.word("rest", o.Rest.String())
		d.word("floor", o.Floor.String())
		d.duration("half_life", o.HalfLife)
	})
}

func sameTrust(a, b *Rules) bool {
	return same(func(d *dumper) { d.trust(a.Trust) }, func(d *dumper) { d.trust(b.Trust) })
}
