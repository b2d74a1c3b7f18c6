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

	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/boundary/meter"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/trust"
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
	o.Fallen = func() ([]trust.Fallen, bool) {
		out := []trust.Fallen{{Server: "mail", Score: 310_000, Rest: 500_000}}
		for _, s := range hostile {
			out = append(out, trust.Fallen{Server: s, Score: 400_000, Rest: 500_000})
		}
		return out, true
	}
	o.Latencies = func() []meter.Latency {
		out := []meter.Latency{{Server: "mail", Answers: 4812, P50: 12 * time.Millisecond, P99: 1800 * time.Millisecond}, {Server: "other", Answers: 7, P50: 80 * time.Microsecond, P99: 9 * time.Minute}}
		for _, s := range hostile {
			out = append(out, meter.Latency{Server: s, Answers: 1, P50: time.Millisecond, P99: time.Second})
		}
		return out
	}
}

// judged are decisions of the guard, the i-th of which took i seconds and asked i questions; the last says nothing of its cost.
func judged(n int) (out []*ledger.Event) {
	for i := range n {
		e := &ledger.Event{ID: testID(6000 + i), Time: time.Now().Add(-time.Minute), Kind: ledger.Counterfactual, Verdict: []string{"forwarded", "repaired", "refused", "waiting"}[i%4]}
		if i > 0 {
			e.Numbers = []ledger.Number{{Name: ledger.ModelCalls, N: int64(i)}, {Name: ledger.ModelTokens, N: 100 * int64(i)}, {Name: ledger.TookMillis, N: 1000 * int64(i)}}
		}
		out = append(out, e)
	}
	return out
}

func overviewPages() []testPage {
	fill := func(t testing.TB, g *testConsole) {
		events := append(manyEvents(200), hostileEvents()...)
		for i, kind := range []ledger.Kind{ledger.Classified, ledger.Classified, ledger.Counterfactual} {
			events = append(events, &ledger.Event{ID: testID(5000 + i), Time: time.Now(), Kind: kind, Server: "mail", Verdict: []string{"injection", "benign", "hijack"}[i]})
		}
		g.logged(t, append(events, judged(21)...)...)
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
	t.Parallel()
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
			_, list, _ := strings.Cut(body, "<h2>Messages by verdict</h2>")
			list, _, _ = strings.Cut(list, "</section>")
			numbers := regexp.MustCompile(`class="n">([0-9,]+)</span>`).FindAllStringSubmatch(list, -1)
			for i, m := range numbers {
				n := 0
				fmt.Sscanf(strings.ReplaceAll(m[1], ",", ""), "%d", &n)
				if i == len(numbers)-1 {
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
	t.Parallel()
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

// TestOverviewParts: what the guard has cost by its records, the servers whose trust fell and how long servers take, each leading to
// what stands behind it; a person sees those of their servers, and what is not known is no number.
func TestOverviewParts(t *testing.T) {
	t.Parallel()
	g := newTest(t, waits)
	if _, body := g.get("overview"); !strings.Contains(body, "The guard has tested no call in this time.") || strings.Contains(body, "model calls") {
		t.Error("the guard has decided nothing, and figures stand there")
	}
	first := newTest(t, waits)
	first.logged(t, judged(1)...)
	_, body := first.get("overview")
	contains(t, "without cost", body, "<dt>model calls</dt><dd><bdi dir=\"ltr\">\u2013", "do not say what they cost")
	g.logged(t, judged(21)...)
	_, body = g.get("overview")
	contains(t, "cost", body, `<dt>calls judged</dt><dd><a href="/console/records?q=`, `>210</bdi>`, `>21,000</bdi>`, `/`+testID(6010).String()+`"><bdi dir="ltr">10 s`, `/`+testID(6019).String()+`"><bdi dir="ltr">19 s`,
		"Cost and wait of 20 decisions", "1 more do not say what they cost.")
	for name, want := range map[string]string{"calls judged": "21", "held": "15"} {
		m := regexp.MustCompile(`<dt>` + name + `</dt><dd><a href="/console/([^"]*)"><bdi dir="ltr">([0-9,]+)<`).FindStringSubmatch(body)
		if m == nil || m[2] != want {
			t.Errorf("%s: %q, want %s", name, m, want)
			continue
		}
		if _, list := g.get(html.UnescapeString(m[1])); between(list, `<h2 id="found">`, " records") != want {
			t.Errorf("%s: the list has not %s records", name, want)
		}
	}
	contains(t, "trust", body, `<a href="/console/servers/mail"><bdi dir="ltr">mail</bdi></a></th><td class="n">0.310</td><td class="n">0.500</td>`, "more servers: pellucid trust")
	contains(t, "latency", body, `4,812</td><td class="n">12 ms</td><td class="n">1.8 s`, `7</td><td class="n">0.1 ms</td><td class="n">540.0 s`)
	g.as(Person{ID: "rob", Role: Viewer, Servers: []string{"mail"}})
	_, body = g.get("overview")
	contains(t, "one server", body, "1 server up", "4,812", "0.310", "4 held")
	if strings.Contains(body, "540.0 s") || strings.Contains(body, "0.400") || strings.Contains(body, "down") || strings.Contains(body, "model calls") {
		t.Error("a person sees what is not of their servers")
	}
	if r, _ := g.get("servers/mail"); r.StatusCode != http.StatusNotFound { // nothing is pinned, and no record is about it
		t.Errorf("a server of which nothing is known: %d", r.StatusCode)
	}
	first = newTest(t, waits)
	first.logged(t, &ledger.Event{ID: testID(7000), Time: time.Now(), Kind: ledger.Message, Server: "mail", Verdict: "passed"})
	if r, _ := first.get("servers/mail"); r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/console/records?q=server%3Amail" {
		t.Errorf("a server that is not pinned: %d %s", r.StatusCode, r.Header.Get("Location"))
	}
	if r, _ := g.get("servers/files"); r.StatusCode != http.StatusNotFound {
		t.Errorf("a server of others: %d", r.StatusCode)
	}
	_, body = newTest(t).get("overview")
	contains(t, "nothing is known", body, "no log is kept", "held \u2013", "Not known to this console: there is no log", "the gateway measures it")
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
	g.logged(t, judged(3)...)
	held = 3
	if _, body = g.get("xray"); !strings.Contains(body, ">4 held<") {
		t.Error("the store is asked for every page")
	}
	g.Console.header.forget()
	_, body = g.get("xray")
	contains(t, "later", body, "4 records signed", ">3 held<")
	broken = context.DeadlineExceeded
	g.Console.header.forget()
	_, body = g.get("xray")
	contains(t, "away", body, `<li class="bad">held `+"\u2013")
	g.as(Person{})
	if _, body = g.get("xray"); strings.Contains(body, "signed") {
		t.Error("a person without a session sees the log")
	}
}
