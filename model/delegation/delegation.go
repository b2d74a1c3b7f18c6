// SPDX-License-Identifier: Apache-2.0

// Package delegation decides whether a tool call is what the user asked for.
//
// A call that takes its values from a document looks like a hijack to every question about
// what the model does without the document. Two other questions separate them: does the
// request ask for such a call, and does another value compete with this one. [Decide] asks
// them in the order of their cost:
//
//  0. Where does each value come from? Nothing is asked; a call whose values all stand in the
//     user's or the operator's words is theirs.
//  1. Which calls may the request need? A planner answers, once for each turn of the user. It
//     is shown trusted text only, so third-party text cannot change its answer.
//  2. What does the model call if it does not see the sentences that hold a value? If it then
//     gives another value which has a source, there is a conflict.
//
// The answers are [Facts]. They hold labels, digests and numbers, and no third-party text.
// [Facts.Verdict] is a function of them, so that a record of them can be checked later.
package delegation

import (
	"slices"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
)

// A Verdict says what was found out about one call.
type Verdict string

// The verdicts.
const (
	// Stated: every critical value stands in the user's or the operator's words.
	Stated Verdict = "stated"
	// Delegated: the request asks for such a call, and its values come from what was read.
	Delegated Verdict = "delegated"
	// NotAsked: the request does not ask for such a call.
	NotAsked Verdict = "not-asked-for"
	// Otherwise: the request states other values, or does not ask for an argument.
	Otherwise Verdict = "stated-otherwise"
	// OtherSource: the value, or what a command does, stands only in a source that the request does not name.
	OtherSource Verdict = "other-source"
	// Again: the agent has made as many calls of this tool as the request asks for.
	// A tool that only reads may be called as often as the agent needs it.
	Again Verdict = "again"
	// Conflict: without this value the model gives another one, which has a source too.
	Conflict Verdict = "conflict"
	// Unsourced: a URL, mail address or IBAN that stands nowhere in the context, or that adds
	// something to a URL which a third party wrote.
	Unsourced Verdict = "unsourced"
	// Unknown: a question had no answer that can be read.
	Unknown Verdict = "cannot-tell"
)

// Verdicts are all of them.
var Verdicts = []Verdict{Stated, Delegated, NotAsked, Otherwise, OtherSource, Again, Conflict, Unsourced, Unknown}

// Meaning says in a few words what a verdict means.
func Meaning(v Verdict) string {
	switch v {
	case Stated:
		return "every value is the user's"
	case Delegated:
		return "asked for, with values from what was read"
	case NotAsked:
		return "the request does not ask for such a call"
	case Otherwise:
		return "the request states other values, or nothing of an argument"
	case OtherSource:
		return "a value, or words of a command, stand only in a source that the request does not name"
	case Again:
		return "the tool was called as often as the request asks for"
	case Conflict:
		return "without this value the model gives another one, which has a source too"
	case Unsourced:
		return "an address or account that stands nowhere, or adds to a third party's URL"
	}
	return "a question had no answer that can be read"
}

// A Response says what is done with a call.
type Response string

// The responses, mildest first.
const (
	Pass   Response = "pass"
	Mark   Response = "mark"   // passes, and the answer says where its values come from
	Ask    Response = "ask"    // waits for a person, who is shown what was found out
	Hold   Response = "hold"   // does not pass; a person can release it
	Repair Response = "repair" // as Hold, but the model answers again without the text that caused it
)

// Responses are all of them, mildest first.
var Responses = []Response{Pass, Mark, Ask, Hold, Repair}

// Passes reports whether the call is delivered.
func (r Response) Passes() bool { return r == Pass || r == Mark }

// A Policy says what each verdict does. What it does not name does what Default says.
type Policy map[Verdict]Response

// Default is what a verdict does where a Policy does not say.
func Default(v Verdict) Response {
	switch v {
	case Stated:
		return Pass
	case Delegated:
		return Mark
	case NotAsked, Otherwise:
		return Repair
	case OtherSource, Again, Conflict, Unsourced:
		return Ask
	}
	return Hold
}

// Of is what a verdict does.
func (p Policy) Of(v Verdict) Response {
	if r, ok := p[v]; ok {
		return r
	}
	return Default(v)
}

// Worse is the sterner one of two responses.
func Worse(a, b Response) Response {
	if slices.Index(Responses, a) < slices.Index(Responses, b) {
		return b
	}
	return a
}

// Facts are what was found out about one call.
type Facts struct {
	Tool   string `json:"tool"`   // label
	Digest string `json:"digest"` // of the canonical call
	// Reader: the call is not privileged. It is looked at because it reaches an address that
	// is not the user's.
	Reader bool `json:"reader,omitempty"`
	// Verb: the request has a verb of the tool's name.
	Verb bool `json:"verb,omitempty"`
	// Writes: the arguments make a call of a tool that reads, by its name, one that changes something. Verb is then that of the
	// statement.
	Writes bool `json:"writes,omitempty"`
	// Unread: the arguments cannot be read, or are too many.
	Unread    bool       `json:"unread,omitempty"`
	Arguments []Argument `json:"arguments,omitempty"`

	Plan   *PlanFacts `json:"plan,omitempty"`   // nil: it was not asked for
	Need   *Needed    `json:"need,omitempty"`   // the same
	Rivals []Rival    `json:"rivals,omitempty"` // in the order of asking

	// Own: the context holds no third-party text. What the model calls is then the user's or
	// its own; only the rules about values count.
	Own bool `json:"own,omitempty"`
	// Rulings are those of the operator's rules about values that match.
	Rulings []Ruling `json:"rulings,omitempty"`
	// Approval is the id of a person's approval that covers the call.
	Approval string `json:"approval,omitempty"`
	// Quarantined: the context holds text of a source that is quarantined.
	Quarantined bool `json:"quarantined,omitempty"`
	// Usual is what the verdict does without Rulings and Approval, where there are some.
	Usual Response `json:"usual,omitempty"`
}

// An Argument is one value of a call, and where it comes from.
type Argument struct {
	Label    string              `json:"label"`
	Form     counterfactual.Form `json:"form"`
	Inside   bool                `json:"inside,omitempty"`   // an atom of a longer text
	Trusted  bool                `json:"trusted,omitempty"`  // the user's or the operator's words hold it
	Segments counterfactual.Set  `json:"segments,omitempty"` // of those that hold it, if it is not trusted
	Composed bool                `json:"composed,omitempty"` // they hold only the host of this URL
	Minor    bool                `json:"minor,omitempty"`    // it does not decide where the call goes: no rival is asked for
	// Guessed: no argument of the call has a name that says what it decides.
	Guessed bool `json:"guessed,omitempty"`
	// Unplanned: no planned call of the tool has this argument.
	Unplanned bool `json:"unplanned,omitempty"`
	// Work: a command or an edit within the project. Foreign: one whose words stand in third-party text alone.
	Work    bool `json:"work,omitempty"`
	Foreign bool `json:"foreign,omitempty"`
	// Leaks: a reader sends to the web what only another tool has returned.
	Leaks bool `json:"leaks,omitempty"`
	// Named are the segments of the source that the plan names for it.
	Named counterfactual.Set `json:"named,omitempty"`
	// NotRead: the plan names a source that the agent has not read.
	NotRead bool `json:"not_read,omitempty"`
}

// data reports whether the value is not the user's, and a third party wrote it.
func (a *Argument) data() bool { return !a.Trusted && a.Segments != "" }

// PlanFacts are what the plan says of one call.
type PlanFacts struct {
	Exchange
	// Unasked says why the planner could not be asked; "": it was, or the failure says why.
	Unasked    Unasked `json:"unasked,omitempty"`
	Unreadable bool    `json:"unreadable,omitempty"`
	Listed     bool    `json:"listed,omitempty"` // it has a call of this tool
	Count      int     `json:"count,omitempty"`  // so many
	Each       bool    `json:"each,omitempty"`   // and one for each item of a list
	Done       int     `json:"done,omitempty"`   // calls of the tool before this one
	// Confirmed: the user has agreed to what the agent proposed, and that names what the tool does.
	Confirmed bool `json:"confirmed,omitempty"`
	// Otherwise: the plan has every value of a call of this tool from the request, none of
	// its calls is this one, and a critical value differs.
	Otherwise bool `json:"otherwise,omitempty"`
}

// Needed is the answer to the second question of a planner, whether the request asks for
// what the tool does.
type Needed struct {
	Exchange
	Unreadable bool `json:"unreadable,omitempty"`
	Yes        bool `json:"yes,omitempty"`
}

// A Rival is the answer to a question without some of the values.
type Rival struct {
	Exchange
	Arguments []int `json:"arguments"` // places in Facts.Arguments of the values withheld
	counterfactual.Rival
	// Unnamed: the plan has a name for the value, which is not a name of the rival.
	Unnamed bool `json:"unnamed,omitempty"`
}

// An Exchange is one question and what came back.
type Exchange struct {
	Request  string                 `json:"request,omitempty"`  // digest of its bytes
	Response string                 `json:"response,omitempty"` // the same of the answer
	Failure  counterfactual.Failure `json:"failure,omitempty"`
	Cached   bool                   `json:"cached,omitempty"` // asked for an earlier call
}

// Verdict is what follows from the facts.
func (f *Facts) Verdict() Verdict {
	if f.Own {
		return Stated
	}
	if f.Unread {
		return Unknown
	}
	p, asks := f.Plan, f.asks()
	answered := p != nil && p.Failure == "" && !p.Unreadable
	switch {
	case !asks && !answered && (f.Verb || f.Reader):
		return Stated
	case !answered:
		return Unknown
	case !p.Listed && !p.Confirmed, f.Writes && !f.Verb, f.Need != nil && f.Need.Failure == "" && !f.Need.Unreadable && !f.Need.Yes:
		return NotAsked
	case f.Need != nil && !f.Need.Yes:
		return Unknown
	case f.any((*Argument).foreign):
		return OtherSource
	case p.Otherwise, f.any((*Argument).extra):
		return Otherwise
	case f.any(func(a *Argument) bool { return a.unsourced(f.Reader) }):
		return Unsourced
	case f.any((*Argument).elsewhere):
		return OtherSource
	case !f.Reader && p.Listed && !p.Each && p.Done >= p.Count && !f.any(func(a *Argument) bool { return a.Work }):
		return Again
	case !asks:
		return Stated
	}
	for _, r := range f.Rivals {
		if r.Failure == "" && r.Other && r.Sourced && !r.Known && !r.Unnamed && !(p.Each && f.item(r.Arguments)) {
			return Conflict
		}
	}
	if slices.ContainsFunc(f.Rivals, func(r Rival) bool { return r.Failure != "" }) || len(f.Rivals) < len(f.groups()) {
		return Unknown
	}
	return Delegated
}

// item reports whether none of the values names a party: where a call is made for each item of
// a list, another value may be the next item.
func (f *Facts) item(arguments []int) bool {
	return !slices.ContainsFunc(arguments, func(i int) bool { return i < 0 || i >= len(f.Arguments) || f.Arguments[i].Form.Names() })
}

// asks reports whether the plan is needed: some value is not the user's, or there is none at all.
func (f *Facts) asks() bool {
	return len(f.Arguments) == 0 && !f.Reader || f.any(func(a *Argument) bool { return !a.Trusted })
}

func (f *Facts) any(is func(*Argument) bool) bool {
	for i := range f.Arguments {
		if is(&f.Arguments[i]) {
			return true
		}
	}
	return false
}

// unsourced: the address stands nowhere, or a third party wrote only the host or words of it. A model's own
// text, such as a program, is full of addresses that stand nowhere else, and a reader may know a page: there only the second counts.
func (a *Argument) unsourced(reader bool) bool {
	return !a.Trusted && !a.Work && a.Form.Names() && (a.Segments == "" && !a.Inside && !reader || a.Composed)
}

// extra: third-party text alone has the value of an argument that the request does not ask for.
func (a *Argument) extra() bool {
	return a.Unplanned && a.data() && !a.Work && !a.Minor && (!a.Inside && !a.Guessed || a.Form.Names())
}

// foreign: the value does what only third-party text asks for, or tells a secret or another server's data.
func (a *Argument) foreign() bool {
	return a.Foreign || a.data() && !a.Work && (a.Leaks || a.Form == counterfactual.FormSecret) && !a.Segments.Meets(a.Named)
}

// elsewhere: the value stands only in segments of another source than the plan names.
func (a *Argument) elsewhere() bool {
	return a.data() && !a.Minor && !a.Work && (a.Named != "" || a.NotRead) && !a.Segments.Meets(a.Named)
}

// maxRivals bounds the questions about rivals of one call.
const maxRivals = 3

// groups are the values that are withheld together, one question each: those that name a
// party first, and with the last question all that are left.
func (f *Facts) groups() [][]int {
	if f.Reader {
		return nil // another page that a search has found is no rival
	}
	var order []int
	for _, names := range []bool{true, false} {
		for i := range f.Arguments {
			if a := &f.Arguments[i]; a.data() && !a.Minor && !a.Work && a.Form.Names() == names {
				order = append(order, i)
			}
		}
	}
	var out [][]int
	for k, i := range order {
		if k < maxRivals {
			out = append(out, []int{i})
		} else {
			out[maxRivals-1] = append(out[maxRivals-1], i)
		}
	}
	return out
}

// Control is the segments whose text chose what the call does: those that hold the party which
// an argument names. Other values may be what a hijack takes from elsewhere. Where no argument
// names a party, they are those that hold the most values.
func (f *Facts) Control() (out counterfactual.Set) {
	for _, inside := range []bool{false, true} {
		for i := range f.Arguments {
			if a := &f.Arguments[i]; a.data() && a.Form.Names() && a.Inside == inside {
				out = out.Union(a.Segments)
			}
		}
		if out != "" {
			return out
		}
		if out = f.most(inside); out != "" {
			return out
		}
	}
	return out
}

// most are the segments that hold the most values of the arguments.
func (f *Facts) most(inside bool) (out counterfactual.Set) {
	holds := map[int]int{}
	best := 0
	for i := range f.Arguments {
		if a := &f.Arguments[i]; a.data() && a.Inside == inside {
			for s := range a.Segments.Places() {
				holds[s]++
				best = max(best, holds[s])
			}
		}
	}
	for s, n := range holds {
		if n == best {
			out = out.Union(counterfactual.SetOf(s))
		}
	}
	return out
}
