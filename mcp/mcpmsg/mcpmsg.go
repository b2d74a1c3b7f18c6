// SPDX-License-Identifier: Apache-2.0

// Package mcpmsg holds the table of where third-party text stands in every message of every protocol version, the names
// of methods and members, and what a transport must know of a request.
//
// The table is one for all revisions, from 2024-11-05 to 2026-07-28: a member
// that only one of them has is treated the same in each, so that a peer gains
// nothing by naming another version. What no row and no field names is [Data]: it is
// scrubbed. The table can only ever say how a thing passes, not that it passes
// unseen; [Opaque] is the one exception and has its reasons beside it.
package mcpmsg

import "slices"

// A Treatment says what happens to a string before a client may see it. The
// zero value is the default for every position that no row names.
type Treatment uint8

// The treatments.
const (
	Data         Treatment = iota // any JSON: member names as Name, strings as Text, at every depth
	Text                          // scrubbed under the server's profile
	ToolText                      // scrubbed and framed
	ResourceText                  // scrubbed, and framed where what is read of a resource is
	PromptText                    // scrubbed, and framed where prompts are
	Definition                    // unchanged unless a character must go or a control token is defused
	Name                          // never rewritten: passes or is refused
	Schema                        // any JSON: member names as Name, strings as Definition, at every depth
	Blob                          // base64: text types are decoded, scrubbed and encoded again, others reported
	Meta                          // as Data, once members under our own prefix have been removed
	Opaque                        // byte for byte, capped
	Link                          // as Name, and a URL that a person opens: https, or http of this machine
)

var treatmentNames = [...]string{"data", "text", "tool text", "resource text", "prompt text", "definition", "name", "schema", "blob", "meta", "opaque", "link"}

func (t Treatment) String() string { return treatmentNames[t] }

// Arity says how a field holds its values.
type Arity uint8

// The arities.
const (
	One       Arity = iota
	List            // an array of them
	Map             // an object of them; its member names are Name
	OneOrMany       // one, or an array of them
)

// A Unit says what is given up when something inside it must be refused. The
// smallest unit around the thing is taken; a member that no row names, or of a
// _meta, is a unit by itself.
type Unit uint8

// The units.
const (
	Outer Unit = iota // whatever surrounds this; at the root the whole message
	Entry             // the entry is left out of its list
	Block             // the content block becomes a placeholder text block
)

// A Field is a named member of an object.
type Field struct {
	Name  string
	Treat Treatment // of strings; Shape decides where it is set
	Shape *Shape    // of objects
	Arity Arity
	Unit  Unit
	// Typed: the mimeType beside it says whether a text can hold a tag. A program that
	// parses JSON or renders HTML would not take it for what it is.
	Typed bool
	// Words are the values that the protocol knows, which say nothing of a third party's.
	Words []string
}

// A Shape is a typed object of the protocol. A member that differs from a
// field in case only is refused, because some readers would take it for the
// field; any other member that is no field is treated as Rest.
type Shape struct {
	name   string
	Rest   Treatment
	Fields []Field
	byName map[string]*Field
}

func shape(name string, rest Treatment, fields ...Field) *Shape {
	s := &Shape{name: name, Rest: rest}
	s.set(fields...)
	return s
}

// set adds fields; a shape that holds itself is completed by it.
func (s *Shape) set(fields ...Field) {
	s.Fields = append(s.Fields, fields...)
	s.byName = make(map[string]*Field, len(s.Fields))
	for i := range s.Fields {
		s.byName[s.Fields[i].Name] = &s.Fields[i]
	}
}

// Field returns the field that name spells exactly, or nil.
func (s *Shape) Field(name []byte) *Field { return s.byName[string(name)] }

// Part is the part of a message that a row speaks of.
type Part uint8

// The parts of a message that third parties fill.
const (
	Params Part = iota // of a request or notification
	Result
	Error
)

var partNames = [...]string{"params", "result", "error"}

func (p Part) String() string { return partNames[p] }

// A Mark says when a message gets a provenance member in its _meta.
type Mark uint8

// The marks.
const (
	OnChange Mark = iota // when something in it was changed
	Always               // it carries third-party text by its nature
)

// A Row says how one part of one method's messages, sent by a server, is
// treated. What a client sends passes unchanged.
type Row struct {
	Method string
	Part   Part
	Shape  *Shape
	Mark   Mark
	// Definitions: every string is treated as Definition instead of Text, since
	// an honest surface must stay byte for byte the same.
	Definitions bool
	// Instructions: the result tells a model how to read this server, and gains
	// the sentence that explains the fence.
	Instructions bool
	// sampling: words that a server wants the client's model to act upon.
	sampling bool

	frames bool
}

// Frames reports whether the row holds text that may be framed.
func (r *Row) Frames() bool { return r.frames }

func framesIn(s *Shape, seen map[*Shape]bool) bool {
	if seen[s] {
		return false
	}
	seen[s] = true
	return slices.ContainsFunc(s.Fields, func(f Field) bool {
		if f.Shape != nil {
			return framesIn(f.Shape, seen)
		}
		return f.Treat == ToolText || f.Treat == ResourceText || f.Treat == PromptText
	})
}

// Lookup returns the row of a method's part. It is total: a method without a
// row of its own gets one whose members are Data.
func Lookup(p Part, method string) *Row {
	if r := index[rowKey{p, method}]; r != nil {
		return r
	}
	return unknown[p]
}

// CreatedTask returns the row of a result of tools/call whose resultType is "task".
func CreatedTask() *Row { return &created }

type rowKey struct {
	part   Part
	method string
}

var (
	index   = map[rowKey]*Row{}
	unknown = [...]*Row{
		Params: {Part: Params, Shape: plainParams},
		Result: {Part: Result, Shape: plainResult},
		Error:  {Part: Error, Shape: rpcError},
	}
)

func init() {
	created.frames = framesIn(created.Shape, map[*Shape]bool{})
	for i := range rows {
		rows[i].frames = framesIn(rows[i].Shape, map[*Shape]bool{})
		index[rowKey{rows[i].Part, rows[i].Method}] = &rows[i]
	}
}

// Rows returns the table. It must not be changed.
func Rows() []Row { return rows }
