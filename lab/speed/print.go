// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"bufio"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// PrintCases writes what scrubbing costs as a table for a person.
func PrintCases(dst io.Writer, p terminal.Palette, got []Case) error {
	w := bufio.NewWriter(dst)
	fmt.Fprintf(w, "fields of %d bytes, %s %s/%s\n", textBytes, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	last := ""
	for _, cs := range got {
		text, way, _ := strings.Cut(cs.Name, "/")
		if text != last {
			fmt.Fprintf(w, "\n%s\n", p.Bold(fmt.Sprintf("%-18s %12s %10s %10s %8s", text, "ns", "x memcpy", "MB/s", "allocs")))
			last = text
		}
		fmt.Fprintf(w, "  %-16s %12.0f %10.1f %10.0f %8.0f\n", way, cs.NS, cs.MemcpyRatio, cs.MBPerS, cs.Allocs)
	}
	return w.Flush()
}

// Print writes the figures as tables for a person, and then the targets.
func (r *GatewayReport) Print(dst io.Writer, p terminal.Palette) error {
	w := bufio.NewWriter(dst)
	fmt.Fprintf(w, "%s %s/%s, %d CPUs; times in microseconds\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	last := ""
	for _, f := range r.Figures {
		if head := fmt.Sprintf("%s, %s, %s, %d sessions", f.Transport, f.Script, sizeName(f.Bytes), f.Sessions); head != last {
			fmt.Fprintf(w, "\n%s\n", p.Bold(fmt.Sprintf("%-38s %9s %9s %9s %9s %9s %9s %7s", head, "p50", "p99", "added", "added99", "calls/s", "CPU/call", "RSS MB")))
			last = head
		}
		fmt.Fprintf(w, "  %-36s %9.0f %9.0f", f.Way, f.P50, f.P99)
		if f.Way == Direct {
			fmt.Fprintf(w, " %9s %9s %9.0f\n", "", "", f.Rate)
			continue
		}
		fmt.Fprintf(w, " %9.0f %9.0f %9.0f %9.0f %7.1f\n", f.AddedP50, f.AddedP99, f.Rate, f.CPU, float64(f.RSS)/1e6)
	}
	fmt.Fprintln(w)
	printTargets(w, p, r.Targets)
	return w.Flush()
}

func printTargets(w io.Writer, p terminal.Palette, targets []Target) {
	for _, t := range targets {
		verdict := p.Green("met    ")
		if !t.Met {
			verdict = p.Red("NOT MET")
		}
		fmt.Fprintf(w, "%s  %-46s %s, wanted %s\n", verdict, t.Name, t.Got, t.Want)
	}
}
