// SPDX-License-Identifier: Apache-2.0

// Package doctor looks at an installation and says whether it is as it should be.
package doctor

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/build"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// Options say what to look at.
type Options struct {
	Config string           // the configuration; "": install.ConfigInForce
	DB     install.Database // the store; "": that of the configuration, else those that there are
	Env    rules.Options    // how references of the configuration are resolved
	Getenv func(string) string
}

type examiner struct {
	Options
	report Report
	stores []string // that were looked at
}

// The statuses of a Check.
const (
	OK      = "ok"
	Warning = "warning"
	Failed  = "failed"
)

// A Check is one thing that was looked at.
type Check struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Says   string `json:"says"`
}

// A Report says what was found, to a person and as JSON.
type Report struct {
	OK     bool    `json:"ok"`
	Checks []Check `json:"checks"`
}

func (r *Report) add(name, status, format string, args ...any) {
	r.Checks = append(r.Checks, Check{name, status, fmt.Sprintf(format, args...)})
	r.OK = r.OK && status != Failed
}

// maxWait bounds what one check may wait for.
const maxWait = 5 * time.Second

// Examine looks at everything and changes nothing. refused says that the configuration cannot
// be used.
func Examine(ctx context.Context, o Options) (r *Report, refused bool) {
	x := &examiner{Options: o, report: Report{OK: true, Checks: []Check{}}}
	x.report.add("version", OK, "%s", build.Read().Version)
	dir := x.state()
	cfg, refused := x.config()
	x.lookAtStores(ctx, dir, cfg)
	x.logs(ctx, dir, cfg)
	x.reportWaitingItems(dir)
	x.models(cfg)
	x.classifiers(cfg)
	x.reportFlagged(dir)
	x.sampling(ctx, dir)
	x.shownNames(ctx, cfg)
	x.webhooks(ctx, cfg)
	x.port(ctx, cfg)
	x.logins(dir)
	x.clients(ctx, dir)
	return &x.report, refused
}

// Write shows the report to a person.
func (r *Report) Write(w io.Writer, p terminal.Palette) error {
	paint := map[string]func(string) string{OK: p.Green, Warning: p.Yellow, Failed: p.Red}
	wide := 10
	for _, c := range r.Checks {
		wide = max(wide, len(c.Name))
	}
	for _, c := range r.Checks {
		mark := paint[c.Status](fmt.Sprintf("%-8s", c.Status))
		if _, err := fmt.Fprintf(w, "%s %-*s %s\n", mark, wide, c.Name, terminal.Printable(c.Says)); err != nil {
			return err
		}
	}
	return nil
}
