// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/review"
)

// A queueQuery is what the address of the queue says.
type queueQuery struct {
	f    hold.Filter
	by   hold.GroupBy // "": items
	sort hold.GroupSort
	skip int
	ask  string // "deny" or "release": what is to be confirmed; "": nothing
	sel  []string
	seen bool // the address has a time
}

// notRead are the members of an address or a form of the queue that readQueue leaves to others.
var notRead = []string{"do", "filter", "shown", "told"}

// readQueue reads an address or a form. What it cannot read is an error: a list without it would have more in it than
// was asked for, and so would a decision about what the list selects.
func readQueue(v url.Values, now time.Time) (queueQuery, error) {
	q := queueQuery{by: hold.ByDigest, sort: hold.MostFirst, sel: v["sel"]}
	q.f.State = hold.Held
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if name == "sel" || slices.Contains(notRead, name) {
			continue
		}
		err := errTwice
		if len(v[name]) == 1 {
			err = q.read(name, v.Get(name), now)
		}
		if err != nil {
			t := index.Term{Name: name}
			return queueQuery{}, fmt.Errorf("%s: %w", t.Label(), err)
		}
	}
	q.f.Since = q.f.Since.Truncate(time.Second)
	q.f.Oldest = q.by == "" && q.sort == hold.OldestFirst
	if q.seen = !q.f.AsOf.IsZero(); q.f.AsOf.After(now) { // the clock of another replica may be ahead
		q.f.AsOf = now
	}
	return q, nil
}

var (
	errTwice = errors.New("it stands twice")
	errWord  = errors.New("it has no such value")
)

// read reads one member.
func (q *queueQuery) read(name, value string, now time.Time) (err error) {
	known := true
	switch name {
	case "state":
		if q.f.State, known = hold.State(value), hold.State(value).Known(); value == "all" {
			q.f.State, known = "", true
		}
	case "group":
		if q.by, known = hold.GroupBy(value), slices.Contains(hold.Groups, hold.GroupBy(value)); value == "none" {
			q.by, known = "", true
		}
	case "sort":
		q.sort, known = hold.GroupSort(value), slices.Contains(hold.GroupSorts, hold.GroupSort(value))
	case "ask":
		q.ask, known = value, decisions[value] != ""
	case "skip":
		q.skip, err = strconv.Atoi(value)
		known = err == nil && q.skip >= 0
	case "after":
		q.f.After = value
	case "asof":
		q.f.AsOf, err = time.Parse(time.RFC3339Nano, value)
		known = err == nil
	default:
		return review.Set(&q.f, name, value, now)
	}
	if !known {
		return errWord
	}
	return nil
}

// values are the address of the queue, without what is selected.
func (q *queueQuery) values() url.Values {
	v := url.Values{}
	set := func(name, value, usual string) {
		if value != usual {
			v.Set(name, value)
		}
	}
	set("state", firstOf(string(q.f.State), "all"), "held")
	for _, t := range review.TermsOf(&q.f) {
		v.Set(t.Name, t.Value)
	}
	set("group", firstOf(string(q.by), "none"), "digest")
	set("sort", string(q.sort), "count")
	set("skip", strconv.Itoa(q.skip), "0")
	set("after", q.f.After, "")
	if q.seen {
		v.Set("asof", q.f.AsOf.Format(time.RFC3339Nano))
	}
	return v
}

// with is the address with other values; "" removes one.
func (q *queueQuery) with(pairs ...string) Path {
	v := q.values()
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Del(pairs[i])
		if pairs[i+1] != "" {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	return queuePath("review", v)
}

// filtered leads to the list that the text of a filter selects, in place of what the address selects.
func (q *queueQuery) filtered(text string, now time.Time) answer {
	f, err := review.Filter(text, now)
	if err != nil {
		return unreadable(err, text, now)
	}
	q.seen = !f.AsOf.IsZero()
	f.State, f.Oldest, q.skip = q.f.State, q.f.Oldest, 0
	q.f = f
	return seeOther(q.with())
}

// unreadable says what of a filter cannot be read. No list stands on its page: it would have more in it.
func unreadable(err error, text string, now time.Time) answer {
	s := queueQuery{f: hold.Filter{State: hold.Held}, by: hold.ByDigest, sort: hold.MostFirst}
	v := &reviewView{Bad: true, Wrong: marked.Of(err.Error()), N: unknown, AsOf: moment(now), Same: marked.Spelled(s.command())}
	s.choices(v)
	v.Filter = marked.Spelled(text)
	return pageAnswer{http.StatusBadRequest, "Review", v}
}

// limited narrows the filter to the servers of which the person is a reviewer.
func limited(f hold.Filter, p Person) hold.Filter {
	if p.AllServers && p.Reviews == nil {
		return f
	}
	f.Servers = []string{}
	for _, server := range slices.Concat(p.Servers, p.Reviews) {
		if p.Decides(server) && !slices.Contains(f.Servers, server) {
			f.Servers = append(f.Servers, server)
		}
	}
	return f
}

// choices fills the parts of the page that lead to other lists.
func (q *queueQuery) choices(v *reviewView) {
	for _, by := range []Own{"digest", "server", "tool", "code", "principal", "none"} {
		here := string(by) == string(q.by) || by == "none" && q.by == ""
		v.Groups = append(v.Groups, choiceView{q.with("group", string(by), "skip", "", "after", ""), by, here})
	}
	for _, st := range []Own{"held", "released", "taken", "denied", "expired", "all"} {
		here := string(st) == string(q.f.State) || st == "all" && q.f.State == ""
		v.States = append(v.States, choiceView{q.with("state", string(st), "skip", "", "after", ""), st, here})
	}
	for _, o := range []struct{ word, sort Own }{{"most items", "count"}, {"newest", "newest"}, {"oldest", "oldest"}} {
		v.Sorts = append(v.Sorts, choiceView{q.with("sort", string(o.sort), "skip", "", "after", ""), o.word, string(o.sort) == string(q.sort)})
	}
	for _, t := range review.TermsOf(&q.f) {
		v.Chips = append(v.Chips, chipView{labelWord(t.Name), marked.Identifier(t.Value), q.with(t.Name, "", "skip", "", "after", "")})
	}
	v.Filter = marked.Spelled(review.FilterText(&q.f))
	vals := q.values()
	for _, name := range []Own{"state", "group", "sort"} {
		if vals.Has(string(name)) {
			v.Hidden = append(v.Hidden, inputView{name, marked.Spelled(vals.Get(string(name)))})
		}
	}
	v.Keep = hiddenInputs(vals)
}

// hiddenInputs are an address in a form.
func hiddenInputs(v url.Values) (out []inputView) {
	for _, name := range slices.Sorted(maps.Keys(v)) {
		out = append(out, inputView{own(name), marked.Spelled(v.Get(name))})
	}
	return out
}

// command is the command that prints the same list.
func (q *queueQuery) command() string {
	list := []string{"pellucid quarantine list"}
	if q.f.ID != "" { // no flag has it
		list = append(list, terminal.ShellWord(review.FilterText(&q.f)))
	} else {
		for _, t := range review.TermsOf(&q.f) {
			list = append(list, "--"+t.Name, terminal.ShellWord(t.Value))
		}
	}
	if q.f.State != hold.Held {
		list = append(list, "--state", firstOf(string(q.f.State), "all"))
	}
	if q.by != "" {
		list = append(list, "--group", string(q.by), "--sort", string(q.sort))
	} else if q.f.Oldest {
		list = append(list, "--sort", "oldest")
	}
	return strings.Join(list, " ")
}
