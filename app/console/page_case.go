// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// exportCase gives all that is known and provable of a decision as one file, to a person who may read what is held of the
// server. What is encrypted to reviewers stays encrypted.
func (c *Console) exportCase(q *request) answer {
	if c.opt.Case == nil || c.opt.Ledger == nil {
		return notFound()
	}
	_, st, not := c.entry(q)
	switch {
	case not != nil:
		return not
	case !q.who.Decides(st.Server):
		return noRight(q.who.RoleOn(st.Server), Reviewer)
	}
	var b bytes.Buffer
	if err := c.opt.Case(q.Context(), st.ID, &b); err != nil {
		return failed(err)
	}
	c.opt.Log.Info("console: a case was exported", "person", q.who.ID, "decision", st.ID.String())
	c.record(q.Context(), Act{Did: didExport, Person: q.who.ID})
	return fileAnswer{st.ID, b.Bytes()}
}

// A fileAnswer is a case as a file to be kept.
type fileAnswer struct {
	id   ledger.ID
	body []byte
}

func (a fileAnswer) write(_ *Console, w http.ResponseWriter, _ *request) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Disposition", `attachment; filename="case-`+a.id.String()+`.json"`)
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	_, _ = w.Write(a.body)
}
