// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/review"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// decisions are what can be done with a selection, by the words of the forms.
var decisions = map[string]hold.State{"deny": hold.Denied, "release": hold.Released}

// groupKey is the group in a selection: the terms that narrow the filter to it.
func groupKey(g *hold.Group, by hold.GroupBy) string {
	f := g.Filter(hold.Filter{}, by)
	return keyOf(&f)
}

// keyOf is a filter in a selection.
func keyOf(f *hold.Filter) string {
	v := url.Values{}
	for _, t := range review.TermsOf(f) {
		v.Set(t.Name, t.Value)
	}
	return v.Encode()
}

// selected are the filters of a selection: each narrows that of the page. One that cannot be read is an error, and so is
// one that leads out of the page.
func (q *queueQuery) selected(p Person) (list []hold.Filter, err error) {
	if len(q.sel) > groupPage {
		return nil, fmt.Errorf("sel: more than %d are selected", groupPage)
	}
	page := map[string]string{}
	for _, t := range review.TermsOf(&q.f) {
		page[t.Name] = t.Value
	}
	for _, key := range q.sel {
		v, err := url.ParseQuery(key)
		if err != nil || len(v) == 0 {
			return nil, errors.New("sel: it selects nothing")
		}
		f := limited(q.f, p)
		f.After, f.Limit, f.State = "", 0, hold.Held
		for name, values := range v {
			t := index.Term{Name: name, Value: values[0]}
			switch was := page[name]; {
			case len(values) != 1:
				err = errTwice
			case name == "since" || name == "until": // the time of a selection is that of its page
				err = errors.New("a group has no time")
			case was != "" && was != t.Value:
				err = errors.New("it has another value in the filter of the page")
			default:
				err = review.Set(&f, t.Name, t.Value, time.Time{})
			}
			if err != nil {
				return nil, fmt.Errorf("sel: %s: %w", t.Label(), err)
			}
		}
		list = append(list, f)
	}
	return list, nil
}

// askAbout says what is selected, before it is decided about.
func (c *Console) askAbout(q *request, v *reviewView, s *queueQuery, filters []hold.Filter) error {
	if len(filters) == 0 {
		v.Note = "Nothing is selected."
		return nil
	}
	sum, shown, err := c.opt.Queue.Show(q.Context(), filters...)
	if err != nil {
		return err
	}
	if sum.N == 0 {
		v.Note = "Nothing of what you have selected waits any more: it was decided, or has expired."
		return nil
	}
	a := &askView{Verb: "Deny", Do: "deny", Key: "d", N: count(int64(sum.N)), Many: sum.N != 1, Principals: things(sum.Principals, "principal"), Since: minute(sum.Oldest), AsOf: moment(s.f.AsOf), Cancel: s.with()}
	if s.ask == "release" {
		a.Verb, a.Do, a.Key = "Release", "release", "r"
	}
	a.Fields = append(hiddenInputs(s.values()), inputView{"shown", marked.Spelled(shown.String())})
	for _, key := range s.sel {
		a.Fields = append(a.Fields, inputView{"sel", marked.Spelled(key)})
	}
	v.Ask = a
	return nil
}

// decideSelection decides about what was selected, and leads back to the queue.
func (c *Console) decideSelection(q *request) answer {
	if c.opt.Queue == nil {
		return noQueue()
	}
	if err := q.ParseForm(); err != nil {
		return failed(err)
	}
	do := q.PostForm.Get("do")
	s, err := readQueue(q.PostForm, q.now)
	var filters []hold.Filter
	if err == nil {
		filters, err = s.selected(q.who)
	}
	if err != nil {
		return unreadable(err, q.PostForm.Encode(), q.now)
	}
	shown, err := hold.ParseShown(q.PostForm.Get("shown"))
	to := decisions[do]
	if err != nil || to == "" || !s.seen || len(filters) == 0 {
		return state{status: http.StatusBadRequest, title: "Nothing was decided", says: "Nothing was decided, because nothing was selected.",
			why: "Select groups in the queue, and decide about them there.", to: pathTo("review"), toWord: "To the queue"}
	}
	sum, err := c.opt.Queue.DecideAll(q.Context(), shown, to, q.who.ID, filters...)
	switch {
	case errors.Is(err, hold.ErrChanged):
		return s.changed(do)
	case err != nil && sum == (hold.Decided{}):
		return failed(err)
	case err != nil:
		c.opt.Log.Error("console: a selection was decided in part", "error", finding.Quote(err.Error()))
		return seeOther(s.with("told", c.told.put(q.who.ID, toldView{To: own(do), Done: things(sum.Done, "item"), Rest: true})))
	}
	return seeOther(s.with("told", c.told.put(q.who.ID, toldOf(to, &sum))))
}

// changed says that the selection has items that the person was not shown, and leads to where all are counted and asked
// about.
func (q *queueQuery) changed(do string) answer {
	v := q.values()
	v.Set("ask", do)
	v["sel"] = q.sel
	return state{status: http.StatusConflict, title: "The selection has changed", says: "Nothing was decided, because the selection has items now that the page did not show you.",
		why: "Count and look at them again, and decide then.", kind: "held", to: queuePath("review", v), toWord: "Count again"}
}
