// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// A Query says which records are shown, and how.
type Query struct {
	Filter   sequence.Filter
	ID       string // only this record, which may stand in the journal or in the queue instead
	JSON     bool   // for a program
	Openings bool   // with JSON, the openings as well
}

// ParseID reads the evidence id by which a person names a record.
func ParseID(s string) (ledger.ID, error) {
	id, err := ledger.ParseID(s)
	if err != nil {
		return id, exit.With(exit.Usage, errors.New("a record is named by 32 hexadecimal digits, in lower case: the evidence id"))
	}
	return id, nil
}

// Show prints what a database has for the query, and returns how many records that are.
func (q *Query) Show(d install.Database, out io.Writer) (n int, err error) {
	err = d.WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, dir *state.Dir) error {
		list, err := q.list(ctx, l, dir)
		if err != nil {
			return err
		}
		n = len(list)
		w := bufio.NewWriter(out)
		if q.JSON {
			err = writeRows(w, list, q.Openings)
		} else {
			err = writeTable(w, list, q.ID != "")
		}
		if err != nil {
			return err
		}
		return w.Flush()
	})
	if q.ID != "" && (errors.Is(err, install.ErrNoLog) || errors.Is(err, errNoRecord)) {
		return 1, q.elsewhere(d, out, err)
	}
	return n, err
}

func (q *Query) list(ctx context.Context, l *storage.Ledger, dir *state.Dir) ([]sequence.Entry, error) {
	if q.ID == "" {
		return l.List(ctx, q.Filter)
	}
	id, err := ParseID(q.ID)
	if err != nil {
		return nil, err
	}
	one, err := Find(ctx, l, dir, id)
	return []sequence.Entry{one}, err
}

// elsewhere shows the decision of an id that the log does not have. cause is what the log says.
func (q *Query) elsewhere(d install.Database, out io.Writer, cause error) error {
	id, err := ParseID(q.ID)
	if err != nil {
		return err
	}
	dir, err := install.Open()
	if err != nil {
		return err
	}
	found, err := look(dir, d, id)
	switch {
	case err != nil:
		return err
	case found == nil:
		return cause
	case q.JSON:
		return found.WriteJSON(out)
	}
	return found.Write(out)
}
