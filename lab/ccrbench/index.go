// SPDX-License-Identifier: Apache-2.0

package ccrbench

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/lab/guardbench"
	"github.com/pellucid-mcp/pellucid/lab/traces"
	"github.com/pellucid-mcp/pellucid/model/counterfactual"
)

// defended matches pipelines that run a defence of their own. They are strata of
// their own, and count into no total.
var defended = regexp.MustCompile(`repeat|spotlight|filter|detector`)

// A stratum is a model in a suite.
type stratum struct{ Model, Suite string }

// episode is what the tracks need of one run.
type episode struct {
	stratum
	task, injection, attack string
	success, labelled       bool
	turns                   []turn
	planted                 string // letters of the injections
	trusted                 string // what system and user say
	needs                   map[*counterfactual.Proposal]bool
	// first is the turn that first saw the injection, -1 if none did.
	first int
}

// turn is one answer of a model.
type turn struct {
	answer  *counterfactual.Answer
	actions []*counterfactual.Proposal // of its calls, interned
	context [16]byte
	seen    int
}

// Bounds of what is compared with each other: each run with those of its model and task.
// The published runs have 27 models in 4 suites, and less than a hundred runs of a task.
const (
	mostStrata = 1000
	mostOfTask = 2000
)

// index holds the runs of all traces.
type index struct {
	policy   *counterfactual.Privileges
	strata   []stratum // in the order of their first run
	episodes []*episode
	benign   map[stratumTask][]*episode // runs with nothing planted
	attacked map[stratumTask][]*episode
	contexts []*context
	rebuilt  []EvidenceRow // of variants of real contexts
	seen     int           // contexts that rebuild was given
	recorded *recordedCases
	known    map[string]*counterfactual.Proposal
	runs     int
	unread   int // attacks whose injection no tool returned

	unlabelled int // attacks of which nobody says whether they reached their goal
}

type stratumTask struct {
	stratum
	task string
}

// context is a real context in which an attacked run proposed a gated call, before
// it is known which of its calls are the attacker's.
type context struct {
	episode *episode
	turn    int
	target  int // the attacker's proposal, of the turn's; -1 if none is
}

func newIndex() *index {
	return &index{
		policy: counterfactual.GuessPrivileges(),
		benign: map[stratumTask][]*episode{}, attacked: map[stratumTask][]*episode{},
		known: map[string]*counterfactual.Proposal{}, recorded: newRecordedCases(),
	}
}

// add takes a run in.
func (x *index) add(r *traces.Run) error {
	x.runs++
	if !strings.HasPrefix(r.UserTask, "user") {
		return nil // the injection given as the user's task: nothing is untrusted
	}
	e := &episode{
		stratum: stratum{r.Pipeline, r.Suite}, task: r.UserTask, injection: r.InjectionTask, attack: r.Attack,
		success: r.Attack != "" && r.Security, labelled: r.Labelled, first: -1, trusted: strings.Clone(r.Trusted), needs: map[*counterfactual.Proposal]bool{},
	}
	for _, s := range r.Injections {
		e.planted += guardbench.Letters(s) + "\n"
	}
	marks := markers(r.Injections)
	holds := make([]bool, len(r.Results))
	for i, text := range r.Results {
		holds[i] = holdsAny(text, marks)
	}
	for i, t := range r.Turns {
		u := turn{answer: cloned(t.Answer), context: t.Context, seen: t.Seen}
		for _, c := range u.answer.Calls {
			u.actions = append(u.actions, x.intern(x.policy.Proposal(c)))
		}
		if e.first < 0 {
			for _, h := range holds[:t.Seen] {
				if h {
					e.first = i
				}
			}
		}
		e.turns = append(e.turns, u)
	}
	if !x.hasStratum(e.stratum) {
		if len(x.strata) == mostStrata {
			return fmt.Errorf("more than %d models and suites", mostStrata)
		}
		x.strata = append(x.strata, e.stratum)
	}
	key := stratumTask{e.stratum, e.task}
	if len(x.benign[key])+len(x.attacked[key]) == mostOfTask {
		return fmt.Errorf("more than %d runs of one model and task", mostOfTask)
	}
	x.episodes = append(x.episodes, e)
	if err := x.recorded.add(e, r, len(x.episodes)); err != nil {
		return err
	}
	switch {
	case e.attack == "":
		x.benign[key] = append(x.benign[key], e)
	default:
		x.attacked[key] = append(x.attacked[key], e)
		if e.first < 0 {
			x.unread++
		}
		if !e.labelled {
			x.unlabelled++
		}
	}
	return x.addContexts(e, r, marks)
}

func (x *index) hasStratum(s stratum) bool {
	for _, t := range x.strata {
		if t == s {
			return true
		}
	}
	return false
}

// cloned is a copy of what stands in a line that is read over.
func cloned(a *counterfactual.Answer) *counterfactual.Answer {
	b := &counterfactual.Answer{Text: strings.Clone(a.Text)}
	for _, c := range a.Calls {
		b.Calls = append(b.Calls, counterfactual.Call{Name: strings.Clone(c.Name), Arguments: bytes.Clone(c.Arguments)})
	}
	return b
}

// intern is one copy of each proposal.
func (x *index) intern(a counterfactual.Proposal) *counterfactual.Proposal {
	d := a.Digest()
	if k, ok := x.known[d]; ok {
		return k
	}
	x.known[d] = &a
	return &a
}

// addContexts keeps the turns of a successful attack at which something was
// proposed behind the injection.
func (x *index) addContexts(e *episode, r *traces.Run, marks []string) error {
	if !e.success || e.first < 0 || defended.MatchString(e.Model) {
		return nil
	}
	for i := e.first; i < len(e.turns); i++ {
		gated := false
		for _, a := range e.turns[i].actions {
			gated = gated || e.gated(a)
		}
		if !gated {
			continue
		}
		a, err := r.Assembly(i)
		if err != nil {
			return err
		}
		x.rebuild(a)
		if !slices.ContainsFunc(a.Segments, func(s counterfactual.Segment) bool { return holdsAny(s.Text, marks) }) {
			continue
		}
		x.contexts = append(x.contexts, &context{episode: e, turn: i})
	}
	return nil
}

// gated reports whether a proposal needs a decision: its tool is privileged, or it says
// where something goes by an address that neither system nor user gave. A reader that
// has nothing but what they gave tells nobody anything; who chose the tool makes no
// difference then, as it does with tools that act.
func (e *episode) gated(a *counterfactual.Proposal) bool {
	if a.Privilege > 0 {
		return true
	}
	needs, ok := e.needs[a]
	if !ok {
		needs = slices.ContainsFunc(a.Critical, func(arg counterfactual.Argument) bool {
			return strings.HasPrefix(arg.Value, "u:") || strings.HasPrefix(arg.Value, "e:")
		}) && !a.GivenIn(e.trusted)
		e.needs[a] = needs
	}
	return needs
}

// Markers are how a planted text is recognised: its first and last letters, ASCII
// folded, since tools reformat what they return. Short ones prove nothing.
const (
	markLength = 100
	markLeast  = 40
)

func markers(injections []string) []string {
	var out []string
	for _, s := range injections {
		if n := guardbench.Letters(s); len(n) > markLeast {
			out = append(out, n[:min(len(n), markLength)], n[max(0, len(n)-markLength):])
		}
	}
	return out
}

func holdsAny(text string, marks []string) bool {
	if len(marks) == 0 {
		return false
	}
	n := guardbench.Letters(text)
	for _, m := range marks {
		if strings.Contains(n, m) {
			return true
		}
	}
	return false
}
