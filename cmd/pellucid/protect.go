// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/protect"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

type protectCmd struct {
	Client string   `enum:",claude-desktop,claude-code,cursor,vscode,windsurf,zed,opencode" default:"" placeholder:"NAME" help:"Only the files of this client: claude-desktop, claude-code, cursor, vscode, windsurf or zed."`
	File   string   `xor:"what" completion:"files" placeholder:"FILE" help:"This file, of whatever client, instead of those that are found."`
	DryRun bool     `help:"Show what would be done, secrets masked, and do nothing."`
	Undo   bool     `help:"Restore what the files were."`
	Force  bool     `help:"With --undo: restore also what was edited since, which is lost then."`
	Skip   []string `sep:"none" placeholder:"SERVER" help:"Leave the server of this name alone; may be repeated."`
	JSON   bool     `name:"json" help:"Print what was done as JSON."`
}

func (protectCmd) Help() string {
	return `Rewrites the configuration of MCP clients so that every server is started through
"pellucid wrap": in the user's own files, and in those of the project in the
working directory. Nothing else in a file changes, values of variables and headers
stay where they stand, and what each entry was is kept in the state directory for
--undo. A server that the client logs in to by itself (OAuth) cannot be reached
through wrap: name it with --skip. Restart the client afterwards. Exit codes: 0 done,
or nothing to do; 1 failed, or a file has changed so that --undo would lose work; 2
wrong usage; 3 a file is not a configuration that can be edited.`
}

// Validate is called by kong; its error is one of usage.
func (c *protectCmd) Validate() error {
	switch {
	case c.Client == "opencode":
		return fmt.Errorf("--client opencode: %w", protect.ErrOpenCode)
	case c.Client != "" && c.File != "":
		return errors.New("--client and --file exclude each other")
	case c.Force && !c.Undo:
		return errors.New("--force is for --undo")
	case c.Undo && len(c.Skip) > 0:
		return errors.New("--skip is not for --undo")
	}
	return nil
}

func (c *protectCmd) Run(e *env) error {
	opt, err := install.ProtectOptions(c.Skip, c.Force)
	if err != nil {
		return err
	}
	files, err := c.targets(e)
	if err != nil {
		return err
	}
	if name := opt.Unknown(files); name != "" { // it would be put behind the boundary under the name that it has
		return exit.With(exit.Usage, fmt.Errorf("protect: --skip: no server is called %s: nothing was changed", finding.Quote(name)))
	}
	report, failed := opt.Run(files, protect.Job{DryRun: c.DryRun, Undo: c.Undo})
	if len(report.Files) == 0 {
		failed = errors.New("protect: " + c.nothing())
	}
	if err := e.answer("protect", c.JSON, report, report.Write); err != nil {
		return err
	}
	if errors.Is(failed, protect.ErrFormat) {
		return exit.With(exit.Config, failed)
	}
	return failed
}

func (c *protectCmd) nothing() string {
	if c.Undo {
		return "nothing to undo: no file that was found has been changed by pellucid"
	}
	return "no client's configuration was found: name it with --file"
}

func (c *protectCmd) targets(e *env) ([]protect.Target, error) {
	if c.File != "" {
		return []protect.Target{{Path: c.File, Format: protect.Generic}}, nil
	}
	m, err := protect.ThisMachine(e.Getenv)
	if err != nil {
		return nil, err
	}
	return protect.Locate(m, c.Client), nil
}
