// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Trial is what a configuration says about holding: its policy, the codes of hold and the exceptions.
// It is tried on what was recorded before it is in force.
type Trial struct {
	Policy *Policy // nil: the file has none

	hold       []finding.Code
	servers    map[string]*trialServer
	exceptions []exception
}

type trialServer struct {
	hold  []finding.Code
	tools table[[]finding.Code]
}

// LoadTrial reads the file of a configuration, of which nothing else is read. It may be a whole one, or
// only policy, defaults.hold, servers.NAME.hold, servers.NAME.tools.TOOL.hold and exceptions. The errors are those of Load.
func LoadTrial(path string) (*Trial, error) {
	src, err := Options{}.orSystem().ReadFile(path)
	if err != nil {
		return nil, unread(path, err)
	}
	t, err := ParseTrial(src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", finding.Quote(path), err)
	}
	return t, nil
}

// ParseTrial is LoadTrial of a file that was read. The error is Problems, all of them.
func ParseTrial(src []byte) (*Trial, error) {
	if len(src) > maxFile {
		return nil, fmt.Errorf("longer than %d bytes", maxFile)
	}
	c := onlyPolicy(src, Options{}.orSystem())
	t := &Trial{Policy: c.out.Policy, servers: map[string]*trialServer{}}
	root, problems := parseYAML(src)
	if problems != nil {
		return nil, problems
	}
	at := place{node: root}
	if at.kind != isObject {
		c.wrongKind(at, "an object")
		return nil, c.problems.sorted()
	}
	said := c.out.Policy != nil
	holds := func(p place, v *[]finding.Code) {
		if p.node != nil && p.kind != isNull {
			codes(v).read(c, p)
			said = true
		}
	}
	holds(at.at("defaults").orEmpty().at("hold"), &t.hold)
	servers := at.at("servers").orEmpty()
	for i, name := range servers.names {
		s := &trialServer{hold: t.hold}
		p := place{servers.elements[i], servers.path + "." + name.text}
		if p.kind != isObject || !isName(name.text) {
			continue
		}
		holds(p.at("hold"), &s.hold)
		tools, of := p.at("tools").orEmpty(), map[string][]finding.Code{}
		for j, tool := range tools.names {
			list := s.hold
			if p := (place{tools.elements[j], tools.path + "." + tool.text}); p.kind == isObject {
				holds(p.at("hold"), &list)
				of[tool.text] = list
			}
		}
		s.tools = newTable(of)
		t.servers[name.text] = s
		c.out.byName[name.text] = &Server{Name: name.text}
	}
	if p := at.at("exceptions"); p.node != nil {
		objects(&t.exceptions, maxExceptions, func(e *exception) []member { return e.members(c.out) }, nil).read(c, p)
		said = true
	}
	switch {
	case len(c.problems) > 0:
		return nil, c.problems.sorted()
	case !said:
		c.report(at, "there is neither policy, nor hold, nor exceptions")
		return nil, c.problems.sorted()
	}
	return t, nil
}

// orEmpty is an object without members where there is none.
func (p place) orEmpty() place {
	if p.node == nil || p.kind != isObject {
		return place{&node{}, p.path}
	}
	return p
}

// Hold returns the first of the codes that were found in a result for which it would be held; "" if
// none is. An exception counts, whenever it ends.
func (t *Trial) Hold(server, tool string, found []finding.Code) finding.Code {
	list := t.hold
	if s := t.servers[server]; s != nil {
		list = s.hold
		if of, ok := s.tools.find(tool); ok {
			list = of
		}
	}
	for _, code := range found {
		excepted := func(e exception) bool {
			return e.server == server && (e.tool == "" || e.tool == tool) && e.code == code
		}
		if slices.Contains(list, code) && !slices.ContainsFunc(t.exceptions, excepted) {
			return code
		}
	}
	return ""
}
