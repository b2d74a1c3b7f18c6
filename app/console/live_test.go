// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// countersTest is a store of counters for tests.
type countersTest struct {
	records atomic.Int64
	held    atomic.Int64
	away    atomic.Bool
	reads   atomic.Int64
}

func (c *countersTest) read(context.Context, time.Time) (Counters, error) {
	c.reads.Add(1)
	if c.away.Load() {
		return Counters{}, errors.New("away")
	}
	return Counters{Records: c.records.Load(), Held: c.held.Load()}, nil
}

// events reads the stream of one page.
func (g *testConsole) events(ctx context.Context) (*http.Response, *bufio.Scanner) {
	g.t.Helper()
	q, err := http.NewRequestWithContext(ctx, "GET", g.url+Base+"events", nil)
	if err != nil {
		g.t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		g.t.Fatal(err)
	}
	return r, bufio.NewScanner(r.Body)
}

func nextData(t *testing.T, in *bufio.Scanner) string {
	t.Helper()
	for in.Scan() {
		if data, is := strings.CutPrefix(in.Text(), "data: "); is {
			return data
		}
	}
	t.Fatalf("the stream ended: %v", in.Err())
	return ""
}

// TestLive: pages hear of new records, who does not see all servers hears no number of held items, and nothing is read
// while no page is open.
func TestLive(t *testing.T) {
	t.Parallel()
	var c countersTest
	c.records.Store(7)
	g := newTest(t, func(_ *testConsole, o *Options) { o.Counters = c.read })
	g.Console.live.mu.Lock()
	reads := g.Console.live.end != nil
	g.Console.live.mu.Unlock()
	if reads || c.reads.Load() != 0 {
		t.Error("the counters are read although no page is open")
	}
	ctx, stop := context.WithCancel(t.Context())
	r, in := g.events(ctx)
	if r.Header.Get("Content-Type") != "text/event-stream" || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", r.Header)
	}
	if got, want := nextData(t, in), `{"away":false,"held":0,"records":7}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	g.as(Person{ID: "ben", Role: Reviewer, Servers: []string{"mail"}})
	r2, in2 := g.events(t.Context())
	defer r2.Body.Close()
	if got, want := nextData(t, in2), `{"away":false,"records":7}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c.records.Store(9)
	c.held.Store(1)
	if got, want := nextData(t, in), `{"away":false,"held":1,"records":9}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c.away.Store(true)
	if got, want := nextData(t, in), `{"away":true,"held":1,"records":9}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	stop()
	r.Body.Close()
	g.Console.Close()
	if in2.Scan(); in2.Err() != nil {
		t.Errorf("the other stream ended with %v", in2.Err())
	}
	for in2.Scan() {
	}
	g.as(Person{})
	if r, _ := g.get("events"); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a session: %d", r.StatusCode)
	}
}

// TestLiveIsBounded: there is an end to the number of pages with live lines; others say that they have none.
func TestLiveIsBounded(t *testing.T) {
	t.Parallel()
	var c countersTest
	h := &hub{read: c.read}
	var all []chan notice
	for i := range maxStreams / maxOwn {
		person := string(rune('a' + i))
		for range maxOwn {
			ch := h.join(person)
			if ch == nil {
				t.Fatal("too few")
			}
			all = append(all, ch)
		}
		if len(all) < maxStreams && h.join(person) != nil {
			t.Error("one more than the bound of a person")
		}
	}
	if h.join("another") != nil {
		t.Error("one more than the bound")
	}
	for _, ch := range all {
		h.leave(ch)
	}
	if h.end != nil {
		t.Error("the counters are read although no page is open")
	}
	h.close()
	if h.join("a") != nil {
		t.Error("a page joins a hub that was closed")
	}
}

// TestHundredConsoles: a hundred open pages read the store no more often than one.
func TestHundredConsoles(t *testing.T) {
	t.Parallel()
	var c countersTest
	g := newTest(t, func(_ *testConsole, o *Options) { o.Counters = c.read })
	for range 100 {
		r, in := g.events(t.Context())
		defer r.Body.Close()
		nextData(t, in)
	}
	if n := c.reads.Load(); n > 40 {
		t.Errorf("100 pages read the counters %d times", n)
	}
}

// TestBrowserKeys: keys and live lines in a real browser.
func TestBrowserKeys(t *testing.T) {
	var c countersTest
	g := newTest(t, func(_ *testConsole, o *Options) { o.Counters = c.read })
	b := newTab(t)
	press := func(keys string) { t.Helper(); b.do(chromedp.KeyEvent(keys)) }
	wait := func(what string) {
		t.Helper()
		waittest.Until(t, what, func() bool { return eval[bool](b, what) })
	}
	b.open(g.url + Base + "xray")
	wait(`document.querySelector("[data-live]")?.textContent === "live"`)
	press("?")
	wait(`document.querySelector("#keys").open`)
	press("\u001b")
	wait(`!document.querySelector("#keys").open`)
	b.open(g.url + Base + "no/such/page")
	wait(`document.querySelector("[data-live]")?.textContent === "live"`)
	press("g")
	press("x")
	wait(`location.pathname === "/console/xray"`)
	wait(`document.querySelector("[data-live]")?.textContent === "live"`)
	// A list, as pages have it: rows, a button that needs two presses, and a line for what is newer.
	eval[int](b, `(() => {
		const main = document.querySelector("main"), make = (tag, set, within) => { const el = document.createElement(tag); Object.assign(el.dataset, set); within.append(el); return el }
		window.done = []
		for (const id of ["one", "two"]) {
			const row = make("div", { row: "" }, main); row.tabIndex = -1; row.id = id
			const b = make("button", { key: "d", twice: "Deny " + id + "." }, row); b.type = "button"; b.textContent = "Deny"
			b.addEventListener("click", () => window.done.push(id))
		}
		const line = make("p", { newer: "records" }, main); line.hidden = true; make("button", { reload: "" }, line)
		return 0 })()`)
	press("j")
	press("j")
	wait(`document.querySelector("#two").classList.contains("here")`)
	press("d")
	wait(`document.querySelector("[data-says]").textContent.startsWith("Deny two.")`)
	if n := eval[int](b, `window.done.length`); n != 0 {
		t.Error("one press of d decided")
	}
	press("\u001b")
	wait(`document.querySelector("[data-says]").textContent === ""`)
	press("d")
	press("d")
	wait(`window.done.join() === "two"`)
	press("k")
	press("d")
	press("d")
	wait(`window.done.join() === "two,one"`)
	// Letters in a field are letters.
	b.do(chromedp.SendKeys(chromedp.CSS("#t"), "ddjk?g"))
	if n := eval[int](b, `window.done.length`); n != 2 {
		t.Error("a letter in a field acted")
	}
	press("\u001b")
	// Letters are switched off, and it stays so.
	press("?")
	wait(`document.querySelector("#keys").open`)
	b.do(chromedp.Click(chromedp.CSS("#letters")))
	press("\u001b")
	wait(`!document.querySelector("#keys").open`)
	press("d")
	press("d")
	if n := eval[int](b, `window.done.length`); n != 2 {
		t.Error("a letter acted although letters are off")
	}
	c.records.Add(12)
	wait(`document.querySelector("[data-newer]") && !document.querySelector("[data-newer]").hidden && document.querySelector("[data-newer]").textContent === "12 newer records"`)
	c.away.Store(true)
	wait(`document.querySelector("[data-live]")?.textContent === "the store does not answer"`)
	b.open(g.url + Base + "xray")
	wait(`document.documentElement.classList.contains("no-letters")`)
	if said := b.said(); said != nil {
		t.Errorf("the browser said %q", said)
	}
}

// TestScriptsAreSmall: all scripts together stay under 40 KB gzipped.
func TestScriptsAreSmall(t *testing.T) {
	t.Parallel()
	sum := 0
	files, err := assetFiles.ReadDir("assets")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".js") {
			b, err := assetFiles.ReadFile("assets/" + f.Name())
			if err != nil {
				t.Fatal(err)
			}
			sum += gzipped(t, b)
		}
	}
	t.Logf("%d bytes", sum)
	if sum == 0 || sum > 40_000 {
		t.Errorf("the scripts are %d bytes gzipped", sum)
	}
}
