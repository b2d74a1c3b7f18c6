// SPDX-License-Identifier: Apache-2.0

// Package validate checks the answer of a tool against the schema that its server has declared.
//
// Both are a stranger's. A schema is compiled only below fixed bounds, reads
// nothing but itself, and is evaluated until a bound on the work is reached or the
// call ends. What cannot be compiled or afforded is Unverifiable, which is neither
// valid nor invalid: the operator's policy decides.
package validate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// The bounds of a schema and of one evaluation.
const (
	MaxSchema  = 1 << 20 // bytes
	maxDepth   = 64      // levels of the schema's JSON
	maxValues  = 1 << 15 // values and names in it
	maxSchemas = 10_000  // values in it that may be subschemas: the library looks for each among all
	maxWork    = 5 << 20 // subschema evaluations, strings weighing by their length: about half a second
	maxMatches = 1e7     // instructions of the patterns' programs, times characters: about as long
)

// A Reason says why a schema or a value cannot be judged. It is a constant of this
// package, never text that a third party chose.
type Reason string

// The reasons.
const (
	notJSON     Reason = "schema-not-json"
	tooLarge    Reason = "schema-too-large"
	notSchema   Reason = "schema-invalid"     // not by the rules of its dialect, or of a dialect that is not known
	remote      Reason = "schema-remote"      // refers to what is not in it
	badPattern  Reason = "schema-pattern"     // a regular expression that cannot be compiled
	dynamic     Reason = "schema-dynamic"     // $dynamicRef or $recursiveRef
	looping     Reason = "schema-loop"        // a reference that leads to itself without going down
	tooCostly   Reason = "schema-too-costly"  // for this value
	engineFault Reason = "schema-engine"      // the evaluation failed
	valueLimits Reason = "schema-value-limit" // a number that is not worth computing with
	callEnded   Reason = "call-ended"         // before the evaluation
)

// Error makes a Reason an error.
func (r Reason) Error() string { return "validate: " + string(r) }

// A Conformity is what an evaluation came to.
type Conformity uint8

const (
	// Valid: the value satisfies the schema.
	Valid Conformity = iota + 1
	// Invalid: it does not.
	Invalid
	// Unverifiable: it could not be judged; see Result.Reason.
	Unverifiable
	// Absent: there was nothing to judge, and the protocol allows that.
	Absent
)

func (v Conformity) String() string {
	return [...]string{"none", "valid", "invalid", "unverifiable", "absent"}[min(v, 4)]
}

// A Result is a Conformity with its place. Nothing in it is third-party text: names
// are written #n, their ordinal from 0.
type Result struct {
	Conformity Conformity
	Reason     Reason // of Unverifiable
	Keyword    string // of Invalid: the schema keyword that failed first; of a pattern that is too costly: its keyword
	Pointer    string // of Invalid: where in the value; of a pattern: where in the schema
}

// A Schema is a compiled schema, or the Reason why there is none. It is safe for
// concurrent use.
type Schema struct {
	src     []byte
	reason  Reason
	engines sync.Pool
}

// Compile compiles a schema, JSON Schema 2020-12 unless it says otherwise. What
// cannot be compiled is a Schema that finds everything Unverifiable.
func Compile(src []byte) *Schema {
	s := &Schema{src: bytes.Clone(src)}
	e, err := compile(src)
	if err != nil {
		s.reason = notSchema
		errors.As(err, &s.reason)
		return s
	}
	s.engines.Put(e)
	return s
}

// Reason is why nothing can be judged by s; "" if that is not so.
func (s *Schema) Reason() Reason { return s.reason }

func compile(src []byte) (e *engine, err error) {
	defer func() {
		if recover() != nil { // by the library, on numbers that no int holds
			e, err = nil, notSchema
		}
	}()
	var doc strictjson.Doc
	if err := doc.Reset(src, strictjson.Limits{Bytes: MaxSchema, Depth: maxDepth, Values: maxValues}); err != nil {
		var syntax *strictjson.SyntaxError
		if errors.As(err, &syntax) && (syntax.Code == strictjson.CodeBytes || syntax.Code == strictjson.CodeDepth || syntax.Code == strictjson.CodeValues) {
			return nil, tooLarge
		}
		return nil, notJSON
	}
	value, err := decode(doc.Root())
	if err != nil {
		return nil, err
	}
	switch schemas, countable := countSchemas(doc.Root()); {
	case !countable:
		return nil, notSchema
	case schemas > maxSchemas:
		return nil, tooLarge
	}
	e = &engine{}
	c := jsonschema.NewCompiler()
	c.UseRegexpEngine(e.newPattern)
	c.UseLoader(nowhere{})
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource(base, value); err != nil {
		return nil, notSchema
	}
	e.root, err = c.Compile(base)
	var load *jsonschema.LoadURLError
	var scheme *jsonschema.UnsupportedURLSchemeError
	var pattern *jsonschema.InvalidRegexError
	var schema *jsonschema.ValidationError
	switch {
	case err == nil:
		return e, e.meterSchemas()
	case errors.As(err, &load), errors.As(err, &scheme):
		return nil, remote
	case errors.As(err, &pattern), schemaError(err, &schema) && badRegex(schema):
		return nil, badPattern
	}
	return nil, notSchema
}

// schemaError finds the error of a metaschema in err; the library does not unwrap it.
func schemaError(err error, to **jsonschema.ValidationError) bool {
	var invalid *jsonschema.SchemaValidationError
	return errors.As(err, &invalid) && errors.As(invalid.Err, to)
}

// badRegex reports whether e is about a pattern, or a name in patternProperties, that is not a regular expression.
func badRegex(e *jsonschema.ValidationError) bool {
	if f, is := e.ErrorKind.(*kind.Format); is && f.Want == "regex" {
		return true
	}
	return slices.ContainsFunc(e.Causes, badRegex)
}

// countSchemas returns how many values of v may be subschemas, and whether every length and number
// of items in it fits an int32: the library lets greater ones overflow.
func countSchemas(v strictjson.Value) (schemas int, countable bool) {
	countable = true
	if k := v.Kind(); k == '{' || k == 't' || k == 'f' {
		schemas = 1
	}
	add := func(e strictjson.Value) {
		n, is := countSchemas(e)
		schemas, countable = schemas+n, countable && is
	}
	for name, m := range v.Members() {
		if m.Kind() == '0' && countKeywords[name.Text()] {
			f, err := strconv.ParseFloat(string(m.Raw()), 64)
			countable = countable && err == nil && f <= math.MaxInt32
		}
		add(m)
	}
	for e := range v.Elements() {
		add(e)
	}
	return schemas, countable
}

var countKeywords = map[string]bool{
	"minLength": true, "maxLength": true, "minItems": true, "maxItems": true, "minContains": true, "maxContains": true,
	"minProperties": true, "maxProperties": true,
}

// base is the URL of a schema without $id. Nothing is ever looked up there.
const base = "schema:///declared"

// nowhere loads nothing: the default of the library reads files.
type nowhere struct{}

// Load refuses every reference to another document.
func (nowhere) Load(string) (any, error) { return nil, errors.New("validate: not looked up") }

// Check judges a value, for as long as ctx does not end.
func (s *Schema) Check(ctx context.Context, v strictjson.Value) Result {
	unverifiable := func(err error) Result {
		r := Result{Conformity: Unverifiable, Reason: engineFault}
		errors.As(err, &r.Reason)
		return r
	}
	if s.reason != "" {
		return unverifiable(s.reason)
	}
	value, err := decode(v)
	if err != nil {
		return unverifiable(err)
	}
	e, idle := s.engines.Get().(*engine)
	if !idle { // another evaluation has it
		if e, err = compile(s.src); err != nil {
			return unverifiable(err)
		}
	}
	defer s.engines.Put(e)
	return e.evaluate(ctx, s.src, v, value)
}

// evaluate judges value, decoded from v, by the schema whose source is src.
func (e *engine) evaluate(ctx context.Context, src []byte, v strictjson.Value, value any) (r Result) {
	e.ctx, e.workLeft, e.checkContextAt, e.matchesLeft = ctx, maxWork, maxWork, maxMatches
	defer func() {
		e.ctx = nil
		switch fault := recover().(type) {
		case nil:
		case exceeded:
			r = Result{Conformity: Unverifiable, Reason: fault.reason}
			if fault.pattern != nil {
				r.Keyword, r.Pointer = fault.pattern.keyword, fault.pattern.placeIn(src)
			}
		default:
			r = Result{Conformity: Unverifiable, Reason: engineFault}
		}
	}()
	e.spendWork(ownWork(e.root))
	err := e.root.Validate(value)
	if err == nil {
		return Result{Conformity: Valid}
	}
	var failed *jsonschema.ValidationError
	if !errors.As(err, &failed) {
		return Result{Conformity: Unverifiable, Reason: engineFault}
	}
	failed = firstFailure(failed)
	switch failed.ErrorKind.(type) {
	case *kind.RefCycle:
		return Result{Conformity: Unverifiable, Reason: looping}
	case *kind.InvalidJsonValue:
		return Result{Conformity: Unverifiable, Reason: engineFault}
	}
	return Result{Conformity: Invalid, Keyword: keywordOf(failed.ErrorKind), Pointer: pointerTo(v, failed.InstanceLocation, nil)}
}

// firstFailure returns the failure that is reported: the library finds them in the order of a map.
func firstFailure(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return e
	}
	least := firstFailure(e.Causes[0])
	for _, cause := range e.Causes[1:] {
		c := firstFailure(cause)
		if cmp.Or(slices.Compare(c.InstanceLocation, least.InstanceLocation),
			strings.Compare(keywordOf(c.ErrorKind), keywordOf(least.ErrorKind))) < 0 {
			least = c
		}
	}
	return least
}

// Tool judges the result of a tool call, for as long as ctx does not end. One that has no
// structuredContent is Absent, and so is null of one that reports an error.
func (s *Schema) Tool(ctx context.Context, result strictjson.Value) Result {
	v := result.Get("structuredContent")
	if failed, _ := result.Get("isError").Bool(); !v.Exists() || failed && v.Kind() == 'n' {
		return Result{Conformity: Absent}
	}
	return s.Check(ctx, v)
}

// keywordOf returns the schema keyword of a failure, as the specification spells it.
func keywordOf(k jsonschema.ErrorKind) string {
	path := k.KeywordPath()
	if len(path) == 0 {
		return "schema"
	}
	if name := path[0]; knownKeywords[name] {
		return name
	}
	return "schema"
}

var knownKeywords = func() map[string]bool {
	m := map[string]bool{}
	for name := range strings.FieldsSeq(`type const enum format not allOf anyOf oneOf if then else
		maxProperties minProperties required propertyNames properties patternProperties additionalProperties
		dependencies dependentRequired dependentSchemas unevaluatedProperties maxItems minItems uniqueItems contains
		minContains maxContains items additionalItems prefixItems unevaluatedItems minLength maxLength pattern
		contentEncoding contentMediaType contentSchema $defs definitions maximum minimum exclusiveMaximum exclusiveMinimum multipleOf`) {
		m[name] = true
	}
	return m
}()
