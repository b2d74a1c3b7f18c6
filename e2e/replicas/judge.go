// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// A Report says what was lost. Durations are 0 where they were not measured.
type Report struct {
	Replicas, Sessions int
	Faults             []Fault

	Opened   int // sessions that began
	Ended    int // sessions that ended before the end, and those that could not be opened
	EndedWhy map[string]int

	Calls        int
	Failed       int            // of them
	Classes      map[string]int // of the errors of failed calls
	Unclear      int            // failed calls whose error does not say what happened
	UnderWay     []int          // calls under way at each fault
	FailedAt     []int          // calls that were under way at that fault, and failed
	FailedAway   int            // calls that failed at no fault
	Twice        int            // calls that a server saw twice and that are not declared idempotent
	TwiceAllowed int            // that are declared idempotent
	Unseen       int            // delivered answers to calls that no server saw

	Delivered  int // answers, with the evidence id of a record
	NoEvidence int // answers without an id
	Unrecorded int // answers whose record the log does not have
	Verified   string

	CostOne, CostAll time.Duration // CPU time of a call with one replica, and with all
	Local, Forwarded time.Duration // median of a request where its session is, and at another replica

	Failures []string // measurements that could not be done
}

// judge compares what clients and servers saw, and what the log has.
func (r *rig) judge(ctx context.Context, report *Report, l *load) error {
	events, err := l.events()
	if err != nil {
		return err
	}
	report.count(events)
	seen, err := r.seenKeys()
	if err != nil {
		return err
	}
	report.countSeen(events, seen)
	return r.countRecords(ctx, report, events)
}

func (report *Report) count(events []line) {
	report.Classes, report.EndedWhy = map[string]int{}, map[string]int{}
	report.UnderWay, report.FailedAt = make([]int, len(report.Faults)), make([]int, len(report.Faults))
	for _, e := range events {
		switch {
		case e.Opened > 0:
			report.Opened++
		case e.Ended > 0:
			report.Ended++
			report.EndedWhy[class(e.Error)]++
		case e.Call != "":
			report.call(e)
		}
	}
}

// call counts one call.
func (report *Report) call(e line) {
	report.Calls++
	at := -1
	for i, f := range report.Faults {
		if e.Start <= seconds(f.Until) && e.End >= seconds(f.At) {
			report.UnderWay[i]++
			at = i
		}
	}
	switch {
	case e.Error == "":
		return
	case at >= 0:
		report.FailedAt[at]++
	default:
		report.FailedAway++
	}
	report.Failed++
	report.Classes[class(e.Error)]++
	if !clear(e.Error) {
		report.Unclear++
	}
}

// clear: an error of Pellucid's own says what happened. Every other one, such as a call that had no
// answer for 20 seconds, leaves its reader to guess.
func clear(text string) bool { return strings.Contains(text, "pellucid") }

var varying = regexp.MustCompile(`[0-9a-f]{16,}|[0-9]+`)

// class is the text of an error without what differs from one to the next.
func class(text string) string {
	text = varying.ReplaceAllString(text, "#")
	if len(text) > 160 {
		text = text[:160]
	}
	return fmt.Sprintf("%+q", text)
}

// seenKeys counts how often a server saw each call.
func (r *rig) seenKeys() (map[string]int, error) {
	seen := map[string]int{}
	for _, server := range []string{"http", "stdio"} {
		b, err := os.ReadFile(r.seen(server))
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		for line := range bytes.Lines(b) {
			if _, key, ok := strings.Cut(strings.TrimSpace(string(line)), " "); ok {
				seen[key]++
			}
		}
	}
	return seen, nil
}

func (report *Report) countSeen(events []line, seen map[string]int) {
	for _, e := range events {
		switch n := seen[e.Call]; {
		case e.Call == "":
		case n > 1 && e.Tool == "read":
			report.TwiceAllowed++
		case n > 1:
			report.Twice++
		case n == 0 && e.Error == "":
			report.Unseen++
		}
	}
}

// countRecords looks every delivered answer up in the log, once the log has all that waits.
func (r *rig) countRecords(ctx context.Context, report *Report, events []line) error {
	db, err := sql.Open("pgx", r.database)
	if err != nil {
		return err
	}
	defer db.Close()
	pending := -1
	for end := time.Now().Add(20 * time.Second); pending != 0 && time.Now().Before(end); {
		if err := db.QueryRowContext(ctx, `SELECT count(*) FROM ledger_pending`).Scan(&pending); err != nil {
			return fmt.Errorf("replicas: the log: %w", err)
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	if pending > 0 {
		report.Failures = append(report.Failures, fmt.Sprintf("the log stands still: %d records wait", pending))
	}
	recorded := map[string]bool{}
	rows, err := db.QueryContext(ctx, `SELECT id FROM ledger_entries`)
	if err != nil {
		return fmt.Errorf("replicas: the log: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id []byte
		if err := rows.Scan(&id); err != nil {
			return err
		}
		recorded[hex.EncodeToString(id)] = true
	}
	for _, e := range events {
		switch {
		case e.Call == "" || e.Error != "":
		case e.Evidence == "":
			report.NoEvidence++
		default:
			report.Delivered++
			if !recorded[e.Evidence] {
				report.Unrecorded++
			}
		}
	}
	report.Verified = r.verify(ctx)
	return rows.Err()
}

// verify has the program check the log; the result is "" where it is right.
func (r *rig) verify(ctx context.Context) string {
	g := r.replicas[0]
	cmd := exec.CommandContext(ctx, g.program, "ledger", "verify")
	cmd.Env = g.env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Sprintf("%v: %+.300q", err, out)
	}
	return ""
}
