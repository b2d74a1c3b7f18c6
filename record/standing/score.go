// SPDX-License-Identifier: Apache-2.0

package standing

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/record/trust"
)

// A Kept is a log with the snapshots of its scores.
type Kept interface {
	Reader
	Head(context.Context) (sequence.Head, error)
	LoadScores(ctx context.Context, options string) (snapshot []byte, size int64, err error)
}

// Current are the scores of a whole log and its size, by the options that it names last. They
// begin with the snapshot, where it can be read and is not ahead of the log.
func Current(ctx context.Context, l Kept) (*trust.State, int64, error) {
	head, err := l.Head(ctx)
	if err != nil {
		return nil, 0, err
	}
	o, err := Latest(ctx, l, head.Size)
	if err != nil {
		return nil, 0, err
	}
	state, from := trust.New(o), int64(0)
	if snapshot, size, err := l.LoadScores(ctx, o.Name()); err != nil {
		return nil, 0, err
	} else if kept, err := trust.Restore(snapshot, o); snapshot != nil && err == nil && size <= head.Size {
		state, from = kept, size
	}
	return state, head.Size, apply(ctx, l, from, head.Size, state)
}

// ErrSnapshot says that a snapshot is not what the log gives: one of them was changed.
var ErrSnapshot = errors.New("standing: the snapshot is not what the log gives")

// CheckSnapshot makes the scores of the snapshot again from the first size records of the log,
// and compares. It returns how many records the snapshot stands for; found is false where the
// log has none.
func CheckSnapshot(ctx context.Context, l Kept, size int64) (at int64, found bool, err error) {
	o, err := Latest(ctx, l, size)
	if err != nil {
		return 0, false, err
	}
	kept, at, err := l.LoadScores(ctx, o.Name())
	if err != nil || kept == nil {
		return 0, false, err
	}
	if at > size {
		return at, true, ErrSnapshot
	}
	state, err := Replay(ctx, l, at, &o)
	if err == nil && !bytes.Equal(state.Snapshot(), kept) {
		err = ErrSnapshot
	}
	return at, true, err
}

// A Row is a score for programs.
type Row struct {
	Server    string `json:"server,omitzero"`
	Tool      string `json:"tool,omitzero"`
	Validator string `json:"validator,omitzero"`
	Score     string `json:"score"`
	LoweredBy string `json:"lowered_by,omitzero"`
	LoweredAt string `json:"lowered_at,omitzero"`

	Size    int64     `json:"log_size"` // the records of the log that the score is computed from
	At      time.Time `json:"at"`       // the time for which it is computed
	Options string    `json:"trust"`    // trust.Options.Name
}

// lastLowered says what lowered a score last, and when.
func lastLowered(s *trust.State, o trust.Origin) (by, when string) {
	kind, at := s.Lowered(o)
	if kind == "" {
		return "", ""
	}
	return string(kind), time.Unix(at, 0).UTC().Format(time.RFC3339)
}

// WriteRows prints the scores at a time as JSON lines, and returns their number. size is that of the log.
func WriteRows(dst io.Writer, s *trust.State, size int64, at time.Time) (n int, err error) {
	w := bufio.NewWriter(dst)
	for o, score := range s.All(at.Unix()) {
		by, when := lastLowered(s, o)
		if err := terminal.WriteJSON(w, Row{o.Server, o.Tool, o.Validator, score.String(), by, when, size, at.UTC().Truncate(time.Second), s.Options().Name()}); err != nil {
			return n, err
		}
		n++
	}
	return n, w.Flush()
}

// WriteTable prints the scores at a time for a person, and returns their number.
func WriteTable(dst io.Writer, s *trust.State, at time.Time) (n int, err error) {
	w := tabwriter.NewWriter(dst, 0, 0, 2, ' ', 0)
	for o, score := range s.All(at.Unix()) {
		if n++; n == 1 {
			fmt.Fprintln(w, "SCORE\tOF\tLOWERED LAST BY")
		}
		name := o.Server
		switch {
		case o.Tool != "":
			name += "/" + o.Tool
		case o.Validator != "":
			name = "validator " + o.Validator
		}
		by, when := lastLowered(s, o)
		if by == "" {
			by = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", score, terminal.Inline(name), strings.TrimSpace(by+" "+when))
	}
	return n, w.Flush()
}
