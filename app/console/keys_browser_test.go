// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/record/hold"
)

// until waits for what a key or a button leads to: the page has been loaded, and its script has come.
func (b *tab) until(what, script string) {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](`document.readyState === "complete" && (`+script+`)`))
		if err == nil && ok {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("%s: the page is %s", what, eval[string](b, `location.pathname + location.search`))
		}
	}
}

func (b *tab) press(key string) { b.t.Helper(); b.do(chromedp.KeyEvent(key)) }

// saysKeys is what the line of the keys says.
const saysKeys = `document.querySelector("[data-says]").textContent`

// TestBrowserServerKeys: a changed tool is approved and a new one is blocked by keyboard alone; the first
// press of each says what will happen, and Escape takes it back.
func TestBrowserServerKeys(t *testing.T) {
	b, g := newTab(t), newTest(t, withServers)
	changedServer(t, g)
	stands := func(tool string) surface.State {
		t.Helper()
		pin, err := surface.NewPins(g.store, nil).Get(t.Context(), "stdio:1")
		if err != nil {
			t.Fatal(err)
		}
		return pin.Item(surface.Key{Kind: surface.Tool, Name: tool}).State()
	}
	b.look("light", 1280, 900)
	b.open(g.url + Base + "servers")
	b.until("the servers", `!!document.querySelector("[data-row]")`)
	b.press("j")
	b.press("\r")
	b.until("the server", `location.pathname.startsWith("/console/servers/") && !!document.querySelector("[data-row]")`)
	b.press("j")
	b.press("p")
	if says := eval[string](b, saysKeys); !strings.HasPrefix(says, `Approves the tool "read" as it is shown.`) || stands("read") != surface.Pending {
		t.Fatalf("the first press: %q, %s", says, stands("read"))
	}
	b.do(chromedp.KeyEvent("\u001b"))
	if says := eval[string](b, saysKeys); says != "" {
		t.Errorf("Escape leaves %q", says)
	}
	b.press("p")
	b.press("p")
	b.until("the second press", `document.querySelectorAll("main [data-key=p]").length === 1`)
	if stands("read") != surface.Approved || stands("write") != surface.Pending {
		t.Fatalf("approved: read %s, write %s", stands("read"), stands("write"))
	}
	b.press("b")
	if says := eval[string](b, saysKeys); !strings.HasPrefix(says, `Blocks the tool "write"`) || stands("write") != surface.Pending {
		t.Fatalf("the first press: %q, %s", says, stands("write"))
	}
	b.press("b")
	b.until("the end", `!document.querySelector("main [data-key=b]")`)
	if stands("write") != surface.Blocked {
		t.Errorf("blocked: %s", stands("write"))
	}
	b.press("u")
	b.until("the list", `location.pathname === "/console/servers"`)
	if said := b.said(); said != nil {
		t.Errorf("the browser said %q", said)
	}
}

// TestBrowserGuardKeys: of two calls that wait, one is refused and one is approved by keyboard alone.
func TestBrowserGuardKeys(t *testing.T) {
	b, g := newTab(t), newTest(t, withGuard)
	for i := range 2 {
		heldCall(t, g, fmt.Sprintf("%032x", i+1), []byte(`{"amount":1}`), hold.Options{})
	}
	state := func(id string) hold.State {
		t.Helper()
		it, err := hold.New(g.store, hold.Options{}).Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return it.State
	}
	b.look("dark", 1280, 900)
	for _, c := range []struct {
		key, says string
		want      hold.State
	}{{"d", "Refuses the call", hold.Denied}, {"r", "Approves the call", hold.Released}} {
		b.open(g.url + Base + "guard")
		b.until("the calls", `!!document.querySelector("[data-row]")`)
		b.press("j")
		b.press("\r")
		b.until("the call", fmt.Sprintf(`location.pathname.startsWith("/console/guard/") && !!document.querySelector("main [data-key=%s]")`, c.key))
		id := eval[string](b, `location.pathname.split("/").pop()`)
		b.press(c.key)
		if says := eval[string](b, saysKeys); !strings.HasPrefix(says, c.says) || state(id) != hold.Held {
			t.Fatalf("the first press: %q, %s", says, state(id))
		}
		b.press(c.key)
		b.until("the second press", `!document.querySelector("main [data-key=r]")`)
		if got := state(id); got != c.want {
			t.Errorf("%s: %s, want %s", c.key, got, c.want)
		}
	}
	if said := b.said(); said != nil {
		t.Errorf("the browser said %q", said)
	}
}
