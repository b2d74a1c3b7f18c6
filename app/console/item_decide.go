// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/pellucid-mcp/pellucid/record/hold"
)

// decideHeld decides about one item, and leads to the next one of the list.
func (c *Console) decideHeld(q *request) answer {
	if c.opt.Queue == nil {
		return noQueue()
	}
	it, err := c.opt.Queue.Get(q.Context(), q.PathValue("id"))
	switch {
	case err != nil:
		return failed(err)
	case !q.who.Decides(it.Server):
		return notYours()
	}
	list, err := listOf(q)
	if err != nil {
		return unreadable(err, "", q.now)
	}
	next, err := c.besideItem(q, &it, list, false)
	if err != nil {
		return failed(err)
	}
	sum, to := hold.Decided{Done: 1}, hold.Denied
	switch q.PostFormValue("do") {
	case "deny":
		err = c.opt.Queue.Deny(q.Context(), it.ID, q.who.ID)
	case "release":
		to = hold.Released
		if err = c.opt.Queue.Release(q.Context(), it.ID, q.who.ID); err == nil && it.People > 1 && it.Proposer == "" {
			sum = hold.Decided{Proposed: 1}
		}
	default:
		return notFound()
	}
	if not := refusedOf(err); not != nil {
		return c.notDecided(q, it.ID, not)
	}
	if err != nil {
		return failed(err)
	}
	told := c.told.put(q.who.ID, toldOf(to, &sum))
	if next == "" {
		list.Set("told", told)
		return seeOther(queuePath("review", list))
	}
	return seeOther(pathTo("review/"+segment(next), "list", list.Encode(), "told", told))
}

// refusedOf says why a person could not decide; nil: not for a reason that the person can do something about.
func refusedOf(err error) *toldView {
	t := toldView{Refused: true, First: errors.Is(err, hold.ErrDecided), Second: errors.Is(err, hold.ErrSecond), Sealed: errors.Is(err, hold.ErrSealed)}
	if t.First || t.Second || t.Sealed {
		return &t
	}
	return nil
}

// notDecided is the page of an item about which the person could not decide: it says by whom it was decided.
func (c *Console) notDecided(q *request, id string, why *toldView) answer {
	it, err := c.opt.Queue.Get(q.Context(), id)
	if err != nil {
		return failed(err)
	}
	list, err := listOf(q)
	if err != nil {
		return unreadable(err, "", q.now)
	}
	q.URL.RawQuery = url.Values{"told": {c.told.put(q.who.ID, *why)}, "list": {list.Encode()}}.Encode()
	return c.itemPage(q, &it, http.StatusConflict)
}
