// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/policy/expr"
	"github.com/pellucid-mcp/pellucid/boundary/protect"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

type protectCmd struct {
	Client   string   `enum:",${clients}" default:"" placeholder:"NAME" help:"Change only the files of this client: ${listed}."`
	File     string   `xor:"what" placeholder:"FILE" help:"Change this file, of any client, instead of the files that are found."`
	DryRun   bool     `help:"Show the changes, with secrets masked, and make none."`
	Undo     bool     `help:"Restore the files."`
	Force    bool     `help:"With --undo: also restore entries that were edited since; those edits are lost."`
	Skip     []string `sep:"none" placeholder:"SERVER" help:"Do not change the server of this name; may be repeated."`
	Ask      bool     `name:"ask-remotes" help:"Send one request to each remote server whose entry has no credential, to find out whether it wants a login. Without this flag such a server is not changed, unless it is on this machine."`
	Hooks    bool     `help:"Also put the output of the host's own tools behind the boundary, by its hooks: Claude Code, Codex, Gemini CLI, opencode."`
	Profile  string   `enum:",faithful,mcp" default:"" placeholder:"NAME" help:"Profile by which wrap scrubs: faithful or mcp."`
	Evidence string   `enum:",off,best-effort,required" default:"" placeholder:"MODE" help:"Signed records that wrap writes: off, best-effort or required."`
	Hold     []string `placeholder:"CODE,…" help:"Findings for which wrap holds a result for review; none takes away those of an earlier run."`
	Policy   string   `placeholder:"PRESET|FILE" help:"Policy by which wrap decides: observe, standard, strict, or that of a configuration; none takes away that of an earlier run."`
	JSON     bool     `name:"json" help:"Print what was done as JSON."`
}

func (protectCmd) Help() string {
	return `Rewrites the configuration of MCP clients so that every server is started through
"pellucid wrap": in the user's own files, and in those of the project in the
working directory. Nothing else in a file changes, values of variables and headers
stay where they stand, and what each entry was is kept in the state directory for
--undo. A second run updates the entries of the first; flags of wrap that it does not
name stay as they are. A remote server that wants a login (OAuth) is left alone.
Restart the client afterwards. Exit codes: 0 done, or nothing to do; 1 failed, a
file has changed so that --undo would lose work, or it was never changed by Pellucid and
--undo --file names it; 2 wrong usage; 3 a file is not a
configuration that can be edited.`
}

func (c *protectCmd) Validate() error {
	switch {
	case c.Client != "" && c.File != "":
		return errors.New("--client and --file exclude each other")
	case c.Hooks && c.File != "":
		return errors.New("--hooks is for the hosts' own files, not for --file")
	case c.Force && !c.Undo:
		return errors.New("--force is for --undo")
	case c.Undo && (len(c.Skip) > 0 || c.Ask || c.Profile != "" || c.Evidence != "" || len(c.Hold) > 0 || c.Policy != ""):
		return errors.New("--undo takes no flag beside --client, --file, --dry-run, --force and --json")
	}
	return nil
}

// flags is what each entry is to tell wrap. wrap itself would refuse a mistake when the client
// starts it, where it would be hard to find.
func (c *protectCmd) flags() (protect.Flags, error) {
	f := protect.Flags{Profile: c.Profile, Evidence: c.Evidence, Hold: strings.Join(c.Hold, ","), Policy: c.Policy}
	w := wrapCmd{Name: "server", Policy: c.Policy}
	if f.Policy == protect.Without {
		w.Policy = ""
	}
	if f.Hold != "" && f.Hold != protect.Without {
		w.Set = []string{"hold=" + f.Hold}
	}
	policy, err := w.policy()
	if err != nil {
		return f, exit.With(exit.Config, err)
	}
	if _, _, err := rules.LoadOne("", rules.Options{}, rules.One{Name: w.Name, Command: []string{w.Name}, Settings: w.settings(), Policy: policy}); err != nil {
		return f, exit.With(exit.Usage, errors.New(strings.ReplaceAll(w.refused("", err).Error(), "wrap: --set hold", "protect: --hold")))
	}
	if w.Policy != "" && !slices.Contains(expr.Presets, w.Policy) { // a client starts wrap elsewhere
		path, err := filepath.Abs(w.Policy)
		if err != nil {
			return f, fmt.Errorf("protect: --policy: %w", err)
		}
		f.Policy = path
	}
	return f, nil
}

func (c *protectCmd) Run(e *env) error {
	opt, err := install.ProtectOptions(c.Skip, c.Force)
	if err != nil {
		return err
	}
	if opt.Flags, err = c.flags(); err != nil {
		return err
	}
	files, err := c.targets(e)
	if err != nil {
		return err
	}
	if name := opt.Unknown(files); name != "" { // it would be put behind the boundary under the name that it has
		return exit.With(exit.Usage, fmt.Errorf("protect: --skip: no server is called %s: nothing was changed", finding.Quote(name)))
	}
	if c.Ask {
		ctx, stop := exit.UntilSignal()
		defer stop()
		opt = opt.AskRemotes(ctx, files)
	}
	if !c.DryRun && !c.Undo {
		if err := install.KeepCopy(opt); err != nil {
			return err
		}
	}
	if _, err := e.readConfiguration(""); err != nil && !c.Undo {
		fmt.Fprintln(e.Stderr, "pellucid: protect: your configuration has a mistake, and the servers that it concerns will not start: "+err.Error())
	}
	report, failed := opt.Run(files, protect.Job{DryRun: c.DryRun, Undo: c.Undo})
	var hooked error
	if report.Hooks, report.Bare, hooked = c.writeHooks(e, opt); hooked != nil {
		failed = errors.Join(failed, hooked)
	}
	if len(report.Files)+len(report.Hooks) == 0 && !c.Undo {
		failed = errors.New("protect: no client's configuration was found: name it with --file")
	}
	if err := e.answer("protect", c.JSON, report, report.Write); err != nil {
		return err
	}
	if errors.Is(failed, protect.ErrFormat) {
		return exit.With(exit.Config, failed)
	}
	return failed
}

// writeHooks writes the hooks of the hosts, or takes them out.
func (c *protectCmd) writeHooks(e *env, opt protect.Options) (done []protect.HookReport, bare []string, err error) {
	m, err := protect.ThisMachine(e.Getenv)
	if err != nil || c.File != "" {
		return nil, nil, err
	}
	if c.Hooks || c.Undo {
		done, err = opt.Hooks(m, c.Client, protect.Job{DryRun: c.DryRun, Undo: c.Undo})
		return done, nil, err
	}
	return nil, opt.CanHook(m), nil
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
