// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A member is what may stand under one name of an object. Everything about it is declared
// once, in the row of a table: parsing, the dump, docs/spec/config.md, docs/config.schema.json,
// and what a change of it takes are made from the row.
//
// A table belongs to one value: its rows hold pointers into it. The rows are read and dumped in
// their order, so that a row may refer to what an earlier row has read.
type member struct {
	name  string
	trait trait
	value value
	words string // what it means, for the page and the schema
}

// A trait says more of a member than its value does. What an object has holds for all in it.
type trait uint8

const (
	needed    trait = 1 << iota // the object is refused without it
	restart                     // read when the gateway starts
	ends                        // a change ends the sessions of the server
	ofServers                   // a change is told by the servers that it is about
	ofGuard                     // read when pellucid guard starts; a gateway does not use it

	withCommand // of a server that is a command
	withURL     // of a server at a URL

	live trait = 0 // a change takes effect at once
)

// A value is how a member is read and shown.
type value struct {
	reset func() // sets the default; nil: the zero value is the default
	read  func(c *compiler, p place)
	write func(d *dumper, name string) // writes nothing where leaving the member out says the same

	usual func(d *dumper, name string) // write without its condition; nil: it has none

	form   form
	inner  func() []member // the rows of an object that is there; nil: it is not there
	sample func() []member // the rows of any such object or element, with its defaults

	words  []string // that may stand there; nil: others may
	kind   string   // what may stand there, for the page
	schema schema   // the same, for editors
	each   schema   // what else holds for each element
	short  schema   // what may stand in place of an element; nil: nothing
}

// A form says what the rows of a value belong to.
type form uint8

const (
	scalar     form = iota // it has none
	objectForm             // one object
	listForm               // each element of a list
	mapForm                // each member of an object whose names the author chooses
)

// A schema is a JSON Schema, draft 2020-12.
type schema = map[string]any

// reset sets every default of a table.
func reset(table []member) []member {
	for _, m := range table {
		if m.value.reset != nil {
			m.value.reset()
		}
	}
	return table
}

// object reads an object of the members of table and no other.
func (c *compiler) object(p place, table []member) {
	vals := map[string]place{}
	seen := c.names(p, len(table)+maxProblems, nil, func(name string, at, val place) {
		switch known := slices.ContainsFunc(table, func(m member) bool { return m.name == name }); {
		case !known:
			if instead, is := formerAt(at.path, ""); is {
				c.report(at, "%s", instead)
			} else {
				c.report(at, "there is no such member%s", nearest(name, table))
			}
		case val.kind == isNull:
			c.report(val, "there is no value: leave the member out")
		default:
			vals[name] = val
		}
	})
	for _, m := range table {
		if val, ok := vals[m.name]; ok {
			m.value.read(c, val)
		}
	}
	for _, m := range table {
		if m.trait&needed != 0 && seen != nil && !seen[m.name] {
			c.report(p.join(m.name, p.node), "is missing")
		}
	}
}

// then does more once the value has been read.
func (v value) then(more func(c *compiler, p place)) value {
	read := v.read
	v.read = func(c *compiler, p place) { read(c, p); more(c, p) }
	return v
}

// when shows the value only where the condition holds.
func (v value) when(condition func() bool) value {
	v.usual = v.write
	v.write = func(d *dumper, name string) {
		if condition() {
			v.usual(d, name)
		}
	}
	return v
}

// saying adds constraints to the schema.
func (v value) saying(more schema) value {
	out := schema{}
	for _, of := range []schema{v.schema, more} {
		for name, x := range of {
			out[name] = x
		}
	}
	v.schema = out
	return v
}

// word is one of a few words. What is none of values is not shown.
func word[T comparable](v *T, or T, words []string, values []T) value {
	return value{
		words: words,
		reset: func() { *v = or },
		read:  func(c *compiler, p place) { *v = choice(&c.reader, p, words, values) },
		write: func(d *dumper, name string) {
			if i := slices.Index(values, *v); i >= 0 {
				d.word(name, words[i])
			}
		},
		kind: "`" + strings.Join(words, "`, `") + "`", schema: schema{"enum": words},
	}
}

func boolean(v *bool, or bool) value {
	return value{
		reset: func() { *v = or },
		read:  func(c *compiler, p place) { *v = c.boolean(p) },
		write: func(d *dumper, name string) { d.word(name, strconv.FormatBool(*v)) },
		kind:  "`true`, `false`", schema: schema{"type": "boolean"},
	}
}

// opposite is a boolean that is true unless the file says otherwise, and kept as its contrary.
func opposite(v *bool) value {
	x := boolean(v, false)
	x.read = func(c *compiler, p place) { *v = !c.boolean(p) }
	x.write = func(d *dumper, name string) { d.word(name, strconv.FormatBool(!*v)) }
	return x
}

// integer is a number from least to most. One below least was not said.
func integer[T ~int | ~int64](v *T, or, least, most T) value {
	return value{
		reset: func() { *v = or },
		read:  func(c *compiler, p place) { *v = T(c.integer(p, int(least), int(most))) },
		write: func(d *dumper, name string) {
			if *v >= least {
				d.word(name, strconv.FormatInt(int64(*v), 10))
			}
		},
		kind:   "integer, " + thousands(int(least)) + " to " + thousands(int(most)),
		schema: schema{"type": "integer", "minimum": least, "maximum": most},
	}
}

// number is one from 0 to most.
func number(v *float64, or, most float64) value {
	return value{
		reset: func() { *v = or },
		read:  func(c *compiler, p place) { *v = c.number(p, most) },
		write: func(d *dumper, name string) { d.word(name, strconv.FormatFloat(*v, 'f', -1, 64)) },
		kind:  "number, 0 to " + thousands(int(most)), schema: schema{"type": "number", "minimum": 0, "maximum": most},
	}
}

const durationPattern = `^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|[µμ]s|ms|s|m|h))+)$`

// duration is one from least to most. One below least was not said.
func duration(v *time.Duration, or, least, most time.Duration) value {
	return value{
		reset: func() { *v = or },
		read:  func(c *compiler, p place) { *v = c.duration(p, least, most) },
		write: func(d *dumper, name string) {
			if *v >= least {
				d.word(name, spell(*v))
			}
		},
		kind: "duration, " + spell(least) + " to " + spell(most), schema: schema{"type": "string", "pattern": durationPattern},
	}
}

func size(v *int, or, least, most int) value {
	return value{
		reset:  func() { *v = or },
		read:   func(c *compiler, p place) { *v = c.size(p, least, most) },
		write:  func(d *dumper, name string) { d.word(name, spellSize(*v)) },
		kind:   "size, " + spellSize(least) + " to " + spellSize(most),
		schema: schema{"type": []string{"integer", "string"}, "minimum": least, "maximum": most, "pattern": "^(0|[1-9][0-9]*)(KiB|MiB|GiB)?$"},
	}
}

// parsed is a string that read makes something of. "" was not said.
func parsed(v *string, kind string, read func(c *compiler, p place) string) value {
	return value{
		read: func(c *compiler, p place) {
			if s := read(c, p); s != "" { // else a problem was reported
				*v = s
			}
		},
		write: func(d *dumper, name string) {
			if *v != "" {
				d.word(name, quoted(*v))
			}
		},
		kind: kind, schema: schema{"type": "string", "minLength": 1},
	}
}

// text is a string of at most that many bytes.
func text(v *string, most int) value {
	return parsed(v, "string", func(c *compiler, p place) string { return c.text(p, most) }).saying(schema{"maxLength": most})
}

// checked is a string that valid holds for.
func checked(v *string, or, want string, valid func(string) bool) value {
	x := parsed(v, want, func(c *compiler, p place) string { return c.checked(p, want, valid) })
	if or != "" {
		x.reset = func() { *v = or }
	}
	return x
}

// list is a list of different strings that valid holds for. A nil one was not said.
func list[T ~string](v *[]T, or []T, most int, want string, valid func(string) bool) value {
	return value{
		reset: func() { *v = slices.Clone(or) },
		read: func(c *compiler, p place) {
			*v = []T{}
			for _, s := range c.checkedList(p, most, want, valid) {
				*v = append(*v, T(s))
			}
		},
		write: func(d *dumper, name string) {
			if *v != nil {
				writeList(d, name, *v)
			}
		},
		kind:   "list of at most " + thousands(most) + ": " + want,
		schema: schema{"type": "array", "maxItems": most, "uniqueItems": true, "items": schema{"type": "string", "minLength": 1}},
	}
}

// words is a list of different words out of a few.
func words(v *[]string, of []string, def ...string) value {
	x := list(v, def, len(of), orList(of), func(s string) bool { return slices.Contains(of, s) })
	x.kind = "list of `" + strings.Join(of, "`, `") + "`"
	x.schema = schema{"type": "array", "maxItems": len(of), "uniqueItems": true, "items": schema{"enum": of}}
	return x
}

// reference is a secret; what it stands for is in no dump.
func reference(v *Value) value {
	return value{
		read:  func(c *compiler, p place) { *v = c.reference(p) },
		write: func(d *dumper, name string) { d.value(name, *v) },
		kind:  "`env:NAME`, `file:PATH`", schema: schema{"type": "string", "pattern": "^(env|file):"},
	}
}

// section is an object that is always there.
func section(table func() []member) value {
	return value{
		reset: func() { reset(table()) },
		read:  func(c *compiler, p place) { c.object(p, table()) },
		write: func(d *dumper, name string) { d.object(name, table()) },
		form:  objectForm, inner: table, sample: table,
		kind: "object", schema: schema{"type": "object"},
	}
}

// optional is an object that is there if the file has it. finish is called once it has been
// read, and reports whether it can be used; sound: there was no mistake in it.
func optional[T any](to **T, table func(*T) []member, finish func(c *compiler, p place, x *T, sound bool) bool) value {
	fresh := func() *T {
		x := new(T)
		reset(table(x))
		return x
	}
	inner := func() []member {
		if *to == nil {
			return nil
		}
		return table(*to)
	}
	return value{
		read: func(c *compiler, p place) {
			x, before := fresh(), len(c.problems)
			c.object(p, table(x))
			if finish(c, p, x, len(c.problems) == before) {
				*to = x
			}
		},
		write: func(d *dumper, name string) { d.object(name, inner()) },
		form:  objectForm, inner: inner, sample: func() []member { return table(fresh()) },
		kind: "object", schema: schema{"type": "object"},
	}
}

// objects is a list of objects.
func objects[T any](v *[]T, most int, table func(*T) []member, then func(c *compiler, p place, x *T)) value {
	return value{
		read: func(c *compiler, p place) {
			c.list(p, most, func(p place) {
				var x T
				c.object(p, reset(table(&x)))
				if then != nil {
					then(c, p, &x)
				}
				*v = append(*v, x)
			})
		},
		write: func(d *dumper, name string) {
			if len(*v) > 0 {
				d.line(name, ":")
			}
			for i := range *v {
				d.item(table(&(*v)[i]))
			}
		},
		form: listForm, sample: func() []member { return reset(table(new(T))) },
		kind: "list of at most " + thousands(most), schema: schema{"type": "array", "maxItems": most},
	}
}

// named is an object whose names the author chooses. read takes a member, and all yields those
// that are there.
func named[T any](most int, valid func(string) bool, table func(*T) []member, fresh func() *T,
	read func(c *compiler, name string, at, val place), all iter.Seq2[string, *T]) value {
	return value{
		read: func(c *compiler, p place) {
			c.names(p, most, valid, func(name string, at, val place) { read(c, name, at, val) })
		},
		write: func(d *dumper, name string) {
			head, inside := d.open(name)
			for key, x := range all {
				d.object(quoted(key), table(x))
			}
			d.close(head, inside)
		},
		form: mapForm, sample: func() []member { return table(fresh()) },
		kind: "object of at most " + thousands(most), schema: schema{"type": "object", "maxProperties": most},
	}
}

// thousands writes n with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
