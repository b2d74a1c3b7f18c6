// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

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
}

func overviewPages() []testPage {
	fill := func(t testing.TB, g *testConsole) {
		events := append(manyEvents(200), hostileEvents()...)
		for i, kind := range []ledger.Kind{ledger.Classified, ledger.Classified, ledger.Counterfactual} {
			events = append(events, &ledger.Event{ID: testID(5000 + i), Time: time.Now(), Kind: kind, Server: "mail", Verdict: []string{"injection", "benign", "hijack"}[i]})
		}
		g.logged(t, events...)
	}
	return []testPage{
		{name: "overview", path: "overview", change: waits, fill: fill},
		{name: "overview-30d", path: "overview?span=" + url.QueryEscape("30 d"), change: waits, fill: fill},
		{name: "overview-first", path: "overview", change: withLedger},
		{name: "overview-no-log", path: "overview"},
		{name: "overview-no-server", path: "overview", change: waits, fill: fill, who: Person{ID: "nil", Role: Viewer}},
	}
}

var numberLink = regexp.MustCompile(`<a[^>]* href="/console/(records[^"]*)"[^>]*>(?:<span>[^<]*(?:<bdi[^>]*>[^<]*</bdi>)?</span><span class="n">)?([0-9,]+)<`)

// TestOverviewNumbers: each number of the page is the length of the list to which it leads, and the numbers of the
// verdicts add up to the total, for a person who sees all and for one who sees a server.
func TestOverviewNumbers(t *testing.T) {
	g := newTest(t, waits)
	for _, p := range overviewPages()[:1] {
		p.fill(t, g)
	}
	for _, who := range []Person{admin, {ID: "rob", Role: Viewer, Servers: []string{"mail"}}} {
		g.as(who)
		for _, span := range []string{"", "1 h", "7 d", "30 d"} {
			r, body := g.get("overview?span=" + url.QueryEscape(span))
			if r.StatusCode != http.StatusOK {
				t.Fatal(r.StatusCode, g.logs.String())
			}
			links, seen := numberLink.FindAllStringSubmatch(body, -1), map[string]bool{}
			if len(links) < 15 {
				t.Errorf("%s, %q: only %d numbers", who.ID, span, len(links))
			}
			for _, m := range links {
				path, n := html.UnescapeString(m[1]), m[2]
				if seen[path+n] {
					continue
				}
				seen[path+n] = true
				_, list := g.get(path)
				if got := between(list, `<h2 id="found">`, " records"); got != n {
					t.Errorf("%s, %q: %s leads to a list of %s: %s", who.ID, span, n, got, path)
				}
			}
			sum, total := 0, 0
			for _, lab := range strings.Split(body, `<div class="lab`)[1:] {
				n := 0
				fmt.Sscanf(strings.ReplaceAll(regexp.MustCompile(`<b>(?:<a[^>]*>)?([0-9,]+)<`).FindStringSubmatch(lab)[1], ",", ""), "%d", &n)
				if strings.HasPrefix(lab, ` sum"`) {
					total = n
				} else {
					sum += n
				}
			}
			if sum != total || total == 0 {
				t.Errorf("%s, %q: the verdicts add up to %d, the total is %d", who.ID, span, sum, total)
			}
		}
	}
}

// TestOverviewUnknown: what is not known is a dash and never zero; what waits elsewhere is not counted.
func TestOverviewUnknown(t *testing.T) {
	g := newTest(t)
	if _, body := g.get("overview"); strings.Count(body, `<p class="big">`+"\u2013") != 2 || !strings.Contains(body, "No ledger is kept here") {
		t.Error("a console that knows nothing shows numbers")
	}
	last := time.Now().Add(-2 * time.Hour) // of the journal
	g = newTest(t, waits, func(_ *testConsole, o *Options) { o.Journal = func() (time.Time, error) { return last, nil } })
	for span, want := range map[string]bool{"1 h": false, "24 h": true} {
		if _, body := g.get("overview?span=" + url.QueryEscape(span)); strings.Contains(body, "keeps no ledger") != want {
			t.Errorf("decisions of the journal, %s: said %v", span, !want)
		}
	}
	last = time.Time{}
	if _, body := g.get("overview"); strings.Contains(body, "keeps no ledger") {
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
