// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/hook"
	"github.com/pellucid-mcp/pellucid/boundary/hook/socket"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/logs"
)

// hookCmd answers one event of a host.
type hookCmd struct {
	Host   string `arg:"" enum:",claude-code,codex,gemini-cli,opencode" default:"" help:"The host: claude-code, codex, gemini-cli, opencode."`
	Config string `short:"c" placeholder:"FILE" help:"Configuration (default: pellucid.yaml in your configuration folder, if it exists). The member servers.HOST counts here."`
	Serve  string `placeholder:"NAME" help:"Answer the events of every host that pellucid-hook sends to a socket of that name, until none has come for ten minutes. pellucid-hook starts this."`
}

func (hookCmd) Help() string {
	return `Reads an event on standard input and writes the answer in the host's own form. The output of a tool is
scrubbed, framed, held and recorded as the result of an MCP server with the name of the host; control tokens that were
defused are restored in the arguments of the agent's calls. An unknown event is answered with {}. The host always goes
on: if the event cannot be decided, the answer says why, and the host shows that to you. pellucid-hook HOST does the
same in a tenth of the time. Exit code: 0, or 2 for wrong usage.`
}

func (c *hookCmd) Run(e *env) error {
	o := app.HookOptions{Config: c.Config, References: e.references(), Database: e.Getenv("PELLUCID_DB"), Log: func(r *rules.Rules) *slog.Logger {
		return logs.New(e.Stderr, r.Telemetry.LogJSON, r.Telemetry.LogLevel)
	}}
	ctx, stop := exit.UntilSignal()
	defer stop()
	switch {
	case (c.Serve == "") == (c.Host == ""), c.Serve != "" && filepath.Base(c.Serve) != c.Serve:
		return exit.With(exit.Usage, errors.New("hook: want the name of a host, or --serve and the name of a socket"))
	case c.Serve != "":
		return app.ServeHooks(ctx, c.Serve, o)
	}
	event, err := io.ReadAll(io.LimitReader(e.Stdin, socket.MaxEvent+1))
	if err != nil {
		return exit.With(exit.Failed, fmt.Errorf("hook: %w", err))
	}
	var answer []byte
	if h, err := app.OpenHook(c.Host, o); err != nil {
		fmt.Fprintln(e.Stderr, "pellucid: "+err.Error())
		answer = hook.Unchecked(err.Error())
	} else {
		defer h.Close()
		answer = h.Answer(ctx, event)
	}
	_, err = e.Stdout.Write(append(answer, '\n'))
	return err
}
