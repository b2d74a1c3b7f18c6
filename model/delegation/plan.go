// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"bytes"
	"iter"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A planned call is one of a plan.
type planned struct {
	tool     string
	args     []byte // the JSON object; nil: none
	each     bool
	proposal counterfactual.Proposal // of the arguments as they stand in the plan
}

// parsePlan reads a planner's answer: the first JSON array of calls in it, or the first call.
// Words, a model's thoughts and a code fence may stand around it. An empty array is a plan
// only in a text without an object: elsewhere it may be the list in an argument.
func parsePlan(text string) (list []planned, ok bool) {
	empty := false
	text = withoutThoughts(text)
	for n, v := range values(text) {
		if list, ok = callsIn(v, n == 0); ok && len(list) > 0 {
			return list, true
		}
		empty = empty || ok
	}
	return nil, empty && !strings.Contains(text, "{")
}

// parseByTool reads the answer to a question that begins with ToolsPrompt: the first JSON object in it, which has
// nothing but arguments, an array of arguments, or null for each of tools. An answer in the form of
// PlanPrompt is read too.
func parseByTool(text string, tools []string) ([]planned, bool) {
	for _, v := range values(withoutThoughts(text)) {
		if v.Kind() == '{' {
			if list, ok := callsByTool(v, tools); ok {
				return list, true
			}
			break
		}
	}
	return parsePlan(text)
}

// planOf reads the plan of an example, in either form, and the names of the tools that stand in it.
func planOf(text string) (list []planned, tools []string, ok bool) {
	if list, ok = parsePlan(text); ok {
		for _, p := range list {
			tools = append(tools, p.tool)
		}
		return list, tools, true
	}
	for _, v := range values(text) {
		if list, ok = callsByTool(v, nil); ok {
			for name := range v.Members() {
				tools = append(tools, name.Text())
			}
			return list, tools, true
		}
	}
	return nil, nil, false
}

// withoutThoughts is a planner's answer behind its thoughts; "" where they do not end, or the answer is too long.
func withoutThoughts(text string) string {
	if len(text) > maxPlanText {
		return ""
	}
	if i := strings.LastIndex(text, endOfThoughts); i >= 0 {
		return text[i+len(endOfThoughts):]
	}
	if strings.HasPrefix(strings.TrimSpace(text), "\u003cthink>") {
		return ""
	}
	return text
}

// values are the JSON arrays and objects of a text, each with the number of brackets and braces before it.
func values(text string) iter.Seq2[int, strictjson.Value] {
	return func(yield func(int, strictjson.Value) bool) {
		for at, n := 0, 0; n < maxStarts; n++ {
			i := strings.IndexAny(text[at:], "[{")
			if i < 0 {
				return
			}
			at += i
			if v, found := jsonAt(text[at:]); found && !yield(n, v) {
				return
			}
			at++
		}
	}
}

const endOfThoughts = "\u003c/think>"

// maxStarts bounds the places of a planner's answer where a plan may begin.
const maxStarts = 32

// jsonAt is the array or object with which a text begins.
func jsonAt(text string) (strictjson.Value, bool) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth > 0 {
				continue
			}
			doc := new(strictjson.Doc)
			err := doc.Reset([]byte(text[:i+1]), strictjson.Limits{Depth: 32, Values: 1 << 14})
			return doc.Root(), err == nil
		}
	}
	return strictjson.Value{}, false
}

// callsIn reads an array of calls, or one call. What stands within other text that begins
// like JSON may be an argument of a call: there a call is one that says "tool", or has arguments.
func callsIn(root strictjson.Value, first bool) (list []planned, ok bool) {
	calls := []strictjson.Value{root}
	if root.Kind() == '[' {
		calls = slices.Collect(root.Elements())
	}
	if len(calls) > maxPlanned {
		return nil, false
	}
	for _, c := range calls {
		tool, args := firstOf(c, "tool", "name").Text(), firstOf(c, "args", "arguments", "parameters")
		switch {
		case c.Kind() != '{' || tool == "" || args.Exists() && args.Kind() != '{' && args.Kind() != 'n':
			return nil, false
		case !first && !args.Exists() && !c.Get("tool").Exists():
			return nil, false
		}
		list = append(list, newPlanned(tool, args, string(c.Get("each").Raw()) == "true"))
	}
	return list, true
}

// callsByTool reads an object with a member for each tool: its arguments; an array of one object for a call that is
// made for each item of a list, or of one object for each call; null.
func callsByTool(root strictjson.Value, tools []string) (list []planned, ok bool) {
	for name, v := range root.Members() {
		tool := name.Text()
		switch v.Kind() {
		case 'n':
		case '{':
			list = append(list, newPlanned(tool, v, false))
		case '[':
			calls := slices.Collect(v.Elements())
			for _, c := range calls {
				if c.Kind() != '{' || len(list) == maxPlanned {
					return nil, false
				}
				list = append(list, newPlanned(tool, c, len(calls) == 1))
			}
		default:
			return nil, false
		}
		if tool == "" || tools != nil && !slices.Contains(tools, offeredName(tool, tools)) || len(list) > maxPlanned {
			return nil, false
		}
	}
	return list, true
}

func newPlanned(tool string, args strictjson.Value, each bool) planned {
	p := planned{tool: tool, each: each}
	if args.Kind() == '{' {
		p.args = args.Raw()
	}
	every := &counterfactual.Privileges{}
	p.proposal = every.Proposal(counterfactual.Call{Name: tool, Arguments: p.args})
	return p
}

// appendByTool writes a plan as the answer to a question about tools.
func appendByTool(b []byte, list []planned, tools []string) []byte {
	b = append(b, '{')
	for i, tool := range tools {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(strictjson.AppendQuote(b, tool), ": "...)
		var calls [][]byte
		each := false
		for _, p := range list {
			if p.tool == tool {
				args := p.args
				if args == nil {
					args = []byte("{}")
				}
				calls, each = append(calls, args), each || p.each
			}
		}
		switch {
		case len(calls) == 0:
			b = append(b, "null"...)
		case len(calls) == 1 && !each:
			b = append(b, calls[0]...)
		default:
			b = append(append(append(b, '['), bytes.Join(calls, []byte(", "))...), ']')
		}
	}
	return append(b, '}')
}

// namespaces are what some models write before the name of a tool.
var namespaces = []string{"functions.", "default_api.", "tools."}

// named gives each planned call the name of a tool that the request offers, where a namespace
// before it is all that differs.
func named(list []planned, tools []counterfactual.Tool) {
	offered := make([]string, len(tools))
	for i := range tools {
		offered[i] = tools[i].Name
	}
	for i := range list {
		list[i].tool = offeredName(list[i].tool, offered)
	}
}

// offeredName is the name of an offered tool, where a namespace before it is all that differs; else name.
func offeredName(name string, offered []string) string {
	if slices.Contains(offered, name) {
		return name
	}
	for _, n := range namespaces {
		if bare, ok := strings.CutPrefix(name, n); ok && slices.Contains(offered, bare) {
			return bare
		}
	}
	return name
}

func firstOf(v strictjson.Value, names ...string) strictjson.Value {
	for _, n := range names {
		if m := v.Get(n); m.Exists() {
			return m
		}
	}
	return strictjson.Value{}
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
func (w *deciding) read(f *PlanFacts, plan []planned, does *work) {
	a, call, args, paths := w.p.Assembly, &w.proposal, w.facts.Arguments, w.paths
	is, trusts := comparison{a}, a.Trusts()
	whole, same := false, false // a planned call is wholly literal; one is this call
	w.literal = map[string][]string{}
	has := map[string]bool{} // the arguments of planned calls
	for i := range plan {
		p := &plan[i]
		if p.tool != call.Tool {
			continue
		}
		f.Listed, f.Each = true, f.Each || p.each
		f.Count++
		literal, from := p.values(call, a)
		for path, values := range literal {
			has[path] = true
			for _, v := range values {
				w.literal[path] = append(w.literal[path], v.Value)
			}
		}
		for path := range from {
			has[path] = true
		}
		for k := range args {
			for _, source := range from[paths[k]] {
				of := a.FromSource
				if args[k].Form == counterfactual.FormSecret || w.facts.Reader {
					of = a.NamedSource // a text may name the file, or the page, that it wants
				}
				named := of(source.Value)
				args[k].Named = args[k].Named.Union(named)
				args[k].NotRead = args[k].NotRead || named == "" && isPlace(source.Value) && trusts(source.Value) && !a.AskedFor(source.Value)
			}
		}
		whole1, same1 := compare(call, literal, from, trusts, is)
		whole, same = whole || whole1, same || same1
	}
	f.Confirmed = !f.Listed && a.Confirmed(call.Tool)
	done := does.judge(w.call, func(at, value string) bool {
		return slices.ContainsFunc(w.literal[at], func(v string) bool { return bare(v) == strings.ToLower(value) })
	})
	for k := range args {
		x := &args[k]
		x.Unplanned = !x.Trusted && !planHas(has, paths[k]) && !w.recorded(k) && (!f.Confirmed || !speaksOf(a.Proposal(), w.origins[k]))
		x.Work = done.work[paths[k]] && x.Form != counterfactual.FormSecret || done.own != "" && x.Inside && x.Segments.Meets(done.own)
		x.Foreign = done.foreign[paths[k]]
	}
	f.Otherwise = whole && !same || f.Listed && w.statesOther(plan, trusts, is)
}

// isPlace reports whether a canonical value is a file or a page.
func isPlace(s string) bool {
	form := formOf(s)
	return form == counterfactual.FormURL || form == counterfactual.FormText && !isName(s)
}

// changing are words of names of tools that write a record anew, with what it already has.
var changing = []string{"update", "edit", "modify", "reschedule", "change", "set", "adjust", "amend", "replace", "put"}

// recorded reports whether a call changes a record, and the value stands beside the id of the record where that was read.
func (w *deciding) recorded(k int) bool {
	if !named1(w.call.Name, changing...) {
		return false
	}
	return slices.ContainsFunc(w.proposal.Critical, func(x counterfactual.Argument) bool {
		_, leaf, _ := strings.Cut("."+x.Path, ".")
		return x.Path != w.paths[k] && slices.Contains(counterfactual.Words(leaf), "id") && w.p.Assembly.HoldBeside(w.origins[k].Value(), x.Value)
	})
}

// planHas reports whether a plan has an argument, or an object that holds it, or members of it.
func planHas(has map[string]bool, path string) bool {
	for p := range has {
		if p == path || strings.HasPrefix(path, p+".") || strings.HasPrefix(p, path+".") {
			return true
		}
	}
	return false
}

// speaksOf reports whether a proposal of the agent that the user has agreed to names a value.
func speaksOf(proposal string, o counterfactual.Origin) bool {
	in := counterfactual.Words(proposal)
	return slices.ContainsFunc(wordsOf(o.Value()), func(w string) bool {
		return len(w) > 2 && !strings.Contains(generic, " "+w+" ") && slices.Contains(in, w)
	})
}

// statesOther reports whether every planned call of the tool states, from the request, another value of an argument than the
// call has there. A number, date or time that no third party wrote may be computed from the one that the request states.
func (w *deciding) statesOther(plan []planned, trusts func(string) bool, is comparison) bool {
	for k := range w.facts.Arguments {
		a := &w.facts.Arguments[k]
		value := w.origins[k].Value()
		if a.Trusted || a.Inside || a.Work && a.Segments == "" || !a.Form.Names() && a.Form != counterfactual.FormText && !a.data() {
			continue
		}
		if !slices.ContainsFunc(plan, func(p planned) bool {
			literal, _ := p.values(&w.proposal, w.p.Assembly)
			values := literal[w.paths[k]]
			return p.tool == w.proposal.Tool && (len(values) == 0 || slices.ContainsFunc(values, func(v counterfactual.Argument) bool {
				return !trusts(v.Value) || is.same(v.Value, value) || !is.comparable(v.Value, value)
			}))
		}) {
			return true
		}
	}
	return false
}

// compare says of a planned call whether it states, from the request, every critical argument
// of the call, and whether it is that call.
func compare(call *counterfactual.Proposal, literal, from map[string][]counterfactual.Argument, trusts func(string) bool, is comparison) (whole, same bool) {
	if len(from) > 0 || len(call.Critical) == 0 {
		return false, true
	}
	whole, same = true, true
	for _, x := range call.Critical {
		values := literal[x.Path]
		whole = whole && len(values) > 0 && !slices.ContainsFunc(values, func(v counterfactual.Argument) bool { return !trusts(v.Value) })
		same = same && slices.ContainsFunc(values, func(v counterfactual.Argument) bool {
			return is.same(v.Value, x.Value) || !is.comparable(v.Value, x.Value)
		})
	}
	return whole, same
}
