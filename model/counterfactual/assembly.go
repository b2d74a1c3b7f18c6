// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Class says what kind of place a segment came from.
type Class string

// The classes.
const (
	ClassToolResult  Class = "tool-result"
	ClassResource    Class = "resource"
	ClassMemory      Class = "memory"
	ClassRetrieved   Class = "retrieved"
	ClassDescription Class = "tool-description"
	ClassUserTurn    Class = "user-turn" // where the host has declared the task: ParseOptions.Task
	ClassUnknown     Class = "unknown"
)

// A Source says where a segment came from.
type Source struct {
	Class Class
	// Origin holds labels: what is none is frame.Other. Of a segment that is not
	// Verified it repeats what the context claims.
	Origin frame.Origin
	// Verified: a fence made with the install key holds the text.
	Verified bool
}

// Label is s for people and for strata: "server/tool" where the origin is
// verified, "?/tool" where it is claimed.
func (s Source) Label() string {
	server := "?"
	if s.Verified {
		server = s.Origin.Server
	}
	if s.Origin.Tool == "" {
		return server + "/" + string(s.Class)
	}
	return server + "/" + s.Origin.Tool
}

// A Segment is a piece of untrusted text in an Assembly.
type Segment struct {
	ID      string // "s1", "s2", … in the order of the context
	Source  Source
	Trust   int    // thousandths: 0 = none
	Capsule string // "" = none
	Text    string // third-party text; "" if the segment is no text
	Digest  frame.Digest

	// Call is what the agent wrote to get this segment: a tool's arguments.
	Call string

	made int // which call that was, from 1; 0: not known
}

// A Tool is one that a request offers to the model.
type Tool struct {
	Name        string
	Description string // "" if it is untrusted
	Parameters  []string
}

// A Part is a trusted part of an Assembly.
type Part struct {
	Role  string // system, tools, user, agent
	Bytes int
}

// An Assembly is a context taken apart. It is immutable and may be read
// concurrently.
type Assembly struct {
	Format   format.Name
	Segments []Segment
	Trusted  []Part
	Edges    []Edge
	Odd      []Oddity
	Capsules []Capsule

	// Prior are the calls that the agent has made, in their order.
	Prior []Call
	// Failed are the indices of those of Prior that have failed, as the client says.
	Failed map[int]bool
	// Tools are those that the request offers to the model.
	Tools []Tool

	// Task is the user's text and Instructions what the operator wrote.
	Task, Instructions string
	// Turn is the last turn of the user, and Proposed what the agent said before it.
	Turn, Proposed string

	sharedHosts []string

	src    []byte
	doc    *strictjson.Doc
	slots  []slot
	drops  []strictjson.Value // not shown in any variant
	list   strictjson.Value   // the array whose elements reorder moves
	rounds [][]round          // of list; rounds of one inner slice may change places
	parent []Set              // of each segment: everything that it derives from
	places []int              // of each segment: how many strings hold it
	id     string
}

// An Oddity is something in a context that is no error and that whoever reads a
// attribution has to know.
type Oddity struct {
	Code  string // constant text
	Place int    // byte offset in the source
}

// The oddities.
const (
	OddOrphan   = "orphaned-result" // answers no call of this context
	OddUnseen   = "not-inspected"   // part of the context lies with the provider
	OddKind     = "unknown-kind"    // of message or block: taken as untrusted
	OddNoText   = "not-text"        // a segment that holds no text
	OddForged   = "forged-frame"    // looks like a frame of ours and is none
	OddNotCalls = "malformed-call"  // an earlier tool call that cannot be read
)

// slot is a place in the source where a variant may differ.
type slot struct {
	v      strictjson.Value // a string, or a block that is withheld whole
	role   slotRole
	block  string  // what replaces v as raw JSON, if v is no string; "": v is removed
	pieces []piece // of a string: cover it without gap

	carried []leaf           // of slotCall: what v holds of segments
	inner   strictjson.Value // of slotCall: the document in v, if there is one

	// whole, unless it is zero, writes the text of a v that is no string and reads as the
	// JSON that it is.
	whole format.Instead
}

// isText reports whether the slot has a text that pieces divide.
func (s *slot) isText() bool { return s.v.Kind() == '"' || s.whole != (format.Instead{}) }

// reads is the text of a slot that has one.
func (s *slot) reads() string {
	if s.v.Kind() == '"' {
		return s.v.Text()
	}
	return string(s.v.Raw())
}

type slotRole uint8

const (
	slotSegment slotRole = iota // pieces say which
	slotTask                    // the user's; pieces of segments may stand in it
	slotAgent                   // the agent's own text
	slotSystem                  // the operator's; pieces of segments may stand in it
	slotCall                    // arguments of the agent's that carry text of segments
)

// piece is [start, end) of a slot's decoded text.
type piece struct {
	start, end int
	segment    int // -1: of the slot's own role
}

// round is elements [start, end) of the list: calls and their results.
type round struct{ start, end int }

// ID identifies the assembly: its bytes, how they were taken apart, and what is
// claimed of each segment.
func (a *Assembly) ID() string { return a.id }

// Source is the context as it was given. It must not be changed.
func (a *Assembly) Source() []byte { return a.src }

// assemblyDomain keeps the digest apart from any other.
const assemblyDomain = "dev.pellucid/assembly/1"

// seal computes what follows from the rest. It is the last step of making one.
func (a *Assembly) seal() error {
	if err := a.closeEdges(); err != nil {
		return err
	}
	a.places = make([]int, len(a.Segments))
	for i := range a.slots {
		for _, p := range a.slots[i].pieces {
			if p.segment >= 0 && a.slots[i].isText() {
				a.places[p.segment]++
			}
		}
	}
	h := sha256.New()
	field := func(s string) {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	number := func(i int) { field(strconv.Itoa(i)) }
	field(assemblyDomain)
	field(string(a.Format))
	sum := sha256.Sum256(a.src)
	field(string(sum[:]))
	number(len(a.Segments))
	for i := range a.Segments {
		s := &a.Segments[i]
		field(s.ID)
		field(string(s.Source.Class))
		field(s.Source.Origin.Server)
		field(s.Source.Origin.Tool)
		field(s.Source.Origin.Model)
		field(strconv.FormatBool(s.Source.Verified))
		number(s.Trust)
		field(s.Capsule)
		field(string(s.Digest[:]))
	}
	number(len(a.Edges))
	for _, e := range a.Edges {
		field(string(e.Kind))
		number(e.From)
		number(e.To)
	}
	// Where the pieces lie decides the bytes of a variant.
	number(len(a.slots))
	for _, s := range a.slots {
		number(int(s.role))
		number(s.v.Offset())
		for _, p := range s.pieces {
			number(p.start)
			number(p.end)
			number(p.segment)
		}
		for _, l := range s.carried {
			number(l.v.Offset())
			field(string(l.of))
		}
	}
	a.id = "sha256:" + hex.EncodeToString(h.Sum(nil))
	return nil
}

// Below are the segments that are trusted less than so many thousandths.
func (a *Assembly) Below(trust int) Set {
	var b setBuilder
	for i := range a.Segments {
		if a.Segments[i].Trust < trust {
			b.add(i)
		}
	}
	return b.set()
}

// Made counts the calls of a tool that the agent has made, without those that have failed.
func (a *Assembly) Made(tool string) (n int) {
	for i, c := range a.Prior {
		if c.Name == tool && !a.Failed[i] {
			n++
		}
	}
	return n
}
