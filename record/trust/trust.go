// SPDX-License-Identifier: Apache-2.0

// Package trust keeps a score for each server, tool and validator, made of recorded events and of nothing else.
//
// A [State] is a pure function of the events that were applied to it, in their
// order: their times stand in them, all arithmetic is in integers, and a reader who
// applies the same events to an empty State has the same scores, bit for bit, in
// any language. docs/spec/trust.md says how.
//
// An event counts against the origin that caused it and no other, so that
// nothing a server does can move the score of another server or of another
// server's tool, and nothing that is not proven to come from a validator can move
// the validator's. A score never leaves its bounds, rests at a value that it always
// comes back to, and only informs what is decided about one call.
package trust

import (
	"strconv"
	"time"
)

// version is that of the arithmetic: the tables of this package and the order of
// its steps. A snapshot of another version is not read: its events are replayed.
const version = "2"

// A Score is how far something is trusted, in millionths: from 0 to One.
type Score int32

// One is full trust.
const One Score = 1_000_000

// Float is the score as a number in [0, 1].
func (s Score) Float() float64 { return float64(s) / float64(One) }

// String is the score with six decimals.
func (s Score) String() string {
	digits := strconv.Itoa(int(One) + int(s))
	return string(digits[0]-'1'+'0') + "." + digits[1:]
}

// An Origin is who caused an event: a server, a tool of a server, or a validator.
type Origin struct {
	Server    string
	Tool      string // of Server; "": the server as a whole
	Validator string // then Server and Tool are ""
}

// maxName is the longest name that is told from others, in bytes.
const maxName = 256

// isName reports whether s can be kept: printable ASCII without a space.
func isName(s string) bool {
	if s == "" || len(s) > maxName || s == none {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// valid reports whether the origin names one subject.
func (o Origin) valid() bool {
	if o.Validator != "" {
		return o.Server == "" && o.Tool == "" && isName(o.Validator)
	}
	return isName(o.Server) && (o.Tool == "" || isName(o.Tool))
}

// A Kind is what has happened. The set is closed.
type Kind string

// The kinds. The first five lower a score, and so does the denial of a reviewer. The subject of a text does not: a
// document may name control tokens, and be full of emoji or of letters that look like others.
const (
	HiddenMessage   Kind = "hidden-message"   // invisible characters of a message were decoded to a text
	ForgedFrame     Kind = "forged-frame"     // a message imitated the frame or the provenance that only Pellucid writes
	ShapeLie        Kind = "shape-lie"        // a message was withheld since the protocol or its own schema does not allow it
	HeldChange      Kind = "held-change"      // a server changed what it declares, and the change is held
	Hijack          Kind = "hijack"           // a counterfactual run: its text took control
	HeldDenied      Kind = "held-denied"      // a reviewer denied a held item
	HeldReleased    Kind = "held-released"    // a reviewer released it: a false alarm
	SurfaceApproved Kind = "surface-approved" // a reviewer approved a change
	Clean           Kind = "clean"            // a result in which nothing was found
)

// An effect is what an event of a kind does to a score, and how often it does so
// in one window: what is beyond that changes nothing.
type effect struct {
	kind  Kind
	own   int32 // millionths, on the tool, the validator, or the server if no tool is named
	above int32 // on the server, if a tool is named
	most  uint8
}

// effects says how each kind moves a score; the index of a kind is its place in a snapshot.
var effects = [...]effect{
	{HiddenMessage, -60_000, -25_000, 6},
	{ForgedFrame, -60_000, -25_000, 6},
	{ShapeLie, -40_000, -16_000, 6},
	{HeldChange, -50_000, -20_000, 4},
	{Hijack, -400_000, -200_000, 2},
	{HeldDenied, -150_000, -60_000, 4},
	{HeldReleased, 80_000, 32_000, 12},
	{SurfaceApproved, 50_000, 20_000, 4},
	{Clean, 1_000, 250, 60},
}

// Lowers reports whether k is a kind that lowers a score.
func (k Kind) Lowers() bool {
	i := indexOf(k)
	return i >= 0 && effects[i].own < 0
}

func indexOf(k Kind) int {
	for i := range effects {
		if effects[i].kind == k {
			return i
		}
	}
	return -1
}

// window is the time for which the counts of an effect hold, in seconds.
const window = int64(time.Hour / time.Second)

// An Observation is one thing that was recorded.
type Observation struct {
	Time   int64 // seconds of Unix time, as it was recorded
	Kind   Kind
	Origin Origin
	// Mark stands for the content that caused the event, where it is known: a server has one event of one mark.
	Mark int64
	// Proven: what counts against a validator bears its valid signature. Without it
	// an event of a validator changes nothing, since any author can have written it.
	Proven bool
}

// Options are the constants of a State; a zero member is its default. Scores that
// were made with other Options are other scores.
type Options struct {
	Rest     Score         // of what nothing is known about, and of what nothing has been known of for long; 700,000
	Floor    Score         // no score is less; 50,000
	HalfLife time.Duration // in which the way back to Rest is halved; 24 h
}

// quantaPerHalfLife is how finely time is cut.
const quantaPerHalfLife = 64

// OrDefault is what a State makes of o: every member set, and within its bounds.
func (o Options) OrDefault() Options {
	if o.Rest <= 0 || o.Rest > One {
		o.Rest = 700_000
	}
	if o.Floor <= 0 {
		o.Floor = 50_000
	}
	o.Floor = min(o.Floor, o.Rest)
	if o.HalfLife <= 0 {
		o.HalfLife = 24 * time.Hour
	}
	o.HalfLife = max(o.HalfLife.Truncate(quantaPerHalfLife*time.Second), quantaPerHalfLife*time.Second)
	return o
}
