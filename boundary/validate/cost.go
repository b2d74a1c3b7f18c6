// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A coster bounds how many subschemas an evaluation visits, before it runs. The
// library has no such bound, and a schema of forty lines that refers to itself
// twice on each level takes 2^40 steps.
//
// at[s][d] is how many are visited at one place of the value, d levels below the
// one where s begins, on the worst way down. Members of "properties" exclude each
// other, so the dearest counts; everything else that applies to the same place
// adds up.
type coster struct {
	root   *jsonschema.Schema
	at     map[*jsonschema.Schema][]int64
	unique bool // uniqueItems: each element is compared with each
}

// enormous is where sums stop.
const enormous = 1 << 40

func add(a, b int64) int64 { return min(a+b, enormous) }

// init looks at every subschema once. It refuses what cannot be bounded.
func (c *coster) init(root *jsonschema.Schema) error {
	c.root, c.at = root, map[*jsonschema.Schema][]int64{}
	seen := map[*jsonschema.Schema]bool{}
	queue := []*jsonschema.Schema{root}
	for len(queue) > 0 {
		s := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if seen[s] {
			continue
		}
		seen[s] = true
		if len(seen) > maxSchemas {
			return tooLarge
		}
		if s.DynamicRef != nil || s.RecursiveRef != nil {
			return dynamic
		}
		c.unique = c.unique || s.UniqueItems
		below(s, func(t *jsonschema.Schema, _ place) { queue = append(queue, t) })
	}
	return acyclic(seen)
}

// acyclic refuses schemas of which one applies itself to the same place.
func acyclic(all map[*jsonschema.Schema]bool) error {
	const open, closed = 1, 2
	state := map[*jsonschema.Schema]uint8{}
	var visit func(s *jsonschema.Schema) error
	visit = func(s *jsonschema.Schema) (err error) {
		switch state[s] {
		case open:
			return looping
		case closed:
			return nil
		}
		state[s] = open
		below(s, func(t *jsonschema.Schema, p place) {
			if p == here && err == nil {
				err = visit(t)
			}
		})
		state[s] = closed
		return err
	}
	for s := range all {
		if err := visit(s); err != nil {
			return err
		}
	}
	return nil
}

// A place says to what a subschema applies.
type place uint8

const (
	here     place = iota // to the same value
	property              // to one member
	child                 // to any member or element
	name                  // to the names of members
)

// below calls f for each subschema that s applies itself.
func below(s *jsonschema.Schema, f func(*jsonschema.Schema, place)) {
	one := func(t *jsonschema.Schema, p place) {
		if t != nil {
			f(t, p)
		}
	}
	some := func(v any, p place) {
		switch v := v.(type) {
		case *jsonschema.Schema:
			one(v, p)
		case []*jsonschema.Schema:
			for _, t := range v {
				one(t, property) // each at its own index
			}
		}
	}
	for _, t := range [...]*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else, s.ContentSchema} {
		one(t, here)
	}
	for _, list := range [...][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for _, t := range list {
			one(t, here)
		}
	}
	for _, t := range s.DependentSchemas {
		one(t, here)
	}
	for _, v := range s.Dependencies {
		some(v, here)
	}
	for _, t := range s.Properties {
		one(t, property)
	}
	for _, t := range s.PrefixItems {
		one(t, property)
	}
	for _, t := range s.PatternProperties {
		one(t, child)
	}
	for _, t := range [...]*jsonschema.Schema{s.UnevaluatedProperties, s.UnevaluatedItems, s.Contains, s.Items2020} {
		one(t, child)
	}
	one(s.PropertyNames, name)
	some(s.AdditionalProperties, child)
	some(s.AdditionalItems, child)
	some(s.Items, child)
}

// level is at[s][d], computed with everything that it rests on.
func (c *coster) level(s *jsonschema.Schema, d int) int64 {
	known := c.at[s]
	for len(known) <= d {
		known = append(known, -1)
	}
	c.at[s] = known
	if known[d] >= 0 {
		return known[d]
	}
	sum, dearest := int64(0), int64(0)
	if d == 0 {
		sum = own(s)
	}
	below(s, func(t *jsonschema.Schema, p place) {
		switch {
		case p == here:
			sum = add(sum, c.level(t, d))
		case d == 0:
		case p == property:
			dearest = max(dearest, c.level(t, d-1))
		case p == child:
			sum = add(sum, c.level(t, d-1)+1)
		case d == 1: // names have nothing below them
			sum = add(sum, c.level(t, 0))
		}
	})
	c.at[s][d] = add(sum, dearest)
	return c.at[s][d]
}

// own is what s costs by itself at one place.
func own(s *jsonschema.Schema) int64 {
	n := int64(1 + len(s.Required) + len(s.DependentRequired))
	if s.Enum != nil {
		for _, v := range s.Enum.Values {
			n += size(v)
		}
	}
	if s.Const != nil {
		n += size(*s.Const)
	}
	return n
}

// size counts the values in v.
func size(v any) int64 {
	n := int64(1)
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			n += size(e)
		}
	case []any:
		for _, e := range v {
			n += size(e)
		}
	}
	return n
}

// of bounds the work on a value: for each of its parts what is visited there,
// long strings counting as many.
func (c *coster) of(v strictjson.Value) (int64, error) {
	var levels []int64
	squares := int64(0)
	var walk func(v strictjson.Value, d int)
	walk = func(v strictjson.Value, d int) {
		if d == len(levels) {
			levels = append(levels, 0)
		}
		levels[d] += 1
		n := int64(0)
		switch v.Kind() {
		case '"':
			levels[d] += int64(len(v.Raw()) / perString)
		case '{':
			for name, e := range v.Members() {
				levels[d] += int64(len(name.Raw()) / perString)
				walk(e, d+1)
			}
		case '[':
			for e := range v.Elements() {
				n++
				walk(e, d+1)
			}
		}
		squares = add(squares, n*n)
	}
	walk(v, 0)
	total := int64(0)
	if c.unique {
		total = squares
	}
	for d, n := range levels {
		per := c.level(c.root, d)
		if per > 0 && n > enormous/per {
			return enormous, nil
		}
		total = add(total, n*per)
	}
	return total, nil
}

// perString is how many bytes of a string weigh as much as a subschema.
const perString = 64
