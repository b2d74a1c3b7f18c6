// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/platform/peer"
	"github.com/pellucid-mcp/pellucid/platform/replica"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// beatWait is longer than a replica that runs takes for a sign of life.
const beatWait = 2500 * time.Millisecond

// replicas looks for gateways that share a store, and whether they agree.
func (x *examiner) replicas(ctx context.Context, dir *state.Dir) {
	for _, where := range x.stores {
		if live := liveIn(ctx, where); len(live) > 0 {
			x.agree(live, ownKey(dir))
		}
	}
}

// ownKey is the id of the installation's key as this command has it, and "" before its first use, which makes it.
func ownKey(dir *state.Dir) string {
	if dir == nil {
		return ""
	}
	if _, err := os.Stat(filepath.Join(dir.Path(), "install.key")); os.Getenv(install.KeyVar) == "" && err != nil {
		return "" // looking for it must not make it
	}
	keys, err := install.Keys(dir)
	if err != nil {
		return ""
	}
	k, err := peer.NewKeys(install.Secrets(keys)...)
	if err != nil {
		return ""
	}
	return k.ID()
}

// liveIn returns the replicas whose sign of life comes while they are watched. A store of another release
// is left alone.
func liveIn(ctx context.Context, where string) (live []replica.Row) {
	ctx, stop := context.WithTimeout(ctx, maxWait)
	defer stop()
	if v, err := storage.Inspect(ctx, where); err != nil || v.Current != v.Known {
		return nil
	}
	s, err := install.OpenStore(ctx, where, storage.Options{}, func() error { return fs.ErrNotExist })
	if err != nil {
		return nil
	}
	defer s.Close()
	before, err := s.Replicas(ctx)
	if err != nil || len(before) == 0 || backoff.Sleep(ctx, beatWait) != nil {
		return nil
	}
	after, err := s.Replicas(ctx)
	if err != nil {
		return nil
	}
	for _, r := range after {
		if !slices.ContainsFunc(before, func(b replica.Row) bool { return b.ID == r.ID && b.Beat == r.Beat }) {
			live = append(live, r)
		}
	}
	return live
}

// agree reports what the replicas of a store do not have in common. own is the id of this
// installation's key.
func (x *examiner) agree(live []replica.Row, own string) {
	var at []string
	newest := slices.MaxFunc(live, func(a, b replica.Row) int { return int(a.Generation - b.Generation) })
	for _, r := range live {
		at = append(at, finding.Quote(r.Address))
	}
	x.report.add("replicas", OK, "%s at %s", terminal.Plural(len(live), "running replica"), strings.Join(at, ", "))
	for i, r := range live {
		if r.Generation < newest.Generation {
			x.report.add("replicas", Warning, "%s has other rules than %s, which read its configuration later: give both the same file",
				finding.Quote(r.Address), finding.Quote(newest.Address))
		}
		if r.Key != live[0].Key {
			x.report.add("replicas", Warning, "%s and %s use different keys of the installation: unless the key is being rotated, give both the same %s",
				finding.Quote(r.Address), finding.Quote(live[0].Address), install.KeyVar)
		}
		if slices.ContainsFunc(live[:i], func(o replica.Row) bool { return o.Address == r.Address }) {
			x.report.add("replicas", Failed, "two replicas say that they are at %s: give each its own replicas.address", finding.Quote(r.Address))
		}
	}
	if own != "" && !slices.ContainsFunc(live, func(r replica.Row) bool { return r.Key == own }) {
		x.report.add("replicas", Warning, "no replica uses the key that this command has: set %s as for the replicas", install.KeyVar)
	}
}
