// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"bufio"
	"cmp"
	"fmt"
	"io"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// Print writes the figures as a table for a person.
func (r *Report) Print(dst io.Writer, p terminal.Palette) error {
	w := bufio.NewWriter(dst)
	fmt.Fprintf(w, "%d CPUs, limits.memory %d MiB; wanted: honest calls at most %.0f times as long, %.0f %% of them served, memory at most %.1f times the budget\n\n",
		r.CPUs, r.Budget>>20, mostRatio, 100*leastServed, mostMemory)
	fmt.Fprintln(w, p.Bold(fmt.Sprintf("%-16s %9s %9s %9s %7s %8s %9s %7s  %-14s %s", "attack", "quiet p50", "p50 ms", "p95 ms", "ratio", "served", "peak MiB", "memory", "missed", "attackers got")))
	for _, f := range r.Attacks {
		fmt.Fprintf(w, "%-16s %9.1f %9.1f %9.1f %7.1f %6.1f %% %9d %7.2f  %-14s %s\n", f.Name, f.Quiet.P50, f.Under.P50, f.Under.P95, f.Ratio, 100*f.Under.Served, f.Peak>>20, f.Memory, cmp.Or(f.Missed, "-"), f.Sent)
	}
	return w.Flush()
}
