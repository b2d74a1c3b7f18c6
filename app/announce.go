// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// announce tells a person what there is now, and what to do with it.
func (b *Gateway) announce(addr string) {
	w, r := b.opt.Stderr, b.rules.Load()
	base := "http://" + addr
	if r.PublicURL != "" {
		base = r.PublicURL
	}
	if b.src.path == "" {
		fmt.Fprint(w, "No "+install.ConfigName+" here, so this is a demonstration: a server whose tools return poisoned\n"+
			"and honest text, behind the boundary; one that hides text in the description of a tool, which is withheld;\n"+
			"and "+b.src.third+".\n")
	} else {
		fmt.Fprintf(w, "Rules of %s.\n", finding.Quote(b.src.path))
	}
	fmt.Fprintf(w, "Serving streamable HTTP, of every revision, at %s:\n", addr)
	for _, s := range r.Servers {
		fmt.Fprintf(w, "  %s/mcp/%s\n", base, s.Name)
	}
	fmt.Fprintf(w, "  %s/mcp   all of them as one, under the names PREFIX_NAME\n", base)
	if r.Telemetry.Metrics {
		fmt.Fprintf(w, "  %s/metrics\n", base)
	}
	if b.records != nil {
		fmt.Fprintf(w, "  %s/log/checkpoint   the record of what was decided, as tiles\n", base)
	}
	fmt.Fprintf(w, "  %s/v1/scrub, /v1/result   for hosts that carry results themselves\n", base)
	if r.Console != nil {
		fmt.Fprintf(w, "  %s/console/   the console", base)
		if r.Console.Links {
			fmt.Fprint(w, "; pellucid console --link --url "+base+b.flag+" signs you in")
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "  %s/servers   how each server does\n", base)
	fmt.Fprintf(w, "  %s/healthz, /readyz\n", base)
	if r.Auth.Set() {
		fmt.Fprint(w, "Clients need a bearer token.\n")
	}
	if b.src.path == "" {
		fmt.Fprintf(w, "  look   npx @modelcontextprotocol/inspector --cli %s/mcp --transport http \\\n"+
			"           --method tools/call --tool-name demo_read_ticket\n"+
			"  next   write a %s (docs/gateway.md), or run `pellucid protect` for your desktop clients\n", base, install.ConfigName)
	}
	fmt.Fprint(w, "  end    Ctrl-C\n")
}
