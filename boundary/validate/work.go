// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// An engine is a compiled schema that counts the work of its evaluations, one at a
// time. The library has no bound of its own, and a schema of forty lines that refers
// to itself twice on each level takes 2^40 steps.
//
// The count is taken before the work: the library looks at "format" before anything
// that applies a subschema, and matches a pattern through the Regexp that it was given.
type engine struct {
	root           *jsonschema.Schema
	hasUnevaluated bool // then the library lists members and elements for each subschema
	patternBytes   int

	ctx            context.Context
	workLeft       int64
	matchesLeft    int64
	checkContextAt int64 // workLeft at the next check
}

// An exceeded ends an evaluation, by a panic.
type exceeded struct {
	reason  Reason
	pattern *pattern // that would have taken too long, or nil
}

// everyWork is the work between two checks of the context.
const everyWork = 1 << 12

// spendWork counts work before it is done.
func (e *engine) spendWork(work int64) {
	if e.workLeft -= work; e.workLeft < 0 {
		panic(exceeded{reason: tooCostly})
	}
	if e.workLeft < e.checkContextAt {
		e.checkContextAt = e.workLeft - everyWork
		e.checkEnded()
	}
}

func (e *engine) checkEnded() {
	if e.ctx.Err() != nil {
		panic(exceeded{reason: callEnded})
	}
}

// meterSchemas has every subschema count its work. It refuses what cannot be bounded.
func (e *engine) meterSchemas() error {
	seen := map[*jsonschema.Schema]bool{}
	queue := []*jsonschema.Schema{e.root}
	for len(queue) > 0 {
		s := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if seen[s] {
			continue
		}
		seen[s] = true
		if s.DynamicRef != nil || s.RecursiveRef != nil {
			return dynamic
		}
		e.hasUnevaluated = e.hasUnevaluated || s.UnevaluatedProperties != nil || s.UnevaluatedItems != nil
		e.meterSchema(s)
		eachSubschema(s, func(t *jsonschema.Schema, _ place) { queue = append(queue, t) })
	}
	return checkChains(seen)
}

// meterSchema has s spend the work of all subschemas that it applies to a value, without
// their own subschemas, before it applies one. Members of "properties" exclude
// each other, so the dearest counts.
func (e *engine) meterSchema(s *jsonschema.Schema) {
	at, lists, each, dearest := ownWork(s), int64(1), int64(0), int64(0)
	eachSubschema(s, func(t *jsonschema.Schema, p place) {
		switch p {
		case here:
			at += ownWork(t)
			lists++
		case property:
			dearest = max(dearest, ownWork(t))
		default:
			each += 1 + ownWork(t)
		}
	})
	each += dearest
	declared := s.Format
	s.Format = &jsonschema.Format{Name: "work", Validate: func(v any) error {
		n := int64(0)
		switch v := v.(type) {
		case map[string]any:
			n = int64(len(v))
		case []any:
			n = int64(len(v))
			if s.UniqueItems {
				e.spendWork(comparisonWork(v))
			}
		case string:
			e.spendWork(int64(len(v) / perString))
		case json.Number:
			e.spendWork(perNumber)
		}
		if e.hasUnevaluated {
			e.spendWork(n * lists)
		}
		e.spendWork(at + n*each)
		switch {
		case declared == nil:
			return nil
		case declared.Name == "regex":
			return e.checkRegexp(v)
		}
		return declared.Validate(v)
	}}
	if p, is := s.Pattern.(*pattern); is {
		p.schema, p.keyword = s, "pattern"
	}
	for re := range s.PatternProperties {
		if p, is := re.(*pattern); is {
			p.schema, p.keyword = s, "patternProperties"
		}
	}
}

// comparisonWork bounds the work of finding equal elements: numbers and strings are found
// by their hash, and of others several may be made to have the same.
func comparisonWork(list []any) int64 {
	n, compound := valueWork(list), false
	for _, v := range list {
		switch v.(type) {
		case map[string]any, []any:
			compound = true
		}
	}
	if compound || len(list) <= 20 {
		n *= int64(len(list))
	}
	return n
}

// maxChain bounds the subschemas that lead from one to the next at one place. The
// library looks back at all of them from each, and goes down the stack for each.
const maxChain = 64

// checkChains refuses schemas of which one applies itself to the same place, or many in a row.
func checkChains(all map[*jsonschema.Schema]bool) error {
	const open = -1
	chains := map[*jsonschema.Schema]int{}
	var visit func(s *jsonschema.Schema) (int, error)
	visit = func(s *jsonschema.Schema) (longest int, err error) {
		switch n := chains[s]; {
		case n == open:
			return 0, looping
		case n > 0:
			return n, nil
		}
		chains[s] = open
		eachSubschema(s, func(t *jsonschema.Schema, p place) {
			if p == here && err == nil {
				var n int
				n, err = visit(t)
				longest = max(longest, n)
			}
		})
		if longest++; err == nil && longest > maxChain {
			err = tooCostly
		}
		chains[s] = longest
		return longest, err
	}
	for s := range all {
		if _, err := visit(s); err != nil {
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

// eachSubschema calls f for each subschema that s applies itself.
func eachSubschema(s *jsonschema.Schema, f func(*jsonschema.Schema, place)) {
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

// ownWork is the work of s at one place, without that of its subschemas.
func ownWork(s *jsonschema.Schema) int64 {
	n := int64(1 + len(s.Required))
	for _, names := range s.DependentRequired {
		n += int64(1 + len(names))
	}
	for _, d := range s.Dependencies {
		if names, is := d.([]string); is {
			n += int64(1 + len(names))
		}
	}
	if s.Enum != nil {
		n += valueWork(s.Enum.Values)
	}
	if s.Const != nil {
		n += valueWork(*s.Const)
	}
	return n
}

// Work that weighs as much as a subschema.
const (
	perString = 64 // bytes of a string
	perNumber = 8  // subschemas that a number weighs: it is computed with exactly
)

// valueWork is the work of reading all of v.
func valueWork(v any) int64 {
	n := int64(1)
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			n += int64(1+len(name)/perString) + valueWork(e)
		}
	case []any:
		for _, e := range v {
			n += valueWork(e)
		}
	case string:
		n += int64(len(v) / perString)
	case json.Number:
		n += perNumber
	}
	return n
}

// Bounds of the patterns of a schema.
const (
	maxPattern      = 8 << 10   // bytes of one
	maxPatterns     = 256 << 10 // bytes of all, which the library reads twice
	maxInstructions = 100_000   // of the program of one
)

// A pattern is a regular expression of a schema. It is compiled at the first match,
// and spends the instructions of its program times the characters of each text
// before it looks at that.
type pattern struct {
	engine       *engine
	src          string
	schema       *jsonschema.Schema
	keyword      string
	program      *regexp.Regexp
	instructions int64
}

func (p *pattern) String() string { return p.src }

// MatchString implements jsonschema.Regexp.
func (p *pattern) MatchString(s string) bool {
	e := p.engine
	e.checkEnded()
	if p.program == nil {
		e.spendWork(p.instructions)
		p.compile()
	}
	if e.matchesLeft -= p.instructions * int64(utf8.RuneCountInString(s)+1); e.matchesLeft < 0 {
		panic(exceeded{reason: tooCostly, pattern: p})
	}
	return p.program.MatchString(s)
}

// placeIn returns where p stands in the source of its schema. It is empty for a pattern of a metaschema.
func (p *pattern) placeIn(src []byte) string {
	var doc strictjson.Doc
	location, found := strings.CutPrefix(p.schema.Location, base+"#")
	if !found || doc.Reset(src, strictjson.Limits{}) != nil {
		return ""
	}
	at := strings.Split(location+"/"+p.keyword, "/")[1:]
	for i, token := range at {
		token, _ = url.PathUnescape(token)
		at[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	}
	if p.keyword == "patternProperties" {
		at = append(at, p.src)
	}
	return pointerTo(doc.Root(), at, knownKeywords)
}

func (p *pattern) compile() {
	if tree, err := syntax.Parse(p.src, syntax.Perl); err == nil {
		if program, err := syntax.Compile(tree.Simplify()); err == nil {
			p.instructions = int64(len(program.Inst))
		}
	}
	p.program = regexp.MustCompile(p.src)
}

// checkRegexp reports why a value is not a regular expression, without compiling one.
func (e *engine) checkRegexp(v any) error {
	src, is := v.(string)
	if !is {
		return nil
	}
	e.spendWork(int64(len(src)) * perNumber)
	_, err := syntax.Parse(src, syntax.Perl)
	return err
}

// newPattern reads a pattern, and leaves it to the first match to compile it.
func (e *engine) newPattern(src string) (jsonschema.Regexp, error) {
	if e.patternBytes += len(src); e.patternBytes > maxPatterns || len(src) > maxPattern {
		return nil, badPattern
	}
	tree, err := syntax.Parse(src, syntax.Perl)
	if err != nil {
		return nil, err
	}
	n := boundInstructions(tree)
	if n > maxInstructions {
		return nil, badPattern
	}
	return &pattern{engine: e, src: src, instructions: n}, nil
}

// boundInstructions bounds the length of a program before there is one.
func boundInstructions(tree *syntax.Regexp) int64 {
	n := int64(2)
	if tree.Op == syntax.OpLiteral {
		n += int64(len(tree.Rune))
	}
	for _, sub := range tree.Sub {
		n += boundInstructions(sub)
	}
	if tree.Op == syntax.OpRepeat {
		n *= int64(max(tree.Max, tree.Min, 1) + 1)
	}
	return min(n, 1<<32)
}
