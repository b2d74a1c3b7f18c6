// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/record/hold"
)

// A grantedView is an exception in force.
type grantedView struct {
	Server marked.Name
	Tool   *marked.Name
	Code   Own
	This   bool // it is for one result
	Until  Own
	By     marked.Name
	Why    *marked.Text
	Revoke bool // the person may end it
	End    Path

	Second   *marked.Name // who confirmed it
	Proposed bool         // it waits for a second person
	Lasts    Own          // how long it will last then
	Stands   bool         // one person has granted it, and it does not count, since two are needed now
	Confirm  bool         // the person may confirm it
}

// exceptions lists the exceptions in force or proposed for servers that the person sees.
func (c *Console) exceptions(q *request, v *reviewView) error {
	if c.opt.Exceptions == nil {
		return nil
	}
	list, err := c.opt.Exceptions.List(q.Context(), false)
	for i := range list {
		e := &list[i]
		if !q.who.Sees(e.Server) || len(v.Granted) == groupPage {
			continue
		}
		g := grantedView{Server: marked.Identifier(e.Server), Tool: nameOf(e.Tool), Code: codeName(e.Code), This: e.Digest != hold.Digest{}, Until: minute(e.Until),
			By: marked.Identifier(e.By), Revoke: q.who.Administers(e.Server), End: pathTo("exceptions/" + segment(e.ID))}
		if e.Second != "" {
			g.Second = nameOf(e.Second)
		}
		g.Proposed, g.Lasts = e.Proposed(), lasts(e.Keep)
		g.Stands = !g.Proposed && !c.opt.Exceptions.Counts(e, q.now)
		g.Confirm = (g.Proposed || g.Stands) && g.Revoke && !hold.SamePerson(e.By, q.who.ID)
		if e.Why != "" {
			why := marked.Of(e.Why)
			g.Why = &why
		}
		v.Granted = append(v.Granted, g)
	}
	return err
}

// grantable reports whether the person can grant an exception for what has held the item, and why not.
func (c *Console) grantable(q *request, it *hold.Item) (can bool, why Own) {
	switch {
	case c.opt.Exceptions == nil:
		return false, ""
	case it.Rule == hold.GuardCall:
		return false, "An exception lets results pass, and this is a call. pellucid quarantine release --remember approves the same call for a time."
	case it.IsCall():
		return false, "An exception lets results pass, and this is a call. To let such calls pass, change the rule of the policy that holds them."
	case !hold.Exceptable(it.Code):
		return false, "No exception can be granted for " + codeName(it.Code) + ": change the rule that holds such results."
	case !q.who.Administers(it.Server):
		return false, "An admin of the server can let such results pass for a time."
	}
	return true, ""
}

// grantException grants an exception for what has held an item.
func (c *Console) grantException(q *request) answer {
	if c.opt.Queue == nil || c.opt.Exceptions == nil {
		return noQueue()
	}
	it, err := c.opt.Queue.Get(q.Context(), q.PostFormValue("id"))
	if err != nil {
		return failed(err)
	}
	if !q.who.Administers(it.Server) {
		return notYours()
	}
	keep, known := map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "30d": 30 * 24 * time.Hour, "90d": 90 * 24 * time.Hour}[q.PostFormValue("for")]
	x := hold.Exception{Server: it.Server, Tool: it.Tool, Code: it.Code, By: q.who.ID, Why: cutWhy(q.PostFormValue("why"))}
	if q.PostFormValue("this") != "" {
		x.Digest = it.Digest
	}
	if can, _ := c.grantable(q, &it); !known || !can {
		return state{status: http.StatusBadRequest, title: "Nothing was granted", says: "No exception can be granted for what has held this item.", why: "Change the rule in the configuration."}
	}
	x, err = c.opt.Exceptions.Grant(q.Context(), x, keep, it.People > 1)
	if err != nil {
		return failed(err)
	}
	return seeOther(pathTo("review/"+segment(it.ID), "told", c.told.put(q.who.ID, toldView{Granted: true, Waits: x.Proposed(), Until: minute(x.Until)})))
}

func cutWhy(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), hold.MaxWhy)], "")
}

// changeException confirms or ends an exception.
func (c *Console) changeException(q *request) answer {
	if c.opt.Exceptions == nil {
		return noQueue()
	}
	x, err := c.opt.Exceptions.Get(q.Context(), q.PathValue("id"))
	switch {
	case err != nil:
		return failed(err)
	case !q.who.Administers(x.Server):
		return notYours()
	}
	switch q.PostFormValue("do") {
	case "confirm":
		_, err = c.opt.Exceptions.Confirm(q.Context(), x.ID, q.who.ID)
	case "end":
		err = c.opt.Exceptions.Revoke(q.Context(), x.ID, q.who.ID)
	default:
		return notFound()
	}
	if err != nil {
		return failed(err)
	}
	return seeOther(pathTo("review"))
}
