// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/listen"
)

// upCmd is the gateway that a team runs.
type upCmd struct {
	Config string `short:"c" placeholder:"FILE" help:"Configuration (default: pellucid.yaml in this directory, or that of your configuration folder; without either, a demonstration)."`
	Listen string `placeholder:"ADDR" help:"Address to listen on, instead of that of the configuration."`
}

func (upCmd) Help() string {
	return `Serves every configured MCP server behind the boundary: each at /mcp/NAME, all of them
as one at /mcp, over streamable HTTP in every revision of the protocol.
docs/spec/config.md describes the file. The gateway reads it again when it changes, and on SIGHUP;
a file with a mistake changes nothing. SIGTERM lets open requests finish; a second SIGTERM does
not. Without a file, a demonstration is served, on 127.0.0.1 only. Exit codes: 0 ended by a
signal, 1 failed, 2 wrong usage, 3 bad configuration, 4 the store cannot be reached.`
}

func (c *upCmd) Validate() error {
	if c.Listen == "" {
		return nil
	}
	return listen.CheckAddress("--listen", c.Listen)
}

func (c *upCmd) Run(e *env) error {
	src, err := c.source()
	if err != nil {
		return err
	}
	b, err := app.OpenGateway(app.GatewayOptions{Listen: c.Listen, Database: e.Getenv("PELLUCID_DB"), References: e.references(), Stderr: e.Stderr, Bind: true}, src)
	if err != nil {
		return err
	}
	defer b.Close()
	ctx, stop := exit.UntilSignal()
	defer stop()
	return b.Serve(ctx, stop)
}

// source is where the configuration comes from.
func (c *upCmd) source() (*app.Source, error) {
	if file := cmp.Or(c.Config, install.ConfigInForce()); file != "" {
		return app.FileSource(file)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("up: find this program: %w", err)
	}
	return app.DemoSource(self, groundingProgram(self)), nil
}

// groundingProgram is the path of pellucid-ground: beside this program, or where the shell finds it; "" where it is not
// installed.
func groundingProgram(self string) string {
	for _, name := range []string{filepath.Join(filepath.Dir(self), "pellucid-ground"), "pellucid-ground"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
