// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

const journalPath = "journal"

var journalRoutes = []route{
	{pattern: "GET " + journalPath, least: Viewer, handle: (*Console).journal},
	{pattern: "GET " + journalPath + "/{id}", least: Viewer, handle: (*Console).journalDecision},
}

// journalLimit is the number of decisions of the journal that a page lists.
const journalLimit = 200

// readsJournal reports whether the person may see the journal of this machine, whose servers no configuration grants.
func (c *Console) readsJournal(who Person) bool { return c.opt.Journal != nil && who.AllServers }

// findInJournal returns the decision of that id.
func (c *Console) findInJournal(id ledger.ID) (row index.Row, found bool, err error) {
	for row, err := range c.opt.Journal(id.String()) {
		if err != nil || row.ID == id {
			return row, err == nil, err
		}
	}
	return row, false, nil
}

type journalView struct {
	Query  marked.Plain
	Wrong  marked.Text // why the filter selects nothing
	Bad    bool
	HasLog bool
	Shown  Own
	Full   bool // older decisions are left out
	Rows   []recordRow
	Same   marked.Plain
}

func (journalView) template() string { return "journal" }

var errJournalFilter = errors.New("the journal has no persons and digests, and no decision about another one")

// journal lists the decisions of this machine that are in no log.
func (c *Console) journal(q *request) answer {
	if !c.readsJournal(q.who) {
		return notFound()
	}
	text := q.URL.Query().Get("q")
	v := journalView{Query: marked.Spelled(text), HasLog: c.opt.Ledger != nil, Same: marked.Spelled(strings.TrimSpace("pellucid ledger show " + text))}
	f, err := index.Parse(text, q.now)
	if err == nil && (f.Personal() || f.Of != ledger.ID{}) {
		err = errJournalFilter
	}
	if err != nil {
		v.Wrong, v.Bad = marked.Of(err.Error()), true
		return page("Journal", v)
	}
	rows, err := index.Newest(c.opt.Journal(""), &f, journalLimit, func(r *index.Row) index.Row { return *r })
	if err != nil {
		return failed(err)
	}
	v.Shown, v.Full = count(int64(len(rows))), len(rows) == journalLimit
	for i := range rows {
		v.Rows = append(v.Rows, newJournalRow(&rows[i]))
	}
	return page("Journal", v)
}

// newJournalRow is newRecordRow with the links of the journal.
func newJournalRow(r *index.Row) recordRow {
	out := newRecordRow(r)
	out.Index, out.To = "", pathTo(journalPath+"/"+r.ID.String())
	for i, code := range r.Codes {
		f := index.Filter{Code: code.Code}
		out.Codes[i].To = pathTo(journalPath, "q", f.String())
	}
	return out
}

type journalDecisionView struct {
	Row       recordRow
	Explained *explainedView
}

func (journalDecisionView) template() string { return "decision" }

// journalDecision is the page of one decision of the journal.
func (c *Console) journalDecision(q *request) answer {
	id, err := ledger.ParseID(q.PathValue("id"))
	if err != nil || !c.readsJournal(q.who) {
		return notFound()
	}
	row, found, err := c.findInJournal(id)
	switch {
	case err != nil:
		return failed(err)
	case !found:
		return notFound()
	}
	return page("Decision", journalDecisionView{newJournalRow(&row), c.explainDecision(q, id.String())})
}
