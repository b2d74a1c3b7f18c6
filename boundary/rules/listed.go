// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"maps"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/policy/expr"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A ListedRule is a rule of the policy as a person reads it.
type ListedRule struct {
	expr.Rule
	Preset string // that it comes from; "": the configuration itself
}

// Listed are the rules of the policy: those of the preset first.
func (p *Policy) Listed() (out []ListedRule) {
	if p == nil {
		return nil
	}
	for _, r := range p.source.inherits {
		out = append(out, ListedRule{r, p.source.preset})
	}
	for _, r := range p.source.own {
		out = append(out, ListedRule{r, ""})
	}
	for i := range out {
		out[i].Audit = out[i].Audit || p.source.audit
	}
	return out
}

// A Holding says for which codes the results of a tool are held.
type Holding struct {
	Server string
	Tool   string // name or pattern; "": every other tool
	Codes  []finding.Code
}

// Holdings are those of all servers, where there are any.
func (r *Rules) Holdings() (out []Holding) {
	for _, s := range r.Servers {
		if len(s.base.Rule.Hold) > 0 {
			out = append(out, Holding{s.Name, "", s.base.Rule.Hold})
		}
		for _, tool := range slices.Sorted(maps.Keys(s.toolKeys)) {
			if codes := s.toolKeys[tool].hold; !slices.Equal(codes, s.base.Rule.Hold) {
				out = append(out, Holding{s.Name, tool, codes})
			}
		}
	}
	return out
}

// A ListedException is an exception as a person reads it.
type ListedException struct {
	Server, Tool string // Tool "": every tool
	Code         finding.Code
	Until        time.Time
	Why          string // the operator's words
}

// ListedExceptions are the exceptions of the configuration.
func (r *Rules) ListedExceptions() (out []ListedException) {
	for _, e := range r.Exceptions {
		out = append(out, ListedException{e.server, e.tool, e.code, e.until, e.why})
	}
	return out
}
