// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/review"
)

// An unlogged is what is known of a decision that the log does not have: it may stand in the
// journal of the state directory, and its result in the queue.
type unlogged struct {
	ID      ledger.ID
	Journal *JournalRow // nil: not there
	Held    *hold.Item  // nil: not there; as it is shown
}

// look looks for a decision in the journal and in the queue of the database. It returns nil
// where neither has it.
func look(dir *state.Dir, d install.Database, id ledger.ID) (*unlogged, error) {
	row, err := Journaled(dir, id)
	if err != nil {
		return nil, err
	}
	out := &unlogged{ID: id, Journal: row, Held: queued(dir, d, id)}
	if out.Journal == nil && out.Held == nil {
		return nil, nil
	}
	return out, nil
}

// queued is the item of the queue that has this id; nil if not found. A database that
// cannot be opened has none: the log has said so.
func queued(dir *state.Dir, d install.Database, id ledger.ID) *hold.Item {
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	s, err := d.Open(ctx, dir, false)
	if err != nil {
		return nil
	}
	defer s.Close()
	it, err := hold.New(s, hold.Options{}).Get(ctx, id.String())
	if err != nil {
		return nil
	}
	return review.Believed(&it)
}

// WriteJSON prints the decision for a program: the row of the journal, else the state of the
// item.
func (x *unlogged) WriteJSON(w io.Writer) error {
	if x.Journal != nil {
		return terminal.WriteJSON(w, struct {
			Journal *JournalRow `json:"journal"`
		}{x.Journal})
	}
	return terminal.WriteJSON(w, struct {
		Held string `json:"held"`
		ID   string `json:"id"`
	}{string(x.Held.State), x.ID.String()})
}

// Write prints the decision for a person.
func (x *unlogged) Write(dst io.Writer) error {
	w := bufio.NewWriter(dst)
	if row := x.Journal; row != nil {
		fmt.Fprintln(w, "In the journal of this machine, not in a ledger:")
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintf(table, "TIME\tKIND\tOF\tVERDICT\tID\n%s\t%s\t%s\t%s\t%s\n",
			row.Time.UTC().Format(time.RFC3339), row.Kind, source(row.Server, row.Tool), row.Verdict, row.ID)
		_ = table.Flush() // an error of w comes back when w is flushed
		writeCodes(w, "found", row.Findings)
		writeCodes(w, "withheld for", row.Withheld)
		writeCodes(w, "not inspected", row.NotInspected)
	}
	if x.Held != nil {
		fmt.Fprintf(w, "In the queue: %s. To read it: pellucid quarantine show %s\n", x.Held.State, x.ID)
	}
	return w.Flush()
}
