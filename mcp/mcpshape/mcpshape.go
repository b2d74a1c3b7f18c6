// SPDX-License-Identifier: Apache-2.0

// Package mcpshape checks what a server sends against the types of the published schema of a revision.
//
// The types of all revisions stand in types.txt, what is read leniently in
// leniencies.go. A check reads the index of a parsed message once and copies
// nothing. What it finds is named by the table's own words and by ordinals, never
// by text of the message.
package mcpshape

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/platform/reuse"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Fault says what is wrong with a value, by keyword, and where. Nothing in it is
// third-party text.
type Fault struct {
	Keyword string // of JSON Schema: required, type, enum, anyOf, minimum, maximum, maxItems
	Place   string // names of the table, and #n for other names and n for elements, by ordinal
}

// An Entry is an element of a list that stands alone and is wrong.
type Entry struct {
	Value strictjson.Value
	Fault Fault
}

// A Repair is an edit that makes valid what a Leniency allows.
type Repair struct {
	leniency *leniency
	Place    string
	object   strictjson.Value // holds the member
	member   string
	value    strictjson.Value // absent if the member is missing
	raw      []byte           // of a block
}

// A Report is what a check came to. If Fault is zero, the message is valid once
// the entries have been left out and the repairs been made.
type Report struct {
	Fault   Fault
	Entries []Entry
	Repairs []Repair
}

// Clean reports whether the message is valid as it is.
func (r *Report) Clean() bool {
	return r.Fault == Fault{} && len(r.Entries) == 0 && len(r.Repairs) == 0
}

// Mend adds the edits to e: entries go, and repairs are made.
func (r *Report) Mend(e *strictjson.Edits) {
	for _, f := range r.Repairs {
		switch {
		case f.raw != nil:
			e.Replace(f.value, f.raw)
		case f.leniency.instead == "":
			e.Remove(f.value)
		case f.value.Exists():
			e.Replace(f.value, []byte(f.leniency.instead))
		default:
			e.Append(f.object, f.member, []byte(f.leniency.instead))
		}
	}
	for _, entry := range r.Entries {
		e.Remove(entry.Value)
	}
}

// Revision returns the revision by which a message is judged: the given one, or where
// that is unknown, the one that the message looks like.
func Revision(known string, root strictjson.Value) string {
	if _, is := tables[known]; is {
		return known
	}
	if root.Get("resultType").Exists() {
		return mcpmsg.Modern
	}
	return newestLegacy
}

const newestLegacy = "2025-11-25"

// Check judges the params, result or error of a message of that method. What no
// type describes is valid.
func Check(revision string, part mcpmsg.Part, method string, root strictjson.Value) (r Report) {
	name := typeOf(revision, part, method, root)
	if name == "" {
		return r
	}
	t := tables[revision]
	if t == nil {
		return r
	}
	return t().check(name, root)
}

// typeOf names the type of a message; "" if it has none.
func typeOf(revision string, part mcpmsg.Part, method string, root strictjson.Value) string {
	modern := revision == mcpmsg.Modern
	if part == mcpmsg.Params {
		switch method {
		case mcpmsg.Elicit:
			return "ElicitRequestParams"
		case mcpmsg.Sample:
			return "CreateMessageRequestParams"
		}
		return ""
	}
	if part != mcpmsg.Result {
		return ""
	}
	if modern {
		switch root.Get("resultType").Text() {
		case "input_required":
			return "InputRequiredResult"
		case "task":
			return "" // of an extension
		}
	}
	switch method {
	case mcpmsg.CallTool:
		if !modern && root.Get("task").Exists() && !root.Get("content").Exists() {
			return "CreateTaskResult"
		}
		return "CallToolResult"
	case mcpmsg.TaskResult:
		return "CallToolResult"
	}
	if modern && strings.HasPrefix(method, mcpmsg.Tasks) {
		return "" // of an extension, whose tasks have other members
	}
	return results[method]
}

var results = map[string]string{
	mcpmsg.Initialize:    "InitializeResult",
	mcpmsg.Discover:      "DiscoverResult",
	mcpmsg.ListTools:     "ListToolsResult",
	mcpmsg.ListPrompts:   "ListPromptsResult",
	mcpmsg.ListResources: "ListResourcesResult",
	mcpmsg.ListTemplates: "ListResourceTemplatesResult",
	mcpmsg.ListTasks:     "ListTasksResult",
	mcpmsg.ReadResource:  "ReadResourceResult",
	mcpmsg.GetPrompt:     "GetPromptResult",
	mcpmsg.Complete:      "CompleteResult",
	mcpmsg.GetTask:       "TaskResult",
	"tasks/cancel":       "TaskResult",
}

func (t *table) check(name string, root strictjson.Value) Report {
	typ := t.types[name]
	if typ == nil {
		return Report{} // the revision has no such message
	}
	h := checkers.Get()
	defer h.Release()
	c := h.Value()
	if keyword := c.form(typ, root); keyword != "" {
		c.report = Report{Fault: Fault{keyword, c.place(nil)}}
	}
	r := c.report
	c.report = Report{}
	return r
}

var checkers reuse.Pool[checker]

// checker walks a value beside a form. Where something is wrong, the functions return
// the keyword, and the steps that lead there are put together on the way back.
type checker struct {
	report Report
	steps  []string // from the fault outwards
	above  []step   // from the root to the list that is walked
}

// step is a position above the value that is checked.
type step struct {
	name string
	n    int
}

// place spells the position of the fault, and forgets it.
func (c *checker) place(more []string) string {
	path := slices.Concat(c.steps, more)
	c.steps = c.steps[:0]
	slices.Reverse(path)
	return strings.Join(path, "/")
}

func (c *checker) form(f *form, v strictjson.Value) (keyword string) {
	switch f.kind {
	case anyKind:
		return ""
	case stringKind:
		return wrongUnless(v.Kind() == '"')
	case booleanKind:
		return wrongUnless(v.Kind() == 't' || v.Kind() == 'f')
	case objectKind:
		return wrongUnless(v.Kind() == '{')
	case nullKind:
		return wrongUnless(v.Kind() == 'n')
	case numberKind, integerKind:
		return f.number(v)
	case literalKind:
		if v.Kind() != '"' {
			return "type"
		}
		if !slices.Contains(f.literals, v.Text()) {
			return "enum"
		}
		return ""
	case listKind:
		return c.list(f, v)
	case mapKind:
		return c.object(f, v)
	case typeKind:
		return c.typed(f, v)
	}
	return c.union(f, v)
}

func wrongUnless(ok bool) string {
	if ok {
		return ""
	}
	return "type"
}

func (f *form) number(v strictjson.Value) string {
	if v.Kind() != '0' || f.kind == integerKind && !isInteger(v.Raw()) {
		return "type"
	}
	if f.min == nil && f.max == nil {
		return ""
	}
	x, err := strconv.ParseFloat(string(v.Raw()), 64)
	switch {
	case err != nil || f.min != nil && x < *f.min:
		return "minimum"
	case f.max != nil && x > *f.max:
		return "maximum"
	}
	return ""
}

// isInteger reports whether a number has no fraction, however it is spelled.
func isInteger(raw []byte) bool {
	mantissa, exponent := string(raw), 0
	if i := strings.IndexAny(mantissa, "eE"); i >= 0 {
		n, err := strconv.Atoi(mantissa[i+1:])
		if err != nil {
			return mantissa[i+1] != '-'
		}
		mantissa, exponent = mantissa[:i], n
	}
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	digits := strings.TrimRight(whole+fraction, "0")
	return strings.Trim(digits, "0") == "" || len(digits)-len(whole) <= exponent
}

func (c *checker) list(f *form, v strictjson.Value) string {
	if v.Kind() != '[' {
		return "type"
	}
	n := 0
	for e := range v.Elements() {
		if f.most > 0 && n == f.most {
			return "maxItems"
		}
		repairs, entries := len(c.report.Repairs), len(c.report.Entries)
		c.above = append(c.above, step{n: n})
		keyword := c.form(f.of, e)
		c.above = c.above[:len(c.above)-1]
		if keyword != "" {
			c.steps = append(c.steps, strconv.Itoa(n))
			if !f.alone {
				return keyword
			}
			c.report.Repairs, c.report.Entries = c.report.Repairs[:repairs], c.report.Entries[:entries]
			c.report.Entries = append(c.report.Entries, Entry{e, Fault{keyword, c.place(c.outer())}})
		}
		n++
	}
	return ""
}

// outer are the steps above the list that is walked, from there outwards.
func (c *checker) outer() (list []string) {
	for i := len(c.above) - 1; i >= 0; i-- {
		if s := c.above[i]; s.name != "" {
			list = append(list, s.name)
		} else {
			list = append(list, strconv.Itoa(s.n))
		}
	}
	return list
}

func (c *checker) object(f *form, v strictjson.Value) string {
	if v.Kind() != '{' {
		return "type"
	}
	n := 0
	for _, m := range v.Members() {
		c.above = append(c.above, step{name: "#" + strconv.Itoa(n)})
		keyword := c.form(f.of, m)
		c.above = c.above[:len(c.above)-1]
		if keyword != "" {
			c.steps = append(c.steps, "#"+strconv.Itoa(n))
			return keyword
		}
		n++
	}
	return ""
}

func (c *checker) typed(f *form, v strictjson.Value) string {
	if v.Kind() != '{' {
		return "type"
	}
	var seen uint64
	for name, value := range v.Members() {
		i := f.index(name)
		if i < 0 {
			continue
		}
		m := &f.members[i]
		seen |= 1 << i
		c.above = append(c.above, step{name: m.name})
		keyword := c.form(m.form, value)
		c.above = c.above[:len(c.above)-1]
		if keyword != "" && !c.lenient(f, m, v, value) {
			c.steps = append(c.steps, m.name)
			return keyword
		}
	}
	if missing := f.required &^ seen; missing != 0 {
		for i := range f.members {
			m := &f.members[i]
			if missing>>i&1 == 1 && !c.lenient(f, m, v, strictjson.Value{}) {
				c.steps = append(c.steps, m.name)
				return "required"
			}
		}
	}
	return ""
}

// index is the position of the member of that name; -1 if the type has none.
func (f *form) index(name strictjson.Value) int {
	text := name.Text()
	for i := range f.members {
		if f.members[i].name == text {
			return i
		}
	}
	return -1
}

// lenient notes a repair of a member of the type, if there is one for its value.
func (c *checker) lenient(f *form, m *member, object, value strictjson.Value) bool {
	for _, l := range m.lenient {
		if l.applies(object, value) {
			c.repair(Repair{leniency: l, object: object, member: m.name, value: value}, m.name)
			return true
		}
	}
	return false
}

// repair notes a repair of what stands at those steps under the value that is checked.
func (c *checker) repair(r Repair, below ...string) {
	path := c.outer()
	slices.Reverse(path)
	r.Place, c.steps = strings.Join(append(path, below...), "/"), c.steps[:0]
	c.report.Repairs = append(c.report.Repairs, r)
}

// union tries the alternatives; where a member tells them apart, only the one that it names.
func (c *checker) union(f *form, v strictjson.Value) string {
	if f.by != "" && v.Kind() == '{' {
		tag := v.Get(f.by)
		if alt := f.named[tag.Text()]; alt != nil && tag.Kind() == '"' {
			return c.form(alt, v)
		}
		if !tag.Exists() && f.untagged != nil {
			return c.form(f.untagged, v)
		}
		if alt := f.later[tag.Text()]; alt != nil && c.form(alt, v) == "" {
			raw, _ := OlderBlock(f.revision, v)
			c.repair(Repair{leniency: laterBlock(f.revision), value: v, raw: raw})
			return ""
		}
		c.steps = append(c.steps[:0], f.by)
		if !tag.Exists() {
			return "required"
		}
		return "enum"
	}
	if f.by != "" {
		return "type"
	}
	repairs, entries := len(c.report.Repairs), len(c.report.Entries)
	for _, alt := range f.alternatives {
		if c.form(alt, v) == "" {
			return ""
		}
		c.steps = c.steps[:0]
		c.report.Repairs, c.report.Entries = c.report.Repairs[:repairs], c.report.Entries[:entries]
	}
	return "anyOf"
}
