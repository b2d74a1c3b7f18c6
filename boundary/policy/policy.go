// SPDX-License-Identifier: Apache-2.0

// Package policy holds the words in which the boundary decides: what a rule asks for, in which mode a check runs, what a policy is asked, and what it answers.
//
// It has no rules of its own. Package expr compiles those of the operator.
package policy

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Mode says what a check does where something fails it. The zero Mode is the strict one.
type Mode uint8

// The modes.
const (
	Enforce Mode = iota // what fails is withheld or held
	Audit               // what fails is recorded, and delivered
	Shadow              // as Audit, and the check runs after the delivery
	Off                 // nothing is checked
)

var modeWords = [...]string{"enforce", "audit", "shadow", "off"}

// String is the mode as files and records spell it.
func (m Mode) String() string { return modeWords[min(m, Off)] }

// An Action is what a rule or a check asks for, the strictest last.
type Action uint8

// The actions.
const (
	Allow    Action = iota // nothing beyond what happens anyway
	Sanitise               // the result is sanitised once more, and more invisible characters are removed
	Ask                    // it is held, and a reviewer is asked a question
	Hold                   // it is held until a reviewer has looked at it
	Deny                   // it is refused
)

var actionWords = [...]string{"allow", "sanitise", "ask", "hold", "deny"}

// String is the action as files and records spell it.
func (a Action) String() string { return actionWords[min(a, Deny)] }

// MarshalText is String, for reports in JSON.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// A Direction is what a rule is about.
type Direction uint8

// The directions.
const (
	Result Direction = iota // of a tool, on its way to the client
	Call                    // of a tool, before the server gets it
)

// An Input is what is to be decided on. Its strings are labels, but for those of Facts: no other text of a third party
// is in it.
type Input struct {
	Direction Direction
	Server    string
	Tool      string

	// What the server says of the tool, with the defaults of MCP where it says
	// nothing. A server can lie; a rule that these loosen believes it.
	ReadOnly, Destructive, OpenWorld bool
	// Privileged: the operator says that the tool acts, or the server does not say
	// that it only reads.
	Privileged bool

	Findings     []Count // of a result, and of what had to be withheld of it
	NotInspected int     // values that passed without a look inside
	Scores       []Score // of classifiers that have judged
	Size         int     // bytes of the result as it came, or of the call's params
	Facts        *Facts  // of the call, if it is known
	Session      Session // before the call, or the result

	// The gateway does not know these; who evaluates the rules fills them in.
	ServerTrust, ToolTrust float64 // in [0, 1]
	Scopes                 []string
}

// A Reads names the parts of calls that the rules of a policy read. No other part is kept.
type Reads struct {
	Args    []string // JSON pointers into the arguments
	Claims  []string // names
	Session bool     // counts of the session
	Trust   bool     // scores of trust
}

// Facts are the parts of a call that rules read: values by pointer, and by the name of a claim. A value is a string, an
// int64, a uint64, a float64, a bool, nil, an [Object], a []any of these, or an [Unreadable]. A part that the call lacks is
// absent.
type Facts struct{ Args, Claims map[string]any }

// An Object stands for an object, or a list in a list. No value of a rule equals it.
type Object struct{}

// An Unreadable stands for a value that cannot be compared: a number without an exact value here, a value that is too
// long, or one under two spellings of its name. A rule that reads it fails: it could be equal to the value in the rule.
type Unreadable struct{}

// Bounds of a value in Facts.
const (
	MaxValue    = 16 << 10 // bytes of a string
	MaxElements = 1024     // of a list
	maxNumber   = 64       // bytes of a number
	maxPower    = 400      // of ten in a number
)

// Number returns the value of a JSON number for Facts, if it is exact: an integer of 64 bits, or a fraction that equals a
// literal of a rule with the same digits. Any other number is Unreadable, since a comparison could be wrong.
func Number(raw string) any {
	if len(raw) > maxNumber || strings.Trim(raw, "0123456789+-.eE") != "" {
		return Unreadable{}
	}
	if i, err := strconv.ParseInt(raw, 10, 64); err == nil {
		return i
	}
	if at := strings.IndexAny(raw, "eE"); at >= 0 {
		if power, err := strconv.Atoi(raw[at+1:]); err != nil || max(power, -power) > maxPower {
			return Unreadable{}
		}
	}
	written, ok := new(big.Rat).SetString(raw)
	f, err := strconv.ParseFloat(raw, 64)
	switch {
	case !ok || err != nil:
	case written.IsInt() && written.Num().IsInt64():
		return written.Num().Int64()
	case written.IsInt() && written.Num().IsUint64():
		return written.Num().Uint64()
	case written.IsInt():
	default:
		if shortest, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64)); ok && shortest.Cmp(written) == 0 {
			return f
		}
	}
	return Unreadable{}
}

// A Session has the counts of a session so far.
type Session struct {
	Calls   int            // calls of tools
	Held    int            // calls and results that were held
	CallsOf map[string]int // calls by SERVER/TOOL
}

// A Count is how often a code was found.
type Count struct {
	Code finding.Code
	N    int
}

// A Score is what a classifier gives a text: the higher the more like an injection.
type Score struct {
	Name  string  // of the classifier: a label
	Value float64 // in [0, 1]
}

// A Match is what a rule that has matched asks for. Its zero value says that no rule has.
type Match struct {
	Action   Action `json:"action"`
	Rule     string `json:"rule,omitzero"`   // label; "": no rule has matched
	Question string `json:"-"`               // of Ask: the operator's words, for the reviewer
	Failed   bool   `json:"failed,omitzero"` // the rule could not be evaluated: Action is what stands for that
}

// String says it for a person.
func (m Match) String() string {
	switch {
	case m.Rule == "":
		return m.Action.String() + ", no rule"
	case m.Failed:
		return m.Action.String() + ", because rule " + m.Rule + " could not be evaluated"
	}
	return m.Action.String() + ", rule " + m.Rule
}

// A Ruling is what a policy answers.
type Ruling struct {
	Match
	// Would is the match if rules in audit mode acted too, where that is stricter;
	// else it is zero.
	Would Match
}

// A Policy decides about calls of tools and about their results. What it decides is
// about that one call: other calls of the session go on.
type Policy interface {
	// Decide may be called at the same time. It keeps nothing of the input.
	Decide(Input) Ruling
	// Reads returns the parts of a call that the rules in force read.
	Reads() Reads
}
