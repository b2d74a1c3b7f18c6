// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// waits makes a console know what waits: of each hostile name, and of mail.
func waits(g *testConsole, o *Options) {
	withLedger(g, o)
	o.Held = func(context.Context) ([]Waiting, error) {
		out := []Waiting{{"mail", 4, time.Now().Add(-3 * time.Hour)}}
		for _, s := range hostile {
			out = append(out, Waiting{s, 1, time.Now().Add(-time.Minute)})
		}
		return out, nil
	}
	o.Blocked = func(context.Context) ([]Waiting, error) { return nil, nil }
	o.Health = func() []fleet.Health {
		out := []fleet.Health{{Name: "mail", State: fleet.Up}, {Name: "files", State: fleet.Down}}
		for _, s := range hostile {
			out = append(out, fleet.Health{Name: s, State: fleet.State(s)})
		}
		return out
	}
}

func overviewPages() []testPage {
	return []testPage{
		{name: "overview", path: "overview", change: waits, fill: func(t testing.TB, g *testConsole) { g.logged(t, append(manyEvents(20), hostileEvents()...)...) }},
		{name: "overview-first", path: "overview", change: withLedger},
		{name: "overview-no-log", path: "overview"},
		{name: "overview-no-server", path: "overview", change: waits, who: Person{ID: "nil", Role: Viewer}},
	}
}

// TestOverviewUnknown: what is not known is a dash and never zero; what waits elsewhere is not counted.
func TestOverviewUnknown(t *testing.T) {
	t.Parallel()
	g := newTest(t)
	if _, body := g.get("overview"); strings.Count(body, `<p class="big">`+"\u2013") != 2 || !strings.Contains(body, "No ledger is kept here") {
		t.Error("a console that knows nothing shows numbers")
	}
	rows := []index.Row{{ID: ledger.ID{1}, Time: time.Now(), Kind: ledger.Message, Server: "mail", Verdict: "changed"}}
	journal := func(_ *testConsole, o *Options) { o.Journal = journalOf(&rows) }
	g = newTest(t, waits, journal)
	if _, body := g.get("overview"); !strings.Contains(body, `href="/console/journal"`) {
		t.Error("decisions of the journal are not said")
	}
	rows = nil
	if _, body := g.get("overview"); strings.Contains(body, `href="/console/journal"`) {
		t.Error("a journal that does not exist is said to have decisions")
	}
	g = newTest(t, waits)
	g.as(Person{ID: "rob", Role: Viewer, Servers: []string{"mail"}})
	if _, body := g.get("overview"); !strings.Contains(body, `<p class="big">4<`) || !strings.Contains(body, `<p class="big">0<`) || !strings.Contains(body, "the oldest for 2 h 59 min") {
		t.Error("what waits of the person's servers is not counted")
	}
	g.as(admin)
	if _, body := g.get("overview"); !strings.Contains(body, fmt.Sprintf(`<p class="big"><a href="/console/review">%d<`, 4+len(hostile))) {
		t.Error("what waits of all servers is not counted, or does not lead to the queue")
	}
}

// TestOverviewLog: the page says how the log is.
func TestOverviewLog(t *testing.T) {
	t.Parallel()
	g := newTest(t, waits)
	_, body := g.get("overview")
	contains(t, "first", body, "none yet")
	g.logged(t, manyEvents(3)...)
	_, body = g.get("overview")
	contains(t, "later", body, "<dt>records</dt><dd><a href=", "<dt>not signed yet</dt>", "no checkpoint is cosigned")
}

// TestHeader: every page says how servers and the log are, and how much waits; a decision shows at once, and a store that is away
// is no number.
func TestHeader(t *testing.T) {
	t.Parallel()
	held := 4
	var broken error
	g := newTest(t, waits, func(_ *testConsole, o *Options) {
		o.Held = func(context.Context) ([]Waiting, error) { return []Waiting{{"mail", held, time.Now()}}, broken }
	})
	_, body := g.get("xray")
	contains(t, "first", body, "1 server up, 1 down", `<li class="bad">`, "log: no record yet", ">4 held<")
	g.logged(t, manyEvents(4)...)
	held = 3
	if _, body = g.get("xray"); !strings.Contains(body, ">4 held<") {
		t.Error("the store is asked for every page")
	}
	g.Console.header.forget()
	_, body = g.get("xray")
	contains(t, "later", body, "records signed", ">3 held<")
	broken = context.DeadlineExceeded
	g.Console.header.forget()
	_, body = g.get("xray")
	contains(t, "away", body, `<li class="bad">held `+"\u2013")
	g.as(Person{})
	if _, body = g.get("xray"); strings.Contains(body, "signed") {
		t.Error("a person without a session sees the log")
	}
}
