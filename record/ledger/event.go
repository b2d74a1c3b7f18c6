// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Kind says what happened. The set is closed.
type Kind string

// The kinds.
const (
	Message             Kind = "message"              // a message of a server was passed, changed, withheld or dropped
	ResultHeld          Kind = "result-held"          // a result waits for a person
	ResultReleased      Kind = "result-released"      // a person released it
	ResultTaken         Kind = "result-taken"         // a released result was delivered
	ResultDenied        Kind = "result-denied"        // a person denied it
	ResultExpired       Kind = "result-expired"       // it was not decided, or not taken, in time
	SurfaceVerified     Kind = "surface-verified"     // what a server says of itself was reviewed and pinned
	SurfaceChanged      Kind = "surface-changed"      // it is no longer what was pinned
	SurfaceRejected     Kind = "surface-rejected"     // the review refused it
	SurfaceApproved     Kind = "surface-approved"     // a person approved an item
	SurfaceBlocked      Kind = "surface-blocked"      // a person blocked an item
	SurfaceDropped      Kind = "surface-dropped"      // a person removed a pin
	AttestationAccepted Kind = "attestation-accepted" // an attestation was stored
	AttestationRefused  Kind = "attestation-refused"  // an attestation was refused
	AttestationEvent    Kind = "attestation-event"    // a cascade event was applied
	RulesLoaded         Kind = "rules-loaded"         // a configuration took effect
	Classified          Kind = "classified"           // a classifier gave its verdict
	Counterfactual      Kind = "counterfactual"       // a counterfactual run ended
	TrustChanged        Kind = "trust-changed"        // a score of trust changed
	PolicyDecided       Kind = "policy-decided"       // a policy acted, or would have
	KeyInstalled        Kind = "key-installed"        // from the next record on, this key signs; record 0 names the first key
	PrincipalForgotten  Kind = "principal-forgotten"  // what names a person was erased: numbers "captures", "held", "names", "openings", "sessions"; with Of: a held item was erased with that
	ConsoleUsed         Kind = "console-used"         // a person signed in to the console or out, or was refused (Verdict); Rule says how, Reason why
	RecordsLost         Kind = "records-lost"         // so many events could not be recorded (Number "lost")
)

var kinds = []Kind{Message, ResultHeld, ResultReleased, ResultTaken, ResultDenied, ResultExpired,
	SurfaceVerified, SurfaceChanged, SurfaceRejected, SurfaceApproved, SurfaceBlocked, SurfaceDropped,
	AttestationAccepted, AttestationRefused, AttestationEvent, RulesLoaded, Classified,
	Counterfactual, TrustChanged, PolicyDecided, KeyInstalled, PrincipalForgotten, ConsoleUsed, RecordsLost}

// Known reports whether k is one of the kinds.
func (k Kind) Known() bool { return slices.Contains(kinds, k) }

// A Role says what the content of a digest was in the event. The set is closed.
type Role string

// The roles. Names of people are content like any other: hash them.
const (
	Received  Role = "received"  // bytes as they came from the server
	Delivered Role = "delivered" // bytes as they went to the client
	Held      Role = "held"      // bytes that wait, or waited
	Call      Role = "call"      // the question that was answered
	Asked     Role = "asked"     // params of a request, as the client sent them
	Sent      Role = "sent"      // the same as the server got them
	Principal Role = "principal" // whose call it was
	By        Role = "by"        // the person who decided
	Surface   Role = "surface"   // what a server says of itself
	Item      Role = "item"      // one item of it
	Approved  Role = "approved"  // what of a pin is approved and blocked afterwards
	Record    Role = "record"    // an attestation or a cascade event
	Rules     Role = "rules"     // a compiled configuration
	Input     Role = "input"     // what a classifier, a run or a policy looked at
	Output    Role = "output"    // what it answered
	KeyRole   Role = "key"       // a public key
	NoContent Role = "none"      // stands alone where there was no content: its digest is that of the id
)

var roles = []Role{Received, Delivered, Held, Call, Asked, Sent, Principal, By, Surface, Item, Approved, Record, Rules, Input, Output, KeyRole, NoContent}

// A Subject is some content that the event was about, by its plain digest.
type Subject struct {
	Role   Role
	Digest Digest
}

// A Count is how often a code occurred.
type Count struct {
	Code finding.Code
	N    int64
}

// A Number is a measured value with the name that the program gave it. Fractions
// are in millionths, so that a replay gives the same value everywhere.
type Number struct {
	Name string // label
	N    int64  // at most 2^53-1 either way
}

// The numbers of a decision of the guard.
const (
	ModelCalls  = "model-calls"  // that it has asked for, cached ones left out
	ModelTokens = "model-tokens" // of these calls
	TookMillis  = "took-ms"      // for how long the call waited for it, in milliseconds
)

// A Version says by which version of what was decided.
type Version struct {
	Of      string // label: "sanitation", "unicode", "corpus", "rules", "classifier", …
	Version string // label
}

// An Event is what happened. It cannot hold third-party text: what is not a label
// (frame.IsLabel) is recorded as "other". Whether a server's or tool's name is in
// the approved surface is the caller's to know.
type Event struct {
	ID   ID
	Time time.Time // recorded in UTC, with nanoseconds; it orders nothing
	Kind Kind
	Of   ID // the record or held item that this one is about; zero: none

	Subjects []Subject // at most one of each role

	// Labels; "" leaves the member out.
	Server  string // of the configuration
	Tool    string // of the approved surface
	Method  string // of the table of methods
	Shape   string // "result", "error", "request", "notification"; "call": a request of the client
	Verdict string // of the vocabulary of the kind
	Rule    string // what decided: "schema", "finding", "classifier:NAME", …
	Reason  string // why: a code
	Profile string // of sanitation
	Actor   string // what kind of who decided: "person", "policy", "expiry", …

	Versions []Version

	Inspected    int64 // strings
	Findings     []Count
	NotInspected []Count
	Withheld     []Count
	Numbers      []Number

	// Key is the verifier key (C2SP vkey) of KeyInstalled; "" for every other kind.
	Key string
}

// A Sealed is an event as it waits for its signature: the public statement and
// the private opening of its digests. A store keeps Bytes, or the two parts.
type Sealed struct {
	ID        ID
	Statement []byte     // canonical JSON, without a line feed
	Opening   []byte     // canonical JSON, without a line feed
	Parsed    *Statement // what Statement says: as it would be read again
}

// Bytes joins the two for a store: statement, line feed, opening.
func (s Sealed) Bytes() []byte {
	return append(append(append(make([]byte, 0, len(s.Statement)+1+len(s.Opening)), s.Statement...), '\n'), s.Opening...)
}

var errKind = errors.New("ledger: seal: the kind of the event is not known")
var errSubject = errors.New("ledger: seal: a subject's role is not known, or stands twice")
var errKey = errors.New("ledger: seal: key-installed, and no other kind, names a verifier key")
var errTime = errors.New("ledger: seal: the year is not one of 0 to 9999")
var errTooLong = errors.New("ledger: seal: the statement is too long")

// Seal writes the event down. The salt is random and never used again. It fails
// only by a mistake of the program: a kind or a role that is not known, a role
// twice, more than maxStatement bytes.
func (e *Event) Seal(salt Salt) (Sealed, error) {
	switch {
	case !e.Kind.Known():
		return Sealed{}, errKind
	case (e.Kind == KeyInstalled) != (e.Key != ""):
		return Sealed{}, errKey
	case !inYears(e.Time):
		return Sealed{}, errTime
	}
	if e.Key != "" {
		if _, err := ParseKey(e.Key); err != nil {
			return Sealed{}, errKey
		}
	}
	subjects := slices.Clone(e.Subjects)
	if len(subjects) == 0 {
		subjects = []Subject{{NoContent, sha256.Sum256(e.ID[:])}}
	}
	slices.SortFunc(subjects, func(a, b Subject) int { return cmp.Compare(a.Role, b.Role) })
	if !inOrder(subjects) {
		return Sealed{}, errSubject
	}
	s := Sealed{ID: e.ID, Opening: appendOpening(make([]byte, 0, 512), e.ID, salt, subjects), Parsed: &Statement{Event: e.normal()}}
	for i := range subjects {
		subjects[i].Digest = commit(salt, subjects[i].Role, subjects[i].Digest)
	}
	s.Parsed.Subjects = subjects
	s.Statement = s.Parsed.appendStatement(make([]byte, 0, 1280))
	s.Parsed.Bytes = s.Statement
	if len(s.Statement) > maxStatement {
		return Sealed{}, errTooLong
	}
	return s, nil
}

// inOrder reports whether every role is known, stands once, and in order.
func inOrder(subjects []Subject) bool {
	for i, s := range subjects {
		if !slices.Contains(roles, s.Role) || i > 0 && s.Role <= subjects[i-1].Role {
			return false
		}
	}
	return len(subjects) > 0
}

func inYears(t time.Time) bool { y := t.UTC().Year(); return 0 <= y && y <= 9999 }

// commit is the salted digest that stands in a statement: HMAC-SHA-256 with the
// salt as its key over the role, a zero byte and the plain digest.
func commit(salt Salt, role Role, d Digest) Digest {
	// As RFC 2104 has it: crypto/hmac would allocate five times for each digest.
	var inner [sha256.BlockSize + maxRole + 1 + sha256.Size]byte
	var outer [sha256.BlockSize + sha256.Size]byte
	for i := range sha256.BlockSize {
		inner[i], outer[i] = 0x36, 0x5c
	}
	for i, b := range salt {
		inner[i], outer[i] = inner[i]^b, outer[i]^b
	}
	m := append(append(append(inner[:sha256.BlockSize], role...), 0), d[:]...)
	sum := sha256.Sum256(m)
	copy(outer[sha256.BlockSize:], sum[:])
	return sha256.Sum256(outer[:])
}

// maxRole is the length of the longest role; a longer one would only cost an allocation.
const maxRole = 9

// The constants of a statement.
const (
	StatementType = "https://in-toto.io/Statement/v1"
	PredicateType = "https://github.com/pellucid-mcp/pellucid/evidence/v0.1"
	digestName    = "hmacSha256" // in-toto lets an algorithm have its own name
)

// appendStatement writes the statement of a normal event whose subjects are salted and
// in the order of their roles. The members stand in the order of RFC 8785. Every string
// is a label, a constant, hexadecimal or a vkey, so nothing needs an escape.
func (e *Event) appendStatement(dst []byte) []byte {
	dst = append(dst, `{"_type":"`+StatementType+`","predicate":`...)
	o := object{dst: append(dst, '{')}
	o.text("actor", e.Actor)
	o.counts("findings", e.Findings)
	o.hex("id", e.ID[:])
	if e.Inspected > 0 {
		o.number("inspected", e.Inspected)
	}
	o.text("key", e.Key)
	o.text("kind", string(e.Kind))
	o.text("method", e.Method)
	o.counts("notInspected", e.NotInspected)
	o.numbers("numbers", e.Numbers)
	if e.Of != (ID{}) {
		o.hex("of", e.Of[:])
	}
	o.text("profile", e.Profile)
	o.text("reason", e.Reason)
	o.text("rule", e.Rule)
	o.text("server", e.Server)
	o.text("shape", e.Shape)
	o.name("time")
	o.dst = append(e.Time.AppendFormat(append(o.dst, '"'), timeFormat), '"')
	o.text("tool", e.Tool)
	o.text("verdict", e.Verdict)
	o.versions("versions", e.Versions)
	o.counts("withheld", e.Withheld)
	dst = append(o.dst, `},"predicateType":"`+PredicateType+`","subject":[`...)
	for i, s := range e.Subjects {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"digest":{"`+digestName+`":"`...)
		dst = hex.AppendEncode(dst, s.Digest[:])
		dst = append(append(append(dst, `"},"name":"`...), s.Role...), `"}`...)
	}
	return append(dst, "]}"...)
}

// timeFormat has nine digits always: one time, one spelling.
const timeFormat = "2006-01-02T15:04:05.000000000Z"

// An object is a JSON object that is being written.
type object struct {
	dst  []byte
	some bool
}

func (o *object) name(s string) {
	if o.some {
		o.dst = append(o.dst, ',')
	}
	o.some = true
	o.dst = append(append(append(o.dst, '"'), s...), `":`...)
}

func (o *object) text(name, s string) {
	if s != "" {
		o.name(name)
		o.dst = append(append(append(o.dst, '"'), s...), '"')
	}
}

func (o *object) hex(name string, b []byte) {
	o.name(name)
	o.dst = append(hex.AppendEncode(append(o.dst, '"'), b), '"')
}

func (o *object) number(name string, n int64) {
	o.name(name)
	o.dst = strconv.AppendInt(o.dst, n, 10)
}

// in writes an object of n members.
func (o *object) in(name string, n int, member func(in *object, i int)) {
	if n == 0 {
		return
	}
	o.name(name)
	in := object{dst: append(o.dst, '{')}
	for i := range n {
		member(&in, i)
	}
	o.dst = append(in.dst, '}')
}

func (o *object) numbers(name string, list []Number) {
	o.in(name, len(list), func(in *object, i int) { in.number(list[i].Name, list[i].N) })
}

func (o *object) counts(name string, list []Count) {
	o.in(name, len(list), func(in *object, i int) { in.number(string(list[i].Code), list[i].N) })
}

func (o *object) versions(name string, list []Version) {
	o.in(name, len(list), func(in *object, i int) { in.text(list[i].Of, list[i].Version) })
}
