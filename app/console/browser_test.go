// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/pellucid-mcp/pellucid/platform/programtest"
)

// chromium is one browser for all tests of the package. TestMain ends it.
var chromium struct {
	sync.Once
	ctx  context.Context
	stop []func()
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	pageTime = time.Hour
	code := m.Run()
	for _, f := range chromium.stop {
		f()
	}
	if chromium.dir != "" {
		os.RemoveAll(chromium.dir)
	}
	os.Exit(code)
}

// A tab is one page of the browser.
type tab struct {
	ctx context.Context
	t   testing.TB

	mu     sync.Mutex
	faults []string // messages of the page: exceptions, and what the policy refused
}

// newTab opens a tab with cookies of its own; the test is skipped where there is no browser.
func newTab(t testing.TB) *tab {
	t.Helper()
	bin := programtest.Find(t, "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
	chromium.Do(func() {
		if chromium.dir, chromium.err = os.MkdirTemp("", "pellucid-chromium"); chromium.err != nil {
			return
		}
		alloc, stop := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(bin), chromedp.Headless, chromedp.NoSandbox,
			chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.UserDataDir(chromium.dir))
		ctx, end := chromedp.NewContext(alloc)
		chromium.stop = []func(){end, stop}
		chromium.ctx = ctx
		_, chromium.err = chromedp.Run(ctx, chromedp.Evaluate[int]("1"))
	})
	if chromium.err != nil {
		t.Fatal(chromium.err)
	}
	limit, stop := context.WithTimeout(chromium.ctx, 10*time.Minute) // until has a limit of its own
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(limit, chromedp.WithNewBrowserContext())
	t.Cleanup(end)
	b := &tab{ctx: ctx, t: t}
	err := chromedp.Listen(ctx, func(ev any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch ev := ev.(type) {
		case *runtime.EventExceptionThrown:
			b.faults = append(b.faults, ev.ExceptionDetails.Text)
		case *cdplog.EventEntryAdded:
			// The status of a page is what its test says.
			if ev.Entry.Level == cdplog.EntryLevelError && !strings.Contains(ev.Entry.Text, "server responded with a status of") {
				b.faults = append(b.faults, ev.Entry.Text)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) open(url string) { b.t.Helper(); b.do(chromedp.Navigate(url)) }

// look sets the theme and the size of the window.
func (b *tab) look(theme string, width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height), chromedp.Func(func(ctx context.Context, page *chromedp.Target) error {
		_, err := cdp.Call(ctx, page, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
		return err
	}))
}

// eval runs a script in the page.
func eval[T any](b *tab, script string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script))
	if err != nil {
		b.t.Fatalf("%.80s: %v", script, err)
	}
	return v
}

// said returns the messages of the page so far.
func (b *tab) said() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.faults...)
}

// axeScript is the source of axe-core; the test is skipped where it is not installed.
func axeScript(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", ".tools", "e2e", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Skip("axe-core is not installed; `make peers` installs it")
	}
	return string(b)
}

// runAxe returns the violations of the rules that a JavaScript value names as axe's option runOnly does.
func (b *tab) runAxe(axe, rules string) (violations []string) {
	b.t.Helper()
	if !eval[bool](b, `"axe" in window`) {
		eval[int](b, axe+";0")
	}
	raw, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`axe.run(document, {resultTypes: ["violations"], runOnly: `+rules+`})
		.then(r => JSON.stringify(r.violations.map(v => v.id + ": " + v.nodes.length + " × " + v.nodes[0].html.slice(0, 200) + " " + (v.nodes[0].failureSummary || "").slice(0, 300))))`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("axe: %v", err)
	}
	if err := json.Unmarshal([]byte(raw), &violations); err != nil {
		b.t.Fatal(err)
	}
	return violations
}

// inDOM walks the page and returns what no third-party text may bring into it.
const inDOM = `(() => {
	const bad = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\ue000-\uf8ff\u2800]|[\u{e0000}-\u{e0fff}]|[\u{f0000}-\u{10ffff}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/u
	const out = []
	const walk = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_ALL)
	for (let n = walk.currentNode; n; n = walk.nextNode()) {
		if (n.nodeType === Node.TEXT_NODE && bad.test(n.data)) out.push("hidden character in a text: " + escape(n.data.slice(0, 80)))
		if (n.nodeType === Node.COMMENT_NODE) out.push("comment: " + n.data.slice(0, 80))
		if (n.nodeType !== Node.ELEMENT_NODE) continue
		for (const a of n.attributes) {
			if (bad.test(a.value)) out.push("hidden character in " + n.tagName + " " + a.name)
			if (/^(style|on.*|srcdoc|http-equiv)$/i.test(a.name)) out.push(n.tagName + " has " + a.name)
			if (/^(href|src|action|formaction|data|poster|background)$/i.test(a.name) && new URL(a.value, location.href).origin !== location.origin) out.push(n.tagName + " leads to " + a.value)
		}
		if (/^(style|iframe|object|embed|base|img|frame|template|portal)$/i.test(n.tagName)) out.push("element " + n.tagName)
		if (n.tagName === "SCRIPT" && !n.src.startsWith(location.origin + "/console/assets/")) out.push("script " + n.outerHTML.slice(0, 120))
		if (n.value && typeof n.value === "string" && bad.test(n.value)) out.push("hidden character in the value of " + n.tagName)
	}
	if (window.pwned) out.push("a script has run")
	if (document.styleSheets.length > 1) out.push(document.styleSheets.length + " style sheets")
	return out
})()`

// TestBrowserPages looks at each page in both themes at three widths: axe finds nothing, nothing scrolls sideways,
// no script but ours has run, and the document has nothing that a third party could have put there.
func TestBrowserPages(t *testing.T) {
	axe, dir := axeScript(t), shots(t)
	for _, p := range testPages() {
		t.Run(p.name, func(t *testing.T) {
			b, g := newTab(t), p.open(t)
			b.everyLook(axe, filepath.Join(dir, p.name), func() { b.open(g.url + Base + p.path) })
		})
	}
}

// everyLook opens a page, and looks at it in each theme and width.
func (b *tab) everyLook(axe, shot string, open func()) {
	b.t.Helper()
	t := b.t
	b.look("light", 360, 900)
	open()
	for _, found := range eval[[]string](b, inDOM) {
		t.Error(found)
	}
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{360, 1280, 1920} {
			b.look(theme, width, 900)
			at := fmt.Sprintf("%s, %d px", theme, width)
			var found []string
			switch {
			case theme == "light" && width == 360:
				found = b.runAxe(axe, `["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]`)
			case theme == "dark" && width == 1280: // a theme changes nothing but colours
				found = b.runAxe(axe, `{type: "rule", values: ["color-contrast", "link-in-text-block"]}`)
			}
			for _, v := range found {
				t.Errorf("%s: axe: %s", at, v)
			}
			if over := eval[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
				t.Errorf("%s: the page is %d px wider than the window", at, over)
			}
			if os.Getenv("PELLUCID_SHOTS") == "" {
				continue
			}
			png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(fmt.Sprintf("%s-%d-%s.png", shot, width, theme), png, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if said := b.said(); said != nil {
		t.Errorf("the browser said %q", said)
	}
}

// TestBrowserXray drops a file of every hostile text on the page.
func TestBrowserXray(t *testing.T) {
	axe, dir := axeScript(t), shots(t)
	b, g := newTab(t), newTest(t)
	for name, text := range map[string]string{"xray-lunch": lunch, "xray-hostile": strings.Join(hostile, "\n")} {
		drop := fmt.Sprintf(`(() => {
			const bytes = Uint8Array.from(atob(%q), c => c.charCodeAt(0)), files = new DataTransfer()
			files.items.add(new File([bytes], "dropped"))
			document.querySelector("input[type=file]").files = files.files
			return 0
		})()`, base64.StdEncoding.EncodeToString([]byte(text)))
		b.everyLook(axe, filepath.Join(dir, name), func() {
			b.open(g.url + Base + "xray")
			eval[int](b, drop)
			b.do(chromedp.Click(chromedp.CSS("form button.next")), chromedp.WaitVisible(chromedp.CSS("#cpt")))
		})
	}
}
