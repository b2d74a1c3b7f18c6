// SPDX-License-Identifier: Apache-2.0

package console

import (
	"github.com/pellucid-mcp/pellucid/app/console/marked"
	decide "github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/record/hold"
)

var policyRoutes = []route{
	{pattern: "GET policy", least: Viewer, handle: (*Console).policyPage, rail: entry{70, "Policy", "policy", "p"}},
}

type policyView struct {
	Known      bool // the rules in force
	Version    Own
	Rules      []ruleView
	Holds      []holdView
	Exceptions []exceptionView
}

func (policyView) template() string { return "policy" }

type ruleView struct {
	Name       marked.Name
	On, Then   Own
	When       marked.Text
	Unless     marked.Text
	HasUnless  bool
	From       marked.Name
	FromPreset bool
	Audit      bool
}

type holdView struct {
	Server, Tool marked.Name
	AllTools     bool
	Codes        []Own
}

type exceptionView struct {
	Server, Tool marked.Name
	AllTools     bool
	Code, Until  Own
	Why          marked.Text
	By           *marked.Name // the reviewer who granted it; nil: it stands in the configuration
	This         bool         // for one result only
}

// policyPage shows the rules in force, and where each came from.
func (c *Console) policyPage(q *request) answer {
	v := c.policyOf(q)
	if c.opt.Exceptions != nil {
		list, err := c.opt.Exceptions.List(q.Context(), false)
		if err != nil {
			return failed(err)
		}
		for i := range list {
			if e := &list[i]; q.who.Sees(e.Server) && c.opt.Exceptions.Counts(e, q.now) {
				by := marked.Identifier(e.By)
				v.Exceptions = append(v.Exceptions, exceptionView{Server: marked.Identifier(e.Server), Tool: marked.Identifier(e.Tool), AllTools: e.Tool == "",
					Code: codeName(e.Code), Until: minute(e.Until), Why: marked.Of(e.Why), By: &by, This: e.Digest != hold.Digest{}})
			}
		}
	}
	return page("Policy", v)
}

// policyOf is the page without the exceptions of reviewers.
func (c *Console) policyOf(q *request) policyView {
	var v policyView
	if c.opt.Rules == nil {
		return v
	}
	r := c.opt.Rules()
	if r == nil {
		return v
	}
	v.Known, v.Version = true, own(r.Version())
	for _, x := range r.Policy.Listed() {
		v.Rules = append(v.Rules, ruleView{Name: marked.Identifier(x.Name), On: direction(x.On), Then: own(x.Then.String()), When: marked.Of(x.When),
			Unless: marked.Of(x.Unless), HasUnless: x.Unless != "", From: marked.Identifier(x.Preset), FromPreset: x.Preset != "", Audit: x.Audit})
	}
	for _, h := range r.Holdings() {
		if !q.who.Sees(h.Server) {
			continue
		}
		x := holdView{Server: marked.Identifier(h.Server), Tool: marked.Identifier(h.Tool), AllTools: h.Tool == ""}
		for _, code := range h.Codes {
			x.Codes = append(x.Codes, codeName(code))
		}
		v.Holds = append(v.Holds, x)
	}
	for _, e := range r.ListedExceptions() {
		if q.who.Sees(e.Server) {
			v.Exceptions = append(v.Exceptions, exceptionView{Server: marked.Identifier(e.Server), Tool: marked.Identifier(e.Tool), AllTools: e.Tool == "",
				Code: codeName(e.Code), Until: minute(e.Until), Why: marked.Of(e.Why)})
		}
	}
	return v
}

func direction(d decide.Direction) Own {
	if d == decide.Call {
		return "call"
	}
	return "result"
}
