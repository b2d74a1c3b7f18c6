// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// A Query says which records are shown, and how.
type Query struct {
	Filter   index.Filter
	Limit    int       // 0 stands for 100, the most is 1,000
	Before   *int64    // only what the list has behind the record of this index; nil: from the newest on
	ID       string    // only this record, which may stand in the journal or in the queue instead
	JSON     bool      // for a program
	Openings bool      // with JSON, the openings as well
	Notice   io.Writer // for what a person should know; nil: nothing is said
}

var errName = errors.New("a record is named by its evidence id, 32 hexadecimal digits in lower case, or by its index in the log")

// ParseID reads the evidence id by which a person names a record.
func ParseID(s string) (ledger.ID, error) {
	id, err := ledger.ParseID(s)
	if err != nil {
		return id, exit.With(exit.Usage, errName)
	}
	return id, nil
}

// Named is the id of the record that a person names by its id, or by its index in the log of the database.
func Named(d install.Database, name string) (id ledger.ID, err error) {
	index, err := strconv.ParseUint(name, 10, 62)
	if err != nil || len(name) == 2*len(id) {
		return ParseID(name)
	}
	err = d.WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		e, err := l.At(ctx, int64(index))
		if errors.Is(err, ledger.ErrNotFound) {
			return fmt.Errorf("ledger: the log has no record of the index %d", index)
		}
		id = e.ID
		return err
	})
	return id, err
}

// Show prints what a database has for the query, and returns how many records that are. Where
// there is no log, the journal of the state directory is searched.
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
	switch {
	case q.ID != "" && (errors.Is(err, install.ErrNoLog) || errors.Is(err, errNoRecord)):
		return 1, q.elsewhere(d, out, err)
	case errors.Is(err, install.ErrNoLog):
		return q.journal(out, err)
	}
	return n, err
}

func (q *Query) list(ctx context.Context, l *storage.Ledger, dir *state.Dir) ([]sequence.Entry, error) {
	if q.ID == "" {
		return q.search(ctx, l)
	}
	id, err := ParseID(q.ID)
	if err != nil {
		return nil, err
	}
	one, err := Find(ctx, l, dir, id)
	return []sequence.Entry{one}, err
}

// many is the number of records behind which a person is told that the index comes first.
const many = 20_000

// search lists what the filter selects, once the index has what the log has now.
func (q *Query) search(ctx context.Context, l *storage.Ledger) ([]sequence.Entry, error) {
	told := false
	err := index.NewFollower(l, slog.New(slog.DiscardHandler)).Catch(ctx, func(st index.Status) {
		if n := st.Behind(); n > many && !told {
			told = true
			q.say("%s of the log come into the index first: this is done once.\n", terminal.Plural(int(n), "record"))
		}
	})
	if err != nil {
		return nil, err
	}
	page := storage.Page{Limit: q.limit()}
	if q.Before != nil {
		e, err := l.At(ctx, *q.Before)
		if errors.Is(err, ledger.ErrNotFound) {
			return nil, exit.With(exit.Usage, errors.New("ledger: --before: the log has no record of this index"))
		} else if err != nil {
			return nil, err
		}
		page.After = storage.Cursor{At: index.Micros(e.Time), Index: e.Index}
	}
	var indices []int64
	err = l.View(ctx, func(v *storage.View) error {
		if v.Status.KeyMissing && q.Filter.Personal() {
			q.say("Some records were indexed with a key that was retired: pellucid ledger show --rebuild finds them again.\n")
		}
		for {
			list, err := v.List(&q.Filter, page)
			if err != nil {
				return err
			}
			for _, r := range list.Rows {
				indices = append(indices, r.Index)
			}
			if page.After = list.Next; !list.Partial || len(indices) >= q.limit() {
				break
			}
			page.Limit = q.limit() - len(indices)
		}
		if n := len(indices); page.After != (storage.Cursor{}) && n > 0 {
			q.say("The list ends after %s. Older ones: --before %d\n", terminal.Plural(n, "record"), indices[n-1])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l.These(ctx, indices)
}

func (q *Query) limit() int {
	if q.Limit <= 0 {
		return 100
	}
	return min(q.Limit, 1000)
}

func (q *Query) say(format string, args ...any) {
	if q.Notice != nil {
		fmt.Fprintf(q.Notice, format, args...)
	}
}

// elsewhere shows the decision of an id that the log does not have. cause is what the log says.
func (q *Query) elsewhere(d install.Database, out io.Writer, cause error) error {
	id, err := ParseID(q.ID)
	if err != nil {
		return err
	}
	dir, err := local.OpenState()
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

// journal lists the decisions of the journal that the filter selects, the newest first. cause is why there
// is no log; it stands where there is no journal either.
func (q *Query) journal(out io.Writer, cause error) (int, error) {
	dir, err := local.OpenState()
	if err != nil {
		return 0, err
	}
	switch there, err := HasJournal(dir); {
	case err != nil:
		return 0, err
	case !there:
		return 0, cause
	case q.Filter.Principal != ledger.Digest{} || q.Filter.By != ledger.Digest{} || q.Filter.Digest != ledger.Digest{} || q.Before != nil:
		return 0, exit.With(exit.Usage, errors.New("ledger: there is no ledger, and the journal has no principals, digests and indices"))
	}
	list, err := index.Newest(Journal(dir, ""), &q.Filter, q.limit(), (*JournalRow).AsRow)
	if err != nil {
		return 0, err
	}
	q.say("There is no ledger. These are decisions of the journal of this machine, which is not signed.\n")
	w := bufio.NewWriter(out)
	if q.JSON {
		for i := range list {
			if err := (&unlogged{Journal: &list[i]}).WriteJSON(w); err != nil {
				return 0, err
			}
		}
	} else if err := writeJournal(w, list); err != nil {
		return 0, err
	}
	return len(list), w.Flush()
}

// Parse reads the filter of a list: the text form, and terms by their names. A term stands once.
func Parse(text string, terms map[string]string) (index.Filter, error) {
	at := time.Now()
	f, err := index.Parse(text, at)
	if err != nil {
		return f, exit.With(exit.Usage, err)
	}
	for _, name := range index.Terms {
		value := terms[name]
		if value == "" {
			continue
		}
		before := f.String()
		if err := f.Set(name, value, at); err != nil {
			return f, exit.With(exit.Usage, fmt.Errorf("--%s: %w", name, err))
		}
		if has(before, name) {
			return f, exit.With(exit.Usage, fmt.Errorf("ledger: %s stands in the filter and in --%s", name, name))
		}
	}
	return f, nil
}
