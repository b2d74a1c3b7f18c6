// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/boundary/pinview"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

var overviewRoutes = []route{
	{pattern: "GET overview", least: Viewer, handle: (*Console).overview, rail: entry{place: 10, word: "Overview", icon: "overview", key: "o"}},
}

type overviewView struct {
	Now     Own
	Waits   []waitView
	HasLog  bool
	Journal Path // of this machine, where it has decisions
	Log     []factView
}

func (overviewView) template() string { return "overview" }

// A waitView is a number of things that wait for a person.
type waitView struct {
	N    Own // "–": not known
	To   Path
	Word Own
	Note Own
}

func (c *Console) overview(q *request) answer {
	v := overviewView{Now: minute(q.now), HasLog: c.opt.Ledger != nil}
	if err := v.waiting(c, q); err != nil {
		return failed(err)
	}
	if c.readsJournal(q.who) {
		for _, err := range c.opt.Journal("") {
			if err != nil {
				return failed(err)
			}
			v.Journal = pathTo(journalPath)
			break
		}
	}
	if c.opt.Ledger != nil {
		if err := v.log(q.Context(), c.opt.Ledger, q.now); err != nil {
			return failed(err)
		}
	}
	return page("Overview", v)
}

// waiting says what waits for a person, and since when.
func (v *overviewView) waiting(c *Console, q *request) error {
	for _, w := range []struct {
		read             func(context.Context) ([]Waiting, error)
		word, none, path Own
	}{{c.opt.Held, "results held", "No result waits.", "review"}, {c.opt.Blocked, "sources blocked by a verdict", "No source is blocked.", ""}} {
		out := waitView{N: unknown, Word: w.word, Note: "This console does not know them."}
		if w.read != nil {
			list, err := w.read(q.Context())
			if err != nil {
				return err
			}
			n, since := 0, time.Time{}
			for _, x := range list {
				if q.who.Sees(x.Server) {
					if n += x.N; since.IsZero() || x.Since.Before(since) {
						since = x.Since
					}
				}
			}
			out.N, out.Note = count(int64(n)), w.none
			if n > 0 {
				out.Note = "the oldest for " + lasts(q.now.Sub(since))
			}
			if w.path != "" && c.opens(q.who, string(w.path)) {
				out.To = pathTo(string(w.path))
			}
		}
		v.Waits = append(v.Waits, out)
	}
	return v.waitingItems(c, q)
}

// waitingItems counts the tools and other items of servers that clients do not see until a person decides.
func (v *overviewView) waitingItems(c *Console, q *request) error {
	if len(c.opt.Pins) == 0 {
		return nil
	}
	pins, err := c.pinsSeen(q)
	if err != nil {
		return err
	}
	items, servers := 0, 0
	for i := range pins {
		if n := pinview.NewRow("", &pins[i]).Pending; n > 0 {
			items, servers = items+n, servers+1
		}
	}
	out := waitView{N: count(int64(items)), Word: "tools and other items not approved", Note: "No item of a server waits.", To: pathTo("servers")}
	if servers > 0 {
		out.Note = "of " + counted(int64(servers), "server")
	}
	v.Waits = append(v.Waits, out)
	return nil
}

// opens reports whether there is a page at the path below Base, and the person has the role for it.
func (c *Console) opens(who Person, path string) bool {
	return slices.ContainsFunc(c.routes, func(r route) bool { return r.pattern == "GET "+path && who.Role >= r.least })
}

// log says how the log is.
func (v *overviewView) log(ctx context.Context, l *storage.Ledger, now time.Time) error {
	head, err := l.Head(ctx)
	if errors.Is(err, sequence.ErrNoLog) {
		v.Log = []factView{{Name: "records", Value: marked.Identifier("none yet")}}
		return nil
	} else if err != nil {
		return err
	}
	add := func(name, value Own, to Path) {
		v.Log = append(v.Log, factView{name, marked.Identifier(string(value)), to})
	}
	add("records", count(head.Size), recordsPath(index.Filter{}))
	v.Log = append(v.Log, factView{"name", marked.Identifier(head.Origin), ""})
	waiting, err := l.Waiting(ctx, maxWaiting)
	if err != nil {
		return err
	}
	switch {
	case waiting == 0:
		add("not signed yet", "none", "")
	case waiting == maxWaiting:
		add("not signed yet", "more than "+count(maxWaiting), "")
	default:
		add("not signed yet", count(int64(waiting)), "")
	}
	cosigned, at, err := l.CosignedSize(ctx)
	switch {
	case err != nil:
		return err
	case cosigned == 0:
		add("witnesses", "no checkpoint is cosigned", "")
	default:
		add("witnesses", "cosigned up to record "+count(cosigned)+", "+lasts(now.Sub(at))+" ago", "")
	}
	switch {
	case head.Stop != nil:
		add("state", "stopped: a checkpoint was seen that contradicts it", "")
	}
	return nil
}

// maxWaiting bounds the counting of records that wait for their signature.
const maxWaiting = 10_000
