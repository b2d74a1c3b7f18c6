// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/pellucid-mcp/pellucid/record/trust"
)

// trustSection holds the constants of the scores.
func trustSection(o *trust.Options) value {
	usual := trust.Options{}.OrDefault()
	return section(func() []member {
		return []member{
			{"rest", live, score(&o.Rest, usual.Rest), "the score of what nothing is known about"},
			{"floor", live, score(&o.Floor, usual.Floor), "no score is less"},
			{"half_life", live, duration(&o.HalfLife, usual.HalfLife, time.Minute, 365*24*time.Hour), "in which the way back to `rest` is halved"},
		}
	}).then(func(*compiler, place) { *o = o.OrDefault() })
}

// score is a number above 0 and up to 1 with at most six decimals.
func score(v *trust.Score, or trust.Score) value {
	return value{
		reset: func() { *v = or },
		read:  func(c *compiler, p place) { *v = c.score(p) },
		write: func(d *dumper, name string) { d.word(name, v.String()) },
		kind:  "number, above 0 to 1", schema: schema{"type": "number", "exclusiveMinimum": 0, "maximum": 1},
	}
}

func (c *compiler) score(p place) trust.Score {
	before := len(c.problems)
	f := c.number(p, 1)
	s := trust.Score(f*float64(trust.One) + 0.5)
	if len(c.problems) == before && (s <= 0 || s.Float() != f) {
		c.show(p, "want a number above 0 and up to 1, of at most six decimals")
	}
	return s
}
