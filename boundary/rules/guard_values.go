// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"maps"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/policy/expr"
	"github.com/pellucid-mcp/pellucid/boundary/policy/values"
	"github.com/pellucid-mcp/pellucid/model/delegation"
)

// guardLists are files of values, by name.
func guardLists(g *Guard) value {
	return value{
		read: func(c *compiler, p place) {
			g.Lists = map[string]string{}
			c.names(p, values.MaxLists, expr.IsRuleName, func(name string, _, val place) {
				g.Lists[name] = ""
				if s := c.text(val, maxText); s != "" {
					g.Lists[name] = c.opt.locate(strings.TrimPrefix(s, "file:"))
				}
			})
		},
		write: func(d *dumper, name string) {
			head, inside := d.open(name)
			for _, list := range slices.Sorted(maps.Keys(g.Lists)) {
				d.word(quoted(list), quoted(g.Lists[list]))
			}
			d.close(head, inside)
		},
		kind:   "object of at most 64: a name, and PATH or `file:PATH`",
		schema: schema{"type": "object", "maxProperties": values.MaxLists, "additionalProperties": schema{"type": "string", "minLength": 1}},
	}
}

// guardValues are the rules about the values of calls. Their conditions are compiled here for
// what is wrong with them; the lists are read when the guard starts.
func guardValues(g *Guard) value {
	var at []place
	return objects(&g.Values, values.MaxRules, valueRuleMembers, func(_ *compiler, p place, _ *values.Rule) { at = append(at, p) }).
		then(func(c *compiler, p place) {
			lists := map[string][]string{}
			for name := range g.Lists {
				lists[name] = nil
			}
			if _, err := values.Compile(values.Source{Rules: g.Values, Lists: lists}); err != nil {
				c.inRules(p, at, err.(expr.Problems))
			}
		})
}

func valueRuleMembers(r *values.Rule) []member {
	return []member{
		{"name", needed, text(&r.Name, 64), "names the rule in records"},
		{"tool", live, checked(&r.Tool, "*", "the name of a tool, where * stands for any characters", isToolKey), "the tools that it is about"},
		{"when", needed, text(&r.When, 4*expr.MaxExpression), "an expression in CEL"},
		{"then", needed, word(&r.Then, "", responseWords, delegation.Responses), "what is done with the call"},
		{"verdicts", live, list(&r.Verdicts, nil, len(delegation.Verdicts), orList(verdictWords), func(s string) bool { return slices.Contains(verdictWords, s) }),
			"the verdicts that a rule with `then: pass` or `mark` is for; default: `delegated`"},
	}
}

// wordsOf are the words of an enumeration.
func wordsOf[T ~string](values []T) (out []string) {
	for _, v := range values {
		out = append(out, string(v))
	}
	return out
}

var (
	responseWords = wordsOf(delegation.Responses)
	verdictWords  = wordsOf(delegation.Verdicts)
	taskWords     = []string{"user-turns", "declared", "both"}
)
