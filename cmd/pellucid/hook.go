// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/hook"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/logs"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// hookCmd answers one event of a host.
type hookCmd struct {
	Host   string `arg:"" enum:"claude-code,codex,gemini-cli,opencode" help:"The host: ${enum}."`
	Config string `short:"c" placeholder:"FILE" help:"Configuration (default: pellucid.yaml in your configuration folder, if it exists). The member servers.HOST counts here."`
}

func (hookCmd) Help() string {
	return `Reads an event on standard input and writes the answer in the host's own form. The output of a tool is
scrubbed, framed, held and recorded as the result of an MCP server with the name of the host; control tokens that were
defused are restored in the arguments of the agent's calls. An unknown event is answered with {}. The host always goes
on: if the event cannot be decided, the answer says why, and the host shows that to you. Exit code: 0, or 2 for wrong
usage.`
}

func (c *hookCmd) Run(e *env) error {
	event, err := io.ReadAll(io.LimitReader(e.Stdin, hook.MaxEvent+1))
	if err != nil {
		return exit.With(exit.Failed, fmt.Errorf("hook: %w", err))
	}
	answer, err := c.answer(e, event)
	if err != nil {
		fmt.Fprintln(e.Stderr, "pellucid: "+err.Error())
		answer = hook.Unchecked(err.Error())
	}
	_, err = e.Stdout.Write(append(answer, '\n'))
	return err
}

func (c *hookCmd) answer(e *env, event []byte) ([]byte, error) {
	host, found := hook.HostOf(c.Host)
	if !found {
		return nil, fmt.Errorf("hook: %s has no hooks", finding.Quote(c.Host))
	}
	r, elsewhere, err := rules.LoadOne(cmp.Or(c.Config, install.ConfigFile()), e.references(), rules.One{Name: host.Name, Command: []string{host.Name}})
	if err != nil {
		return nil, err
	}
	log := logs.New(e.Stderr, r.Telemetry.LogJSON, r.Telemetry.LogLevel)
	if len(elsewhere) > 0 {
		log.Warn("the configuration has mistakes that do not concern this host: pellucid doctor lists them", "first", elsewhere[0].String())
	}
	h, err := app.OpenHook(r, host, install.Database(cmp.Or(r.Store.Path, r.Store.URL.Reveal(), e.Getenv("PELLUCID_DB"))), log)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	ctx, stop := exit.UntilSignal()
	defer stop()
	return h.Answer(ctx, event), nil
}
