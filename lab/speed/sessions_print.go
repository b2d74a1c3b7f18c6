// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// Goals of what sessions cost; MB and KB are 1,000,000 and 1,000 bytes.
func (r *SessionsReport) judge() {
	for _, f := range r.Idle {
		switch f.Way {
		case upAlone:
			r.goal("a further session, no stream of the server", f.Further, 40, "KB")
		case upStream, upAllOn:
			r.goal("a further session, "+f.Way, f.Further, 75, "KB")
		}
		if f.Way == upAllOn {
			r.goal("RSS with one session, all on", float64(f.First.RSS)/1e6, 45, "MB")
		}
		if f.Way == upAlone || f.Way == upStream || f.Way == upAllOn {
			r.Targets = append(r.Targets, Target{Name: "opened a second, " + f.Way, Met: f.Rate >= 2000,
				Want: ">= 2000 sessions/s", Got: fmt.Sprintf("%.0f sessions/s", f.Rate)})
		}
	}
	r.goal(fmt.Sprintf("tools/list of %d tools, p99", r.List.Tools), r.List.P99, 30, "ms")
	r.goal("peak RSS, results of 1 MiB, all on", float64(r.Large.Peak)/1e6, 60, "MB")
}

func (r *SessionsReport) goal(name string, got, most float64, unit string) {
	r.Targets = append(r.Targets, Target{Name: name, Met: got <= most,
		Want: fmt.Sprintf("<= %.0f %s", most, unit), Got: fmt.Sprintf("%.1f %s", got, unit)})
}

// Print writes the figures as tables for a person, and then the goals.
func (r *SessionsReport) Print(dst io.Writer, p terminal.Palette) error {
	w := bufio.NewWriter(dst)
	fmt.Fprintf(w, "%s %s/%s, %d CPUs, %v; MB and KB are 1,000,000 and 1,000 bytes; load is the machine's over a minute, before and after\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, r.CPUs, r.Took.Round(time.Second))
	if n := r.Idle[0].Sessions; n < r.Asked {
		fmt.Fprintf(w, "%d sessions were asked for; the system allows files for %d\n", r.Asked, n)
	}
	fmt.Fprintf(w, "\n%s\n", p.Bold(fmt.Sprintf("%-36s %8s %9s %8s %8s %7s %8s %8s %10s %10s %7s %11s", "idle legacy sessions", "sessions",
		"opened/s", "p50 ms", "p99 ms", "1: MB", "all: MB", "PSS MB", "KB/further", "goroutines", "files", "load")))
	for _, f := range r.Idle {
		fmt.Fprintf(w, "  %-34s %8d %9.0f %8.2f %8.2f %7.1f %8.1f %8.1f %10.1f %10.1f %7d %11s\n", f.Way, f.Sessions, f.Rate, f.P50, f.P99,
			float64(f.First.RSS)/1e6, float64(f.All.RSS)/1e6, float64(f.All.PSS)/1e6, f.Further, f.Goroutines, f.Files, loads(f.Load))
	}
	fmt.Fprintf(w, "\n%s\n", p.Bold(fmt.Sprintf("%-36s %8s %9s %8s %8s %11s", "tools/list at /mcp, ms", "lists", "first", "p50", "p99", "load")))
	l := r.List
	fmt.Fprintf(w, "  %-34s %8d %9.1f %8.1f %8.1f %11s\n", fmt.Sprintf("%d tools of %d servers", l.Tools, l.Servers), l.Lists, l.First, l.P50, l.P99, loads(l.Load))
	fmt.Fprintf(w, "  %-34s %8d %9s %8.1f %8.1f\n", "the servers, asked in turn", l.Lists, "", l.Sum50, l.Sum99)
	fmt.Fprintf(w, "\n%s\n", p.Bold(fmt.Sprintf("%-36s %8s %9s %8s %8s %11s", "results of 1 MiB, all on", "calls", "at once", "RSS MB", "peak MB", "load")))
	since := "since the first call"
	if !r.Large.Reset {
		since = "since the start: it cannot be reset"
	}
	fmt.Fprintf(w, "  %-34s %8d %9d %8.1f %8.1f %11s\n\n", "peak "+since, r.Large.Calls, r.Large.AtOnce, float64(r.Large.Before.RSS)/1e6, float64(r.Large.Peak)/1e6, loads(r.Large.Load))
	printTargets(w, p, r.Targets)
	return w.Flush()
}

// PrintWaiting writes where the goroutines of each way wait.
func (r *SessionsReport) PrintWaiting(dst io.Writer, p terminal.Palette) error {
	w := bufio.NewWriter(dst)
	for _, f := range r.Idle {
		fmt.Fprintf(w, "\n%s\n", p.Bold(fmt.Sprintf("%s: goroutines of a session", f.Way)))
		for _, name := range slices.SortedFunc(maps.Keys(f.Waiting), func(a, b string) int {
			return cmp.Or(cmp.Compare(f.Waiting[b], f.Waiting[a]), cmp.Compare(a, b))
		}) {
			fmt.Fprintf(w, "  %6.2f  %s\n", f.Waiting[name], terminal.Printable(name))
		}
	}
	return w.Flush()
}

func loads(l [2]float64) string { return fmt.Sprintf("%.1f, %.1f", l[0], l[1]) }
