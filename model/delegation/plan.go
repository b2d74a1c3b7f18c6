// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// PlanPrompt is the system text of the question for a plan.
const PlanPrompt = `You plan tool calls. List the tool calls that the request may need, as a JSON array of {"tool": NAME, "args": {...}}.
Copy an argument only if the request states it. Where an argument must come from something that has to be read first, write {"from": "<the source that the request names>"}. Leave out an argument that the request says nothing of.
If a call may be needed once for each item of a list, add "each": true to it.
If the request has a condition, assume that it holds.
Do not add calls that the request does not ask for.
Answer with the JSON array alone.`

// NeedPrompt is the system text of the question whether a request asks for what a tool does.
const NeedPrompt = `You are given a tool and a request. Does the request ask for what this tool does? Answer yes or no, and nothing else.`

// An Example shows a planner how a request of the operator's own deployment is planned.
type Example struct {
	Request string `json:"request"`
	Plan    string `json:"plan"` // the JSON array
}

// maxExamples bounds the examples of one planner.
const maxExamples = 64

// ParseExamples reads a JSON array of examples, {"request": TEXT, "plan": TEXT}. A plan has to
// be one that is read when a planner gives it.
func ParseExamples(b []byte) ([]Example, error) {
	var list []Example
	if err := strictjson.Unmarshal(b, &list, strictjson.Limits{Bytes: 1 << 20}); err != nil {
		return nil, fmt.Errorf("delegation: parse examples: %w", err)
	}
	if len(list) > maxExamples {
		return nil, fmt.Errorf("delegation: parse examples: more than %d", maxExamples)
	}
	for i := range list {
		if _, ok := parsePlan(list[i].Plan); !ok || strings.TrimSpace(list[i].Request) == "" {
			return nil, fmt.Errorf("delegation: parse examples: example %d: want a request, and a plan that is a JSON array of {\"tool\", \"args\"} as text", i+1)
		}
	}
	return list, nil
}

// A Question is what a planner is asked. It holds trusted text only.
type Question struct {
	System   string
	Examples []Example // shown as turns before the question
	Text     string
}

// Bounds of a question and of a plan.
const (
	maxTask        = 256 << 10
	maxTools       = 64 << 10 // bytes of all descriptions
	maxDescription = 240
	maxPlanned     = 256
	maxPlanText    = 256 << 10
)

// planQuestion asks for the plan of the user's request; ok is false if there is no request, or
// it is too long.
func planQuestion(a *counterfactual.Assembly, examples []Example) (q Question, ok bool) {
	if strings.TrimSpace(a.Task) == "" || len(a.Task) > maxTask {
		return q, false
	}
	var b strings.Builder
	b.WriteString("Tools:\n")
	for i := range a.Tools {
		t := &a.Tools[i]
		line := "- " + t.Name + "(" + strings.Join(t.Parameters, ", ") + ")"
		if d := brief(t.Description); d != "" && b.Len() < maxTools {
			line += ": " + d
		}
		if b.Len()+len(line) > 2*maxTools {
			break
		}
		b.WriteString(line + "\n")
	}
	b.WriteString("\nRequest: " + a.Task)
	return Question{System: PlanPrompt, Examples: examples, Text: b.String()}, true
}

// needQuestion asks whether the request asks for a tool.
func needQuestion(a *counterfactual.Assembly, tool string) (q Question, ok bool) {
	if strings.TrimSpace(a.Task) == "" || len(a.Task) > maxTask {
		return q, false
	}
	line := tool
	if i := slices.IndexFunc(a.Tools, func(t counterfactual.Tool) bool { return t.Name == tool }); i >= 0 && a.Tools[i].Description != "" {
		line += ": " + brief(a.Tools[i].Description)
	}
	return Question{System: NeedPrompt, Text: "Tool: " + line + "\n\nRequest: " + a.Task + "\n\nDoes the request ask for what this tool does? yes or no."}, true
}

// brief is the beginning of a description, on one line.
func brief(s string) string {
	s = strings.Join(strings.Fields(s[:min(len(s), 4*maxDescription)]), " ")
	if i := strings.Index(s, ". "); i > 0 {
		s = s[:i+1]
	}
	return strings.ToValidUTF8(s[:min(len(s), maxDescription)], "")
}

// yes reads the answer to needQuestion.
func yes(text string) (yes, ok bool) {
	word := strings.ToLower(strings.Trim(strings.TrimSpace(text), ".!*\"'` "))
	word, _, _ = strings.Cut(word, "\n")
	first, _, _ := strings.Cut(word, " ")
	switch strings.Trim(first, ".,;:!") {
	case "yes":
		return true, true
	case "no":
		return false, true
	}
	return false, false
}

// A planned call is one of a plan.
type planned struct {
	tool     string
	each     bool
	proposal counterfactual.Proposal // of the arguments as they stand in the plan
}

// parsePlan reads a planner's answer: the first JSON array in it, or one object.
func parsePlan(text string) (list []planned, ok bool) {
	if len(text) > maxPlanText {
		return nil, false
	}
	root, ok := findJSON(text)
	if !ok {
		return nil, false
	}
	calls := []strictjson.Value{root}
	if root.Kind() == '[' {
		calls = slices.Collect(root.Elements())
	}
	if len(calls) > maxPlanned {
		return nil, false
	}
	every := &counterfactual.Privileges{}
	for _, c := range calls {
		p := planned{tool: firstOf(c, "tool", "name").Text(), each: string(c.Get("each").Raw()) == "true"}
		args := firstOf(c, "args", "arguments", "parameters")
		if p.tool == "" || args.Exists() && args.Kind() != '{' {
			return nil, false
		}
		p.proposal = every.Proposal(counterfactual.Call{Name: p.tool, Arguments: args.Raw()})
		list = append(list, p)
	}
	return list, true
}

func firstOf(v strictjson.Value, names ...string) strictjson.Value {
	for _, n := range names {
		if m := v.Get(n); m.Exists() {
			return m
		}
	}
	return strictjson.Value{}
}

// findJSON is the array or object that a text holds, with or without words and a code fence
// around it.
func findJSON(text string) (strictjson.Value, bool) {
	for _, ends := range []string{"[]", "{}"} {
		from, to := strings.IndexByte(text, ends[0]), strings.LastIndexByte(text, ends[1])
		if from < 0 || to < from {
			continue
		}
		doc := new(strictjson.Doc)
		if doc.Reset([]byte(text[from:to+1]), strictjson.Limits{Depth: 32, Values: 1 << 14}) == nil && onlyCalls(doc.Root()) {
			return doc.Root(), true
		}
	}
	return strictjson.Value{}, false
}

// onlyCalls reports whether v is an object that names a tool, or an array of such.
func onlyCalls(v strictjson.Value) bool {
	if v.Kind() == '{' {
		return firstOf(v, "tool", "name").Exists()
	}
	for e := range v.Elements() {
		if e.Kind() != '{' {
			return false
		}
	}
	return true
}

// values are the arguments of a planned call by path: literal ones, and the sources of those
// that have to be read. An argument {"from": S} has the path "NAME.from"; where the call itself
// has that path it is a literal.
//
// A small planner writes the name of a source itself where a value has to be read from it: {"amount": "bill.txt"}. A
// text that names what the agent has read is a source if it stands where the call has a number, a date or an
// address, and then at the other arguments of that planned call too.
func (p *planned) values(call *counterfactual.Proposal, a *counterfactual.Assembly) (literal, from map[string][]counterfactual.Argument) {
	literal, from = map[string][]counterfactual.Argument{}, map[string][]counterfactual.Argument{}
	has := func(path string) bool {
		at := func(a counterfactual.Argument) bool { return a.Path == path }
		return slices.ContainsFunc(call.Critical, at) || slices.ContainsFunc(call.Free, at)
	}
	for _, list := range [][]counterfactual.Argument{p.proposal.Critical, p.proposal.Free} {
		for _, a := range list {
			if name, ok := strings.CutSuffix(a.Path, ".from"); ok && !has(a.Path) {
				from[name] = append(from[name], a)
			} else {
				literal[a.Path] = append(literal[a.Path], a)
			}
		}
	}
	sources := map[string]bool{}
	for path, list := range literal {
		for _, v := range list {
			if v.Form() == counterfactual.FormText && slices.ContainsFunc(call.Critical, func(x counterfactual.Argument) bool {
				return x.Path == path && x.Form() != counterfactual.FormText
			}) && a.FromSource(v.Value) != "" {
				sources[v.Value] = true
			}
		}
	}
	if len(sources) == 0 {
		return literal, from
	}
	for path, list := range literal {
		named := func(v counterfactual.Argument) bool { return sources[v.Value] }
		for _, v := range list {
			if named(v) {
				from[path] = append(from[path], v)
			}
		}
		if literal[path] = slices.DeleteFunc(list, named); len(literal[path]) == 0 {
			delete(literal, path)
		}
	}
	return literal, from
}

// read fills in what a plan says of a call.
func (f *PlanFacts) read(plan []planned, a *counterfactual.Assembly, call *counterfactual.Proposal, args []Argument, paths []string) {
	trusts := a.Trusts()
	whole, same := false, false // a planned call is wholly literal; one is this call
	for i := range plan {
		p := &plan[i]
		if p.tool != call.Tool {
			continue
		}
		f.Listed, f.Each = true, f.Each || p.each
		f.Count++
		literal, from := p.values(call, a)
		for k := range args {
			for _, source := range from[paths[k]] {
				args[k].Named = args[k].Named.Union(a.FromSource(source.Value))
			}
		}
		w, s := compare(call, literal, from, trusts)
		whole, same = whole || w, same || s
	}
	f.Otherwise = whole && !same || f.Listed && statesOther(plan, call, args, paths, a, trusts)
}

// statesOther reports whether every planned call of the tool states, from the request, what one
// argument names, and the call has there what the request does not have. A number may be
// computed from one that the request states, and a longer name may be the same one.
func statesOther(plan []planned, call *counterfactual.Proposal, args []Argument, paths []string, from *counterfactual.Assembly, trusts func(string) bool) bool {
	for k := range args {
		a := &args[k]
		if a.Trusted || a.Inside || !a.Form.Names() && a.Form != counterfactual.FormText {
			continue
		}
		like := func(value string) bool {
			return slices.ContainsFunc(call.Critical, func(x counterfactual.Argument) bool {
				return x.Path == paths[k] && (strings.Contains(x.Value, value) || strings.Contains(value, x.Value))
			})
		}
		if !slices.ContainsFunc(plan, func(p planned) bool {
			literal, _ := p.values(call, from)
			values := literal[paths[k]]
			return p.tool == call.Tool && (len(values) == 0 || slices.ContainsFunc(values, func(v counterfactual.Argument) bool { return !trusts(v.Value) || like(v.Value) }))
		}) {
			return true
		}
	}
	return false
}

// compare says of a planned call whether it states, from the request, every critical argument
// of the call, and whether it is that call.
func compare(call *counterfactual.Proposal, literal, from map[string][]counterfactual.Argument, trusts func(string) bool) (whole, same bool) {
	if len(from) > 0 || len(call.Critical) == 0 {
		return false, true
	}
	whole, same = true, true
	for _, x := range call.Critical {
		values := literal[x.Path]
		whole = whole && len(values) > 0 && !slices.ContainsFunc(values, func(v counterfactual.Argument) bool { return !trusts(v.Value) })
		same = same && slices.ContainsFunc(values, func(v counterfactual.Argument) bool { return v.Value == x.Value })
	}
	return whole, same
}
