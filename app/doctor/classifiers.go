// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// classifiers says what judges the text of each server. Servers of which the same is to be said share a line.
func (x *examiner) classifiers(cfg *rules.Rules) {
	if cfg == nil {
		return
	}
	var order []string
	servers := map[string][]string{}
	for _, s := range cfg.Servers {
		says := judgedBy(cfg, s)
		if servers[says] == nil {
			order = append(order, says)
		}
		servers[says] = append(servers[says], finding.Quote(s.Name))
	}
	for _, says := range order {
		names := servers[says]
		more := ""
		if len(names) > maxNamed {
			names, more = names[:maxNamed], " and others"
		}
		x.report.add("classify", OK, "%s%s: %s", strings.Join(names, ", "), more, says)
	}
}

// maxNamed bounds the servers that a line names.
const maxNamed = 8

// judgedBy says what judges the text of a server. Single tools may have others.
func judgedBy(cfg *rules.Rules, s *rules.Server) string {
	var parts []string
	for _, name := range s.Tool("").Classifiers {
		parts = append(parts, name+" ("+cfg.Classifiers[name].Mode.String()+")")
	}
	says := "no classifier judges results"
	if len(parts) > 0 {
		says = strings.Join(parts, ", ") + " judge results"
		var also []string
		for _, kind := range gateway.Elsewheres {
			if len(s.Also(kind)) > 0 {
				also = append(also, string(kind))
			}
		}
		if len(also) > 0 {
			says += ", and in shadow mode " + strings.Join(also, ", ")
		}
	}
	return says + "; descriptions: " + s.Admission.Descriptions.String()
}
