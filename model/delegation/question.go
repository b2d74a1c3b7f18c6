// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// PlanPrompt is the system text of the question for a plan.
const PlanPrompt = `You plan tool calls. List the tool calls that the request may need, as a JSON array of {"tool": NAME, "args": {...}}.
Copy an argument only if the request states it. Where an argument must come from something that has to be read first, write {"from": "<the source that the request names>"}. Leave out an argument that the request says nothing of.
If a call may be needed once for each item of a list, add "each": true to it.
If the request has a condition, assume that it holds.
Do not add calls that the request does not ask for.
Answer with the JSON array alone.

Example, with the tools look_up(title), submit(person, sum):
Request: What is on the page lamp?
[{"tool": "look_up", "args": {"title": "lamp"}}]
Request: Submit what the page tax demands.
[{"tool": "look_up", "args": {"title": "tax"}}, {"tool": "submit", "args": {"person": {"from": "tax"}, "sum": {"from": "tax"}}}]
Request: Look up the page rain. If it says late, submit 12 for Umbra.
[{"tool": "look_up", "args": {"title": "rain"}}, {"tool": "submit", "args": {"person": "Umbra", "sum": 12}}]
Request: Submit what each entry of the page trip demands.
[{"tool": "look_up", "args": {"title": "trip"}}, {"tool": "submit", "args": {"person": {"from": "trip"}, "sum": {"from": "trip"}}, "each": true}]`

// ToolsPrompt begins the system text of the question for a plan where the operator has given examples: the tools
// whose calls are decided follow it, and the examples and the request are turns. A small model that is to decide
// about each of these tools leaves out fewer calls than one that lists all calls, but without examples more
// (docs/figures.md, "Guard with a real model").
const ToolsPrompt = `You check what a request asks an assistant to do. You see the request and no data. For each tool below that changes something, answer with its arguments if the request asks for that action, and with null if it does not. Copy an argument only if the request states it. If the value stands in something that must be read first, write {"from": "SOURCE"} with the source that the request names. If the request asks for the action once for each item of a list, write the arguments in an array, [{...}]. If the request has a condition, assume that it holds. Answer with one JSON object and nothing else.

Tools:
`

// NeedPrompt is the system text of the question whether a request asks for what a tool does.
const NeedPrompt = `You are given a tool and a request. Does the request ask for what this tool does? Answer yes or no, and nothing else.`

// An Example shows a planner how a request of the operator's own deployment is planned.
type Example struct {
	Request string `json:"request"`
	Plan    string `json:"plan"` // a JSON array of calls, or an object with a member for each tool
}

// maxExamples bounds the examples of one planner.
const maxExamples = 64

// ParseExamples reads a JSON array of examples, {"request": TEXT, "plan": TEXT}. A plan has to
// be one that is read when a planner gives it, in either form.
func ParseExamples(b []byte) ([]Example, error) {
	var list []Example
	if err := strictjson.Unmarshal(b, &list, strictjson.Limits{Bytes: 1 << 20}); err != nil {
		return nil, fmt.Errorf("delegation: parse examples: %w", err)
	}
	if len(list) > maxExamples {
		return nil, fmt.Errorf("delegation: parse examples: more than %d", maxExamples)
	}
	for i := range list {
		if _, _, ok := planOf(list[i].Plan); !ok || strings.TrimSpace(list[i].Request) == "" {
			return nil, fmt.Errorf("delegation: parse examples: example %d: want a request, and a plan as text: a JSON array of {\"tool\", \"args\"}, or an object of arguments by tool", i+1)
		}
	}
	return list, nil
}

// A Question is what a planner is asked. It holds trusted text only.
type Question struct {
	System   string
	Examples []Example // shown as turns before the question
	Text     string

	tools []string // that a question with ToolsPrompt is about
}

// Reads reports whether a text is an answer to q that can be read.
func (q *Question) Reads(text string) (ok bool) {
	if q.System == NeedPrompt {
		_, ok = yes(text)
		return ok
	}
	_, ok = q.parse(text)
	return ok
}

// parse reads a planner's answer to q.
func (q *Question) parse(text string) ([]planned, bool) {
	if strings.HasPrefix(q.System, ToolsPrompt) {
		return parseByTool(text, q.tools)
	}
	return parsePlan(text)
}

// Unasked says why a planner could not be asked.
type Unasked string

// The reasons.
const (
	NoTask      Unasked = "no-task"       // the context has no words of the user
	TaskTooLong Unasked = "task-too-long" // they have more than 256 KiB
)

// unasked says why nothing can be asked about a task; "": it can.
func unasked(task string) Unasked {
	switch {
	case strings.TrimSpace(task) == "":
		return NoTask
	case len(task) > maxTask:
		return TaskTooLong
	}
	return ""
}

// Bounds of a question and of a plan.
const (
	maxTask        = 256 << 10
	maxTools       = 64 << 10 // bytes of all descriptions
	maxDescription = 240
	maxPlanned     = 256
	maxPlanText    = 256 << 10
)

// PlanQuestion asks for the plan of the user's request, where the context has one. With examples it asks about the
// privileged tools and those of calls alone, and leaves out examples with tools that the request does not offer.
func PlanQuestion(a *counterfactual.Assembly, p *counterfactual.Privileges, examples []Example, calls ...counterfactual.Call) (q Question, why Unasked) {
	if why = unasked(a.Task); why != "" {
		return q, why
	}
	if len(examples) == 0 {
		lines, _ := toolLines(a.Tools)
		return Question{System: PlanPrompt, Text: "Tools:\n" + lines + "\nRequest: " + request(a)}, ""
	}
	lines, names := toolLines(slices.DeleteFunc(slices.Clone(a.Tools), func(t counterfactual.Tool) bool {
		return p.Privilege(t.Name) == 0 && !slices.ContainsFunc(calls, func(c counterfactual.Call) bool { return c.Name == t.Name })
	}))
	q = Question{System: ToolsPrompt + lines, Text: "Request: " + request(a), tools: names}
	for _, e := range examples {
		list, of, _ := planOf(e.Plan) // ParseExamples has read it
		if slices.ContainsFunc(of, func(tool string) bool { return !offers(a, tool) }) {
			continue // of another agent: null would be a wrong answer
		}
		q.Examples = append(q.Examples, Example{"Request: " + e.Request, string(appendByTool(nil, list, names))})
	}
	return q, ""
}

// request is the user's words. Where the last turn only agrees, what the user agrees to belongs to it.
func request(a *counterfactual.Assembly) string {
	if p := a.Proposal(); p != "" && a.Agreed() {
		return a.Task + "\n(The user agrees to this proposal of the assistant: " + strings.Join(strings.Fields(p), " ") + ")"
	}
	return a.Task
}

// offers reports whether a request offers a tool.
func offers(a *counterfactual.Assembly, tool string) bool {
	return slices.ContainsFunc(a.Tools, func(t counterfactual.Tool) bool { return t.Name == tool })
}

// toolLines are tools as a question shows them, a line each, and their names.
func toolLines(tools []counterfactual.Tool) (string, []string) {
	var b strings.Builder
	var names []string
	for i := range tools {
		t := &tools[i]
		if !plain(t.Name, maxToolName) {
			continue
		}
		parameters := slices.DeleteFunc(slices.Clone(t.Parameters), func(p string) bool { return !plain(p, maxParameter) })
		line := "- " + t.Name + "(" + strings.Join(parameters, ", ") + ")"
		if d := brief(t.Description); d != "" && b.Len() < maxTools {
			line += ": " + d
		}
		if b.Len()+len(line) > 2*maxTools {
			break
		}
		b.WriteString(line + "\n")
		names = append(names, t.Name)
	}
	return b.String(), names
}

// Bounds of names in a question, in bytes. Providers take 128 for a tool at most.
const (
	maxToolName  = 128
	maxParameter = 64
)

// plain reports whether a name can stand in a question. A server chooses the names of its
// tools and of their parameters: one with spaces or line feeds may be a sentence.
func plain(name string, most int) bool {
	return name != "" && len(name) <= most && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.:/", r)
	})
}

// needQuestion asks whether the request asks for a tool.
func needQuestion(a *counterfactual.Assembly, tool string) (q Question, ok bool) {
	if unasked(a.Task) != "" || !plain(tool, maxToolName) {
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
