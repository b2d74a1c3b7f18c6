// SPDX-License-Identifier: Apache-2.0

package console

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// TestBrowserKeys: keys in a real browser.
func TestBrowserKeys(t *testing.T) {
	g := newTest(t)
	b := newTab(t)
	press := func(keys string) { t.Helper(); b.do(chromedp.KeyEvent(keys)) }
	wait := func(what string) {
		t.Helper()
		waittest.Until(t, what, func() bool { return eval[bool](b, what) })
	}
	b.open(g.url + Base + "xray")
	wait(`document.querySelector("[data-keys]")?.hidden === false`)
	press("?")
	wait(`document.querySelector("#keys").open`)
	press("\u001b")
	wait(`!document.querySelector("#keys").open`)
	b.open(g.url + Base + "no/such/page")
	wait(`document.querySelector("[data-keys]")?.hidden === false`)
	press("g")
	press("x")
	wait(`location.pathname === "/console/xray"`)
	wait(`document.querySelector("[data-keys]")?.hidden === false`)
	// A list, as pages have it: rows, and a button that needs two presses.
	eval[int](b, `(() => {
		const main = document.querySelector("main"), make = (tag, set, within) => { const el = document.createElement(tag); Object.assign(el.dataset, set); within.append(el); return el }
		window.done = []
		for (const id of ["one", "two"]) {
			const row = make("div", { row: "" }, main); row.tabIndex = -1; row.id = id
			const b = make("button", { key: "d", twice: "Deny " + id + "." }, row); b.type = "button"; b.textContent = "Deny"
			b.addEventListener("click", () => window.done.push(id))
		}
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
