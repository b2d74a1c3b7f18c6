// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/privacy"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// state looks at the directory and the key in it.
func (x *examiner) state() *state.Dir {
	dir, err := state.Open()
	if err != nil {
		x.report.add("state", Failed, "%v", err)
		return nil
	}
	how, err := privacy.Exposure(dir.Path())
	switch {
	case err != nil:
		x.report.add("state", Failed, "%v", err)
	case dir.Writable() != nil:
		x.report.add("state", Failed, "%v", dir.Writable())
	case how != "":
		x.report.add("state", Warning, "%s %s", finding.Quote(dir.Path()), how)
	default:
		x.report.add("state", OK, "%s", dir.Path())
	}
	if former := state.Former(); former != "" {
		x.report.add("state", Warning, "%s is of an earlier release, and no longer read: end your clients and move what is in it to %s", former, dir.Path())
	}
	x.checkKey(dir)
	return dir
}

// checkKey looks at the key of the installation.
func (x *examiner) checkKey(dir *state.Dir) {
	given := os.Getenv(local.KeyVar) != ""
	how, err := privacy.Exposure(dir.File("install.key"))
	if !given && errors.Is(err, fs.ErrNotExist) {
		x.report.add("key", OK, "none yet: it is made on first use")
		return
	}
	if given {
		how, err = "", nil
	}
	if _, unusable := local.FenceKey(dir); unusable != nil {
		err = unusable
	}
	switch {
	case err != nil:
		x.report.add("key", Failed, "%v", err)
		return
	case given:
		x.report.add("key", OK, "given by %s, as to every replica", local.KeyVar)
	case how != "":
		x.report.add("key", Warning, "install.key %s", how)
	default:
		x.report.add("key", OK, "for its owner alone: back it up, fences cannot be checked without it")
	}
	x.keyIDs(dir)
}

// keyIDs names the keys of the installation, which keys rotate replaces and retires.
func (x *examiner) keyIDs(dir *state.Dir) {
	keys, err := local.Keys(dir)
	if err != nil {
		x.report.add("key", Failed, "%v", err)
		return
	}
	for i, k := range keys {
		x.report.add("key", OK, "%s %s", k.ID(), map[bool]string{true: "is the current one", false: "is a previous one"}[i == 0])
	}
}

// config compiles the configuration, if there is one.
func (x *examiner) config() (cfg *rules.Rules, refused bool) {
	path := cmp.Or(x.Config, install.ConfigInForce())
	if path == "" {
		x.report.add("config", OK, "none: defaults")
		return nil, false
	}
	own, env, envOfOwn := install.ConfigFile(), x.Env, x.Env
	if envOfOwn.OfClients = true; own == path {
		env = envOfOwn
	} else if own != "" {
		if _, err := rules.Load(own, envOfOwn); err != nil {
			x.report.add("config", Warning, "pellucid wrap reads %s: %v", terminal.Inline(own), err)
		} else {
			x.report.add("config", OK, "pellucid wrap reads %s", terminal.Inline(own))
		}
	}
	cfg, err := rules.Load(path, env)
	if err != nil {
		x.report.add("config", Failed, "%v", err)
		return nil, true
	}
	x.report.add("config", OK, "%s: %s, %s", finding.Quote(path), terminal.Plural(len(cfg.Servers), "server"), cfg.Version())
	return cfg, false
}

// lookAtStores looks at the store that the flag or the configuration names, else at those
// that there are.
func (x *examiner) lookAtStores(ctx context.Context, dir *state.Dir, cfg *rules.Rules) {
	var all []string
	switch {
	case x.DB != "":
		all = []string{string(x.DB)}
	case cfg != nil && cfg.Store.URL.Reveal() != "":
		all = []string{cfg.Store.URL.Reveal()}
	case cfg != nil && cfg.Store.Path != "":
		all = []string{cfg.Store.Path}
	case dir != nil:
		if all = install.Stores(dir); len(all) == 0 {
			x.report.add("store", OK, "none yet: it is made on first use")
		}
	}
	for _, where := range all {
		x.store(ctx, where)
	}
	x.stores = all
}

func (x *examiner) store(ctx context.Context, where string) {
	ctx, stop := context.WithTimeout(ctx, maxWait)
	defer stop()
	s, err := storage.Inspect(ctx, where)
	name := install.StoreName(where)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x.report.add("store", OK, "%s: none yet: it is made on first use", name)
	case err != nil:
		x.report.add("store", Failed, "%s: %v", name, err)
	case s.Earlier:
		x.report.add("store", Failed, "%s: %v", name, storage.ErrEarlier)
	case s.Current > s.Known && s.Readable:
		x.report.add("store", Warning, "%s: schema %d is of a later release; this one knows %d and can work with it: finish the upgrade", name, s.Current, s.Known)
	case s.Current > s.Known:
		x.report.add("store", Failed, "%s: schema %d is of a later release, this one knows %d: upgrade pellucid", name, s.Current, s.Known)
	case s.Current < s.Known:
		x.report.add("store", Warning, "%s: schema %d, this release has %d: pellucid store migrate, after a back-up", name, s.Current, s.Known)
	default:
		x.report.add("store", OK, "%s: reachable, schema %d", name, s.Current)
	}
}
