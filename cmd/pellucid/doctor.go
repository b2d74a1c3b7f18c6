// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/protect"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/build"
	"github.com/pellucid-mcp/pellucid/platform/listen"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

type doctorCmd struct {
	Config string `short:"c" completion:"files" placeholder:"FILE" help:"Configuration to check (default: pellucid.yaml, if there is one)."`
	storeDB
	JSON bool `name:"json" help:"Print the findings as JSON."`

	found []string // the stores that were looked at
}

func (doctorCmd) Help() string {
	return `Looks at the state directory, the key, the configuration, the store, the port, the
clients' configurations and what servers were lately refused, and changes none of them. Exit codes: 0 nothing is wrong, perhaps
with warnings; 1 something is; 3 the configuration is refused.`
}

// How a check came out.
const (
	isOK     = "ok"
	isWarned = "warning"
	isFailed = "failed"
)

// A doctorCheck is one thing that was looked at.
type doctorCheck struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Says   string `json:"says"`
}

// A doctorReport is what --json prints.
type doctorReport struct {
	OK     bool          `json:"ok"`
	Checks []doctorCheck `json:"checks"`
}

func (r *doctorReport) add(name, status, format string, args ...any) {
	r.Checks = append(r.Checks, doctorCheck{name, status, fmt.Sprintf(format, args...)})
	r.OK = r.OK && status != isFailed
}

// doctorWait bounds what one check may wait for.
const doctorWait = 5 * time.Second

func (c *doctorCmd) Run(e *env) error {
	ctx, stop := exit.UntilSignal()
	defer stop()
	r := &doctorReport{OK: true, Checks: []doctorCheck{}}
	v := build.Read()
	r.add("version", isOK, "%s", v.Version)
	dir := c.state(r)
	cfg, refused := c.config(r, e)
	c.stores(ctx, r, dir, cfg)
	c.sampling(ctx, r, dir)
	c.port(ctx, r, cfg)
	c.clients(r, e, dir)
	err := error(nil)
	if c.JSON {
		err = terminal.WriteJSON(e.Stdout, r)
	} else {
		err = r.write(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv))
	}
	switch {
	case err != nil:
		return fmt.Errorf("doctor: write: %w", err)
	case refused:
		return exit.With(exit.Config, nil)
	case !r.OK:
		return exit.With(exit.Failed, nil)
	}
	return nil
}

func (r *doctorReport) write(w io.Writer, p terminal.Palette) error {
	paint := map[string]func(string) string{isOK: p.Green, isWarned: p.Yellow, isFailed: p.Red}
	for _, c := range r.Checks {
		mark := paint[c.Status](fmt.Sprintf("%-8s", c.Status))
		if _, err := fmt.Fprintf(w, "%s %-10s %s\n", mark, c.Name, terminal.Printable(c.Says)); err != nil {
			return err
		}
	}
	return nil
}

// state looks at the directory and the key in it.
func (c *doctorCmd) state(r *doctorReport) *state.Dir {
	dir, err := state.Open()
	if err != nil {
		r.add("state", isFailed, "%v", err)
		return nil
	}
	info, err := os.Stat(dir.Path())
	switch {
	case err != nil:
		r.add("state", isFailed, "%v", err)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		r.add("state", isWarned, "%s has mode %04o: run chmod 700 on it", finding.Quote(dir.Path()), info.Mode().Perm())
	default:
		r.add("state", isOK, "%s", dir.Path())
	}
	given := os.Getenv(install.KeyVar) != ""
	if _, err := os.Stat(filepath.Join(dir.Path(), "install.key")); !given && errors.Is(err, fs.ErrNotExist) {
		r.add("key", isOK, "none yet: it is made on first use")
	} else if _, err := install.FenceKey(dir); err != nil {
		r.add("key", isFailed, "%v", err)
	} else if given {
		r.add("key", isOK, "given by %s, as to every replica", install.KeyVar)
	} else {
		r.add("key", isOK, "for its owner alone: back it up, fences cannot be checked without it")
	}
	return dir
}

// config compiles the configuration, if there is one.
func (c *doctorCmd) config(r *doctorReport, e *env) (cfg *rules.Rules, refused bool) {
	path := c.Config
	if path == "" {
		path = "pellucid.yaml"
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			r.add("config", isOK, "none: defaults")
			return nil, false
		}
	}
	cfg, err := rules.Load(path, e.references())
	if err != nil {
		r.add("config", isFailed, "%v", err)
		return nil, true
	}
	r.add("config", isOK, "%s: %s, %s", finding.Quote(path), terminal.Plural(len(cfg.Servers), "server"), cfg.Version())
	return cfg, false
}

// stores looks at the store that the flag or the configuration names, else at those
// that there are.
func (c *doctorCmd) stores(ctx context.Context, r *doctorReport, dir *state.Dir, cfg *rules.Rules) {
	var all []string
	switch {
	case c.DB != "":
		all = []string{string(c.DB)}
	case cfg != nil && cfg.Store.URL.Reveal() != "":
		all = []string{cfg.Store.URL.Reveal()}
	case cfg != nil && cfg.Store.Path != "":
		all = []string{cfg.Store.Path}
	case dir != nil:
		if all = install.Stores(dir); len(all) == 0 {
			r.add("store", isOK, "none yet: it is made on first use")
		}
	}
	for _, where := range all {
		c.store(ctx, r, where)
	}
	c.found = all
}

func (c *doctorCmd) store(ctx context.Context, r *doctorReport, where string) {
	ctx, stop := context.WithTimeout(ctx, doctorWait)
	defer stop()
	s, err := storage.Inspect(ctx, where)
	name := install.StoreName(where)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.add("store", isOK, "%s: none yet: it is made on first use", name)
	case err != nil:
		r.add("store", isFailed, "%s: %v", name, err)
	case s.Current > s.Known:
		r.add("store", isFailed, "%s: schema %d is of a later release, this one knows %d: upgrade pellucid", name, s.Current, s.Known)
	case s.Current < s.Known:
		r.add("store", isWarned, "%s: schema %d, this release has %d: pellucid store migrate, after a back-up", name, s.Current, s.Known)
	default:
		r.add("store", isOK, "%s: reachable, schema %d", name, s.Current)
	}
}

// port says who listens where the gateway would.
func (c *doctorCmd) port(ctx context.Context, r *doctorReport, cfg *rules.Rules) {
	addr := listen.Default
	if cfg != nil {
		addr = cfg.Listen
	}
	l, err := listen.At("listen", addr)
	if err == nil {
		l.Close()
		r.add("port", isOK, "%s is free", addr)
		return
	}
	ctx, stop := context.WithTimeout(ctx, doctorWait)
	defer stop()
	req, reqErr := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/healthz", nil)
	if reqErr != nil {
		r.add("port", isFailed, "a gateway %v", err)
		return
	}
	resp, getErr := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if getErr != nil {
		r.add("port", isFailed, "no gateway answers at %s, and a new one %v", addr, err)
		return
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		r.add("port", isOK, "%s: something answers /healthz there, a running gateway it seems", addr)
	} else {
		r.add("port", isFailed, "%s is taken by a server that is no gateway", addr)
	}
}

// clients says which servers of which clients do not run behind the boundary.
func (c *doctorCmd) clients(r *doctorReport, e *env, dir *state.Dir) {
	if dir == nil {
		return
	}
	opt, err := install.ProtectOptions(nil, false)
	if err != nil {
		r.add("clients", isFailed, "%v", err)
		return
	}
	m, err := protect.ThisMachine(e.Getenv)
	if err != nil {
		r.add("clients", isFailed, "%v", err)
		return
	}
	targets := protect.Locate(m, "")
	if len(targets) == 0 {
		r.add("clients", isOK, "no client's configuration was found")
	}
	for _, t := range targets {
		change, err := opt.Protect(t.Path, t.Format)
		if err != nil {
			r.add(t.Client, isWarned, "%v", err)
			continue
		}
		protected, total := change.Count(protect.Already), len(change.Servers)
		says := fmt.Sprintf("%d of %s behind the boundary: %s", protected, terminal.Plural(total, "server"), t.Path)
		switch {
		case total == 0:
			r.add(t.Client, isOK, "no servers: %s", t.Path)
		case change.Count(protect.Wrapped) > 0:
			r.add(t.Client, isWarned, "%s: run pellucid protect", says)
		case protected < total:
			r.add(t.Client, isWarned, "%s: pellucid protect --dry-run says why not the others", says)
		default:
			r.add(t.Client, isOK, "%s", says)
		}
	}
}
