// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/review"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// A journalRow is a decision as decisions.jsonl has it, where no ledger is configured.
type journalRow struct {
	ID           string           `json:"id"`
	Time         time.Time        `json:"time"`
	Server       string           `json:"server"`
	Tool         string           `json:"tool,omitempty"`
	Method       string           `json:"method"`
	Kind         string           `json:"kind"`
	Verdict      string           `json:"verdict"`
	Inspected    int64            `json:"inspected"`
	Findings     map[string]int64 `json:"findings,omitempty"`
	NotInspected map[string]int64 `json:"not_inspected,omitempty"`
	Withheld     map[string]int64 `json:"withheld,omitempty"`
}

// believed is the row as far as it is what this program writes: a journal may have been
// changed by hand.
func (r *journalRow) believed() *journalRow {
	for _, s := range []*string{&r.Server, &r.Method, &r.Kind, &r.Verdict} {
		if !frame.IsLabel(*s) {
			*s = frame.Other
		}
	}
	if r.Tool != "" && !frame.IsLabel(r.Tool) {
		r.Tool = frame.Other
	}
	for _, m := range []map[string]int64{r.Findings, r.NotInspected, r.Withheld} {
		maps.DeleteFunc(m, func(code string, _ int64) bool { return !frame.IsLabel(code) })
	}
	return r
}

// journaled finds the decision of that id in the journal of this state directory, with the
// files that were put aside; nil if it has none.
func journaled(dir *state.Dir, id ledger.ID) (*journalRow, error) {
	for record, err := range dir.Records("decisions.jsonl") {
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(record, []byte(id.String())) {
			continue
		}
		var r journalRow
		if json.Unmarshal(record, &r) == nil && r.ID == id.String() {
			return r.believed(), nil
		}
	}
	return nil, nil
}

// errNoRecord: the ledger has no record of an id.
var errNoRecord = errors.New("ledger: no record has this id")

// elsewhere shows the decision of an id that the ledger does not have: it may stand in the
// journal, or its result in the queue. cause is what the ledger says.
func (c *ledgerShowCmd) elsewhere(e *env, cause error) error {
	id, err := recordID(c.ID)
	if err != nil {
		return err
	}
	dir, err := install.Open()
	if err != nil {
		return err
	}
	row, err := journaled(dir, id)
	if err != nil {
		return err
	}
	held := c.held(dir, id)
	if row == nil && held == nil {
		return cause
	}
	w := bufio.NewWriter(e.Stdout)
	switch {
	case c.JSON && row != nil:
		err = terminal.WriteJSON(w, struct {
			Journal *journalRow `json:"journal"`
		}{row})
	case c.JSON:
		err = terminal.WriteJSON(w, struct {
			Held string `json:"held"`
			ID   string `json:"id"`
		}{string(held.State), id.String()})
	case row != nil:
		of := row.Server
		if row.Tool != "" {
			of += "/" + row.Tool
		}
		fmt.Fprintln(w, "In the journal of this machine, not in a ledger:")
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintf(table, "TIME\tKIND\tOF\tVERDICT\tID\n%s\t%s\t%s\t%s\t%s\n",
			row.Time.UTC().Format(time.RFC3339), row.Kind, of, row.Verdict, row.ID)
		_ = table.Flush() // an error of w comes back when w is flushed
		foundCodes(w, "found", row.Findings)
		foundCodes(w, "withheld for", row.Withheld)
		foundCodes(w, "not inspected", row.NotInspected)
	}
	if held != nil && !c.JSON {
		fmt.Fprintf(w, "In the queue: %s. To read it: pellucid quarantine show %s\n", held.State, id)
	}
	return errors.Join(err, w.Flush())
}

// held is the item of the queue that has this id; nil if there is none.
func (c *ledgerShowCmd) held(dir *state.Dir, id ledger.ID) *hold.Item {
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	s, err := c.DB.Open(ctx, dir, false)
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

// foundCodes prints codes with their numbers, if there are any.
func foundCodes(w io.Writer, what string, counts map[string]int64) {
	if len(counts) == 0 {
		return
	}
	var list []string
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%s %d", code, counts[code]))
	}
	fmt.Fprintf(w, "%s: %s\n", what, strings.Join(list, ", "))
}

// detail prints what a record says was found.
func detail(w io.Writer, st *ledger.Statement) {
	of := func(list []ledger.Count) map[string]int64 {
		m := map[string]int64{}
		for _, c := range list {
			m[string(c.Code)] += c.N
		}
		return m
	}
	foundCodes(w, "found", of(st.Findings))
	foundCodes(w, "withheld for", of(st.Withheld))
	foundCodes(w, "not inspected", of(st.NotInspected))
	if st.Rule != "" {
		fmt.Fprintf(w, "rule: %s\n", st.Rule)
	}
	if st.Of != (ledger.ID{}) {
		fmt.Fprintf(w, "about: %s\n", st.Of)
	}
}
