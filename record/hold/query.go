// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Filter selects items. Members that are set must all hold.
type Filter struct {
	State       State // "": every one
	Server      string
	Tool        string
	Code        finding.Code // for which they were held
	Found       finding.Code // that is among their findings
	Rule        string
	Principal   string
	NoTool      bool      // Tool is ""
	NoPrincipal bool      // Principal is ""
	ID          string    // "": every one
	Digest      Digest    // zero: every one
	Servers     []string  // one of these; nil: whatever the server
	Since       time.Time // held then or later; zero: from the first on
	AsOf        time.Time // held then or before; zero: up to the last
	Text        string    // in the decoded hidden messages, whatever the case of ASCII letters; an encrypted item has none

	Oldest bool   // the oldest first; else the newest
	After  string // where the page before has ended: Page.Next, or the id of its last item
	Limit  int    // 0 stands for 100, the most is 1,000
}

// A Page is a part of a list.
type Page struct {
	Items []Item // without Body and Question
	// Next is Filter.After for the next page; "" where the list ends. A page may have less than Limit items and
	// a Next: then the store has looked at all it does in one go, and goes on from there.
	Next string
}

// A GroupBy says by what items are counted.
type GroupBy string

// The groups.
const (
	ByDigest    GroupBy = "digest"
	ByServer    GroupBy = "server"
	ByTool      GroupBy = "tool" // of a server
	ByCode      GroupBy = "code"
	ByPrincipal GroupBy = "principal"
)

// Groups are the words for the groups.
var Groups = []GroupBy{ByDigest, ByServer, ByTool, ByCode, ByPrincipal}

// A Group is the items that have one thing in common.
type Group struct {
	Digest                        Digest
	Server, Tool, Code, Principal string // as far as all of the group have the same by GroupBy
	N                             int
	Principals                    int // that the group is of
	Oldest, Newest                time.Time
	Last                          Item // the newest of the group, without Body and Question
}

// Filter narrows f to the items of the group.
func (g *Group) Filter(f Filter, by GroupBy) Filter {
	switch by {
	case ByDigest:
		f.Digest = g.Digest
	case ByServer:
		f.Server = g.Server
	case ByTool:
		f.Server, f.Tool, f.NoTool = g.Server, g.Tool, g.Tool == ""
	case ByCode:
		f.Code = finding.Code(g.Code)
	case ByPrincipal:
		f.Principal, f.NoPrincipal = g.Principal, g.Principal == ""
	}
	f.After = ""
	return f
}

// A GroupSort is the order of groups.
type GroupSort string

// The orders. Each begins with the largest: the most items, the latest, or the earliest oldest one.
const (
	MostFirst   GroupSort = "count"
	NewestFirst GroupSort = "newest"
	OldestFirst GroupSort = "oldest"
)

// GroupSorts are the words for the orders.
var GroupSorts = []GroupSort{MostFirst, NewestFirst, OldestFirst}

// Counted are groups of items. Their numbers add up to N, of all pages together.
type Counted struct {
	Groups []Group
	Total  int // groups
	N      int // items
	// Until: the store has counted the newest MaxGrouped items of the state alone, back to this time. Zero: it
	// has counted all.
	Until time.Time
}

// MaxGrouped is how many items of a state are counted by group.
const MaxGrouped = 50_000

// A Selection is what a Filter selects as of a time, before something is done with it.
type Selection struct {
	N          int
	Principals int
	Sources    int // different pairs of server and tool
	Digests    int // different texts
	Oldest     time.Time
	Newest     time.Time
}

// A Searcher finds items.
type Searcher interface {
	// ListHeld returns a page of items; ErrNotFound where the item of Filter.After is no longer there.
	ListHeld(ctx context.Context, f Filter, now time.Time) (Page, error)
	// GroupHeld counts the items of f.State that f selects; Limit and After, a number of groups, are for groups.
	GroupHeld(ctx context.Context, f Filter, by GroupBy, sort GroupSort, skip int, now time.Time) (Counted, error)
	// SelectHeld counts what f selects.
	SelectHeld(ctx context.Context, f Filter, now time.Time) (Selection, error)
	// WaitingHeld calls each for the items that f selects, whatever its State, and that waited at a time up to now,
	// whatever became of them since; zero: that wait now. It looks at so many of them at most. Of an item that was denied, delivered or has expired since, the
	// text of a hidden message is gone: where f.Text is set, it is left out.
	WaitingHeld(ctx context.Context, f Filter, at, now time.Time, most int, each func(Waiting)) error
}

// A Waiting is an item that waits, as far as a selection is told of it.
type Waiting struct {
	ID, Server, Tool, Principal string
	Held                        time.Time
}

var errFilter = errors.New("hold: want a state, a group and an order that there are")

// check refuses words that no query has.
func (f *Filter) check() error {
	if f.State != "" && !f.State.Known() {
		return errFilter
	}
	for _, s := range []string{f.ID, f.Server, f.Tool, f.Rule, f.Principal, f.Text, string(f.Code), string(f.Found), f.After} {
		if !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
			return errText
		}
	}
	return nil
}

// errText refuses what Postgres does not take as text: no item has it.
var errText = errors.New("hold: a value of the filter is not UTF-8, or has a NUL in it")

// Page returns a page of items without their Body.
func (q *Queue) Page(ctx context.Context, f Filter) (Page, error) {
	if err := f.check(); err != nil {
		return Page{}, err
	}
	return q.store.ListHeld(ctx, f, q.o.Now())
}

// List returns items without their Body, the newest first: as many as f.Limit, however long the store has to
// look for them.
func (q *Queue) List(ctx context.Context, f Filter) ([]Item, error) {
	items, _, err := q.Pages(ctx, f)
	return items, err
}

// Pages is List, and returns where the next page begins; "" where the list ends.
func (q *Queue) Pages(ctx context.Context, f Filter) (items []Item, next string, err error) {
	limit := f.Limit
	if limit <= 0 {
		limit = DefaultPage
	}
	limit = min(limit, MaxPage)
	items = []Item{}
	for {
		f.Limit = limit - len(items)
		p, err := q.Page(ctx, f)
		if err != nil {
			return nil, "", err
		}
		items = append(items, p.Items...)
		if p.Next == "" || len(items) >= limit {
			return items, p.Next, nil
		}
		f.After = p.Next
	}
}

// How many items a page has.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// Groups counts items by what they have in common. skip is the number of groups on the pages before.
func (q *Queue) Groups(ctx context.Context, f Filter, by GroupBy, sort GroupSort, skip int) (Counted, error) {
	if err := f.check(); err != nil {
		return Counted{}, err
	}
	if !slices.Contains(Groups, by) || !slices.Contains(GroupSorts, sort) || skip < 0 {
		return Counted{}, errFilter
	}
	return q.store.GroupHeld(ctx, f, by, sort, skip, q.o.Now())
}

// Select counts what f selects. Without a time in AsOf it is as of now, and f gets that time.
func (q *Queue) Select(ctx context.Context, f *Filter) (Selection, error) {
	if err := f.check(); err != nil {
		return Selection{}, err
	}
	now := q.o.Now().UTC()
	if f.AsOf.IsZero() || f.AsOf.After(now) {
		f.AsOf = now
	}
	return q.store.SelectHeld(ctx, *f, now)
}

// LowerASCII is how texts are compared: ASCII letters in lower case, everything else as it is.
func LowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
