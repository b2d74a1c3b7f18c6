// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// The bars of the measurement.
const (
	maxCost    = 1.15                   // CPU time of a call with all replicas, in those of one
	maxForward = 300 * time.Microsecond // that a forwarded request takes longer, at the median
)

// Missed lists the bars that were missed.
func (report *Report) Missed() (out []string) {
	miss := func(bad bool, text string, args ...any) {
		if bad {
			out = append(out, fmt.Sprintf(text, args...))
		}
	}
	miss(report.Ended > 0, "%d sessions ended", report.Ended)
	miss(report.Calls == 0, "there were no calls")
	miss(report.FailedAway > 0, "%d calls failed that were under way at no fault", report.FailedAway)
	miss(report.Unclear > 0, "%d calls failed without a clear error", report.Unclear)
	miss(report.Twice > 0, "%d calls reached a server twice", report.Twice)
	miss(report.Unseen > 0, "%d answers were delivered to calls that reached no server", report.Unseen)
	miss(report.NoEvidence > 0, "%d answers name no record", report.NoEvidence)
	miss(report.Unrecorded > 0, "%d delivered answers have no record in the log", report.Unrecorded)
	miss(report.Verified != "", "the log does not verify: %s", report.Verified)
	if report.CostOne > 0 {
		ratio := float64(report.CostAll) / float64(report.CostOne)
		miss(ratio > maxCost, "the CPU time of a call with %d replicas is %.2f times that with one", report.Replicas, ratio)
	}
	if report.Local > 0 {
		more := report.Forwarded - report.Local
		miss(more > maxForward, "a forwarded request takes %s longer", more.Round(time.Microsecond))
	}
	return append(out, report.Failures...)
}

// Print writes the report for people.
func (report *Report) Print(w io.Writer) error {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-34s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("replicas, sessions", "%d, %d", report.Replicas, report.Sessions)
	row("sessions opened, ended", "%d, %d", report.Opened, report.Ended)
	printClasses(&b, report.EndedWhy)
	row("calls, failed", "%d, %d", report.Calls, report.Failed)
	printClasses(&b, report.Classes)
	for i, f := range report.Faults {
		row(fmt.Sprintf("  %s %s", f.Kind, replicaName(f.Replica)), "%s, %d calls under way, %d of them failed",
			f.Until.Sub(f.At).Round(time.Millisecond), report.UnderWay[i], report.FailedAt[i])
	}
	row("failed at no fault", "%d", report.FailedAway)
	row("failed without a clear error", "%d", report.Unclear)
	row("reached a server twice", "%d, and %d that may", report.Twice, report.TwiceAllowed)
	row("delivered, without a record", "%d, %d", report.Delivered+report.NoEvidence, report.Unrecorded+report.NoEvidence)
	if report.CostOne > 0 {
		row("CPU time of a call", "%s with 1 replica, %s with %d", report.CostOne.Round(time.Microsecond), report.CostAll.Round(time.Microsecond), report.Replicas)
	}
	if report.Local > 0 {
		row("a request, median", "%s at its replica, %s forwarded", report.Local.Round(time.Microsecond), report.Forwarded.Round(time.Microsecond))
	}
	missed := report.Missed()
	for _, m := range missed {
		row("MISSED", "%s", m)
	}
	if len(missed) == 0 {
		row("all bars reached", "")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func replicaName(n int) string {
	if n == 0 {
		return "of Postgres"
	}
	return fmt.Sprintf("of replica %d", n)
}

func printClasses(b *strings.Builder, classes map[string]int) {
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		fmt.Fprintf(b, "  %6d  %s\n", classes[name], name)
	}
}
