// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Report is what a verification found, as it is printed.
type Report struct {
	OK         bool      `json:"ok"`
	Origin     string    `json:"origin,omitempty"`
	Size       int64     `json:"size"`
	Records    int64     `json:"records"`
	Openings   int64     `json:"openings"`
	Problems   []Problem `json:"problems"`
	More       int64     `json:"more"`
	NotChecked []string  `json:"not_checked"`
	Waiting    int       `json:"waiting"` // acknowledged, and not signed yet
	Erased     int64     `json:"erased"`  // openings that were erased
}

// A Problem is one fault of a log.
type Problem struct {
	Place string `json:"place"`
	Fault string `json:"fault"`
	text  string // both, for a person
}

// NewReport is what is printed of a verification. waiting is the number of acknowledged records
// that wait for their signature.
func NewReport(r *ledger.Report, waiting int) *Report {
	out := &Report{OK: r.OK(), Records: r.Records, Openings: r.Openings, Problems: []Problem{}, More: r.More,
		NotChecked: append([]string{}, r.NotChecked...), Waiting: waiting, Erased: r.Erased}
	if r.Checkpoint != nil {
		out.Origin, out.Size = r.Checkpoint.Origin, r.Checkpoint.Size
	}
	for _, p := range r.Problems {
		out.Problems = append(out.Problems, Problem{p.Place, string(p.Fault), p.String()})
	}
	return out
}

// Write prints the report for a person.
func (r *Report) Write(w io.Writer) error {
	var b bytes.Buffer
	for _, p := range r.Problems {
		fmt.Fprintln(&b, terminal.Printable(p.text))
	}
	if r.More > 0 {
		fmt.Fprintf(&b, "and %d more\n", r.More)
	}
	if r.OK {
		fmt.Fprintf(&b, "%s of %s %s valid, with %s.\n", terminal.Plural(int(r.Records), "record"), finding.Quote(r.Origin), are(r.Records), terminal.Plural(int(r.Openings), "opening"))
	} else {
		fmt.Fprintln(&b, "The log is not valid.")
	}
	if r.Waiting > 0 {
		fmt.Fprintf(&b, "%s not signed yet.\n", terminal.Plural(r.Waiting, "acknowledged record"))
	}
	if r.Erased > 0 {
		fmt.Fprintf(&b, "%s erased.\n", terminal.Plural(int(r.Erased), "opening"))
	}
	if len(r.NotChecked) > 0 {
		fmt.Fprintf(&b, "Not checked: %s.\n", strings.Join(r.NotChecked, "; "))
	}
	_, err := w.Write(b.Bytes())
	return err
}

func are(n int64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// A Checkpoint is the latest checkpoint of a log, as it is printed.
type Checkpoint struct {
	Checkpoint string   `json:"checkpoint"`
	Size       int64    `json:"size"`
	Keys       []string `json:"keys"`
	Pending    int      `json:"pending"` // up to 1,000
}

// Latest is the latest checkpoint of a log. It goes to others: one that no key of the log has
// signed is an error.
func Latest(ctx context.Context, l *storage.Ledger) (*Checkpoint, error) {
	head, err := l.Head(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := keysOf(ctx, l)
	if err != nil {
		return nil, err
	}
	if _, err := ledger.OpenCheckpoint(head.Checkpoint, keys, nil); err != nil {
		return nil, err
	}
	r := &Checkpoint{Checkpoint: string(head.Checkpoint), Size: head.Size}
	for _, k := range keys {
		r.Keys = append(r.Keys, k.String())
	}
	r.Pending, err = l.Waiting(ctx, 1000)
	return r, err
}
