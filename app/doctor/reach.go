// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/hook"
	"github.com/pellucid-mcp/pellucid/boundary/protect"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/listen"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// port says who listens where the gateway would.
func (x *examiner) port(ctx context.Context, cfg *rules.Rules) {
	addr := listen.Default
	if cfg != nil {
		addr = cfg.Listen
	}
	l, err := listen.At("listen", addr)
	if err == nil {
		l.Close()
		x.report.add("port", OK, "%s is free", addr)
		return
	}
	ctx, stop := context.WithTimeout(ctx, maxWait)
	defer stop()
	req, reqErr := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/healthz", nil)
	if reqErr != nil {
		x.report.add("port", Failed, "a gateway %v", err)
		return
	}
	resp, getErr := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if getErr != nil {
		x.report.add("port", Failed, "no gateway answers at %s, and a new one %v", addr, err)
		return
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		x.report.add("port", OK, "%s: something answers /healthz there, a running gateway it seems", addr)
	} else {
		x.report.add("port", Failed, "%s is taken by a server that is no gateway", addr)
	}
}

// clients says which servers of which clients do not run behind the boundary.
func (x *examiner) clients(ctx context.Context, dir *state.Dir) {
	if dir == nil {
		return
	}
	opt, err := install.ProtectOptions(nil, false)
	if err != nil {
		x.report.add("clients", Failed, "%v", err)
		return
	}
	m, err := protect.ThisMachine(x.Getenv)
	if err != nil {
		x.report.add("clients", Failed, "%v", err)
		return
	}
	targets := protect.Locate(m, "")
	others := protect.Others(m)
	defer x.hostHooks(ctx, opt, m)
	if len(targets) == 0 && len(others) == 0 {
		x.report.add("clients", OK, "no client's configuration was found")
	}
	for _, o := range others {
		x.report.add("clients", Warning, "%s is on this machine (%s), and protect does not change it: %s", o.Name, o.Path, o.Advice)
	}
	for _, t := range targets {
		inUse := slices.ContainsFunc(targets, func(other protect.Target) bool { return other.ReadInstead == t.Path })
		x.clientFile(opt, t, inUse)
	}
}

// clientFile says how many servers of a file run behind the boundary. inUse says that another file seems to be the client's,
// while this one is.
func (x *examiner) clientFile(opt protect.Options, t protect.Target, inUse bool) {
	change, err := opt.Protect(t.Path, t.Format)
	if err != nil {
		x.report.add(t.Client, Warning, "%v", err)
		return
	}
	former := change.Count(protect.Updated)
	for _, s := range change.Servers {
		if s.Warning != "" {
			x.report.add(t.Client, Warning, "%s: %s: %s", finding.Quote(s.Name), s.Warning, t.Path)
		}
	}
	protected, total := change.Count(protect.Already)+former, len(change.Servers)
	where := t.Path
	if inUse {
		where += ", the file that the installed app reads"
	}
	says := fmt.Sprintf("%d of %s behind the boundary: %s", protected, terminal.Plural(total, "server"), where)
	switch {
	case former > 0:
		x.report.add(t.Client, Warning, "%s: wrap no longer has flags that %s: run pellucid protect", says, formerOf(change))
	case change.Count(protect.Wrapped) > 0:
		x.report.add(t.Client, Warning, "%s: run pellucid protect", says)
	case protected < total:
		x.report.add(t.Client, Warning, "%s: pellucid protect --dry-run says why not the others", says)
	case t.ReadInstead != "": // told below
	case total == 0:
		x.report.add(t.Client, OK, "no servers: %s", where)
	default:
		x.report.add(t.Client, OK, "%s", says)
	}
	if t.ReadInstead != "" {
		reads := "reads"
		if _, err := os.Stat(t.ReadInstead); err != nil {
			reads = "will read" // once it has written its settings
		}
		x.report.add(t.Client, Warning, "the installed app %s %s in the place of %s: configure its servers there", reads, t.ReadInstead, t.Path)
	}
}

// hostHooks reports the hosts whose own tools are behind the boundary. It has each hook answer an event.
func (x *examiner) hostHooks(ctx context.Context, opt protect.Options, m protect.Machine) {
	all, err := opt.Hooks(m, "", protect.Job{DryRun: true})
	if err != nil {
		x.report.add("hooks", Warning, "%v", err)
	}
	for _, r := range all {
		switch {
		case r.Error != "": // told above
		case r.Action != protect.Already:
			x.report.add(r.Host, Warning, "the shell output, files and pages that it reads are not behind the boundary: run pellucid protect --hooks")
		case !answersProbe(ctx, opt.HookWords(r.Host), r.Host):
			x.report.add(r.Host, Failed, "its hook does not answer as it should: try pellucid hook %s < EVENT: %s", r.Host, r.Path)
		case r.Why != "":
			x.report.add(r.Host, Warning, "its hook is written and answers, but something is left to do: %s: %s", r.Why, r.Path)
		default:
			x.report.add(r.Host, OK, "its own tools are behind the boundary: %s", r.Path)
		}
	}
}

// answersProbe reports whether the command answers an event of the host.
func answersProbe(ctx context.Context, words []string, host string) bool {
	h, found := hook.HostOf(host)
	if !found {
		return false
	}
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stdin = bytes.NewReader(h.Probe())
	answer, err := cmd.Output()
	return err == nil && hook.Passes(answer)
}

// formerOf names the servers whose entries have flags that wrap no longer has.
func formerOf(change *protect.Change) string {
	var names []string
	for _, s := range change.Servers {
		if s.Action == protect.Updated {
			names = append(names, finding.Quote(s.Name))
		}
	}
	if len(names) > maxNamed {
		names = append(names[:maxNamed], "others")
	}
	return strings.Join(names, ", ") + map[bool]string{true: " has", false: " have"}[len(names) == 1]
}
