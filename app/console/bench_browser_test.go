// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"context"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// browse times what a person waits for: the first contentful paint of pages, the frame after a key, and an item that
// a key opens. The style sheet and the scripts are in the browser's cache, as they are after the first page.
func (f *filled) browse(b *testing.B, table *tabwriter.Writer) (misses int) {
	const rounds = 10
	srv := httptest.NewServer(f)
	defer srv.Close()
	t := newTab(b)
	t.look("light", 1280, 900)
	t.do(chromedp.Func(func(ctx context.Context, page *chromedp.Target) error {
		_, err := cdp.Call(ctx, page, network.SetCookie, network.SetCookieParams{Name: cookiePlain, Value: f.session(), URL: srv.URL + Base})
		return err
	}))
	fmt.Fprintln(table, "in Chromium\twhat\ttimes\tp50\tlargest\tgoal\treached")
	print := func(page, what string, took []time.Duration, goal time.Duration) {
		slices.Sort(took)
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", page, what, len(took), ms(took[len(took)/2]), ms(took[len(took)-1]), ms(goal), verdict(took[len(took)/2], goal, &misses))
	}
	asks := f.asks()
	for _, r := range f.routes {
		for _, a := range asks[r.pattern] {
			if !a.paint {
				continue
			}
			var took []time.Duration
			for range rounds {
				t.open(srv.URL + Base + a.path)
				took = append(took, t.painted())
			}
			print(strings.TrimPrefix(r.pattern, http.MethodGet+" "), a.what+": first contentful paint", took, goalPaint)
		}
	}
	for _, list := range []string{"review", "review?group=none", "records"} {
		t.open(srv.URL + Base + list)
		t.painted()
		var took []time.Duration
		for range rounds {
			took = append(took, t.frame("j"))
		}
		print(list, "key j: next frame", took, goalKey)
	}
	var took []time.Duration
	for i := range rounds {
		t.open(srv.URL + Base + "review?group=none")
		t.painted()
		for range i + 1 {
			t.frame("j")
		}
		eval[int](t, `addEventListener("keydown", ev => sessionStorage.setItem("at", performance.timeOrigin + ev.timeStamp), true), 0`)
		t.do(chromedp.KeyEvent("\r"))
		for end := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
			if ok, err := chromedp.Run(t.ctx, chromedp.Evaluate[bool](`location.pathname.startsWith("/console/review/")`)); err == nil && ok {
				break
			}
			if time.Now().After(end) {
				b.Fatal("the key opens no item")
			}
		}
		t.painted()
		took = append(took, milliseconds(eval[float64](t, `performance.timeOrigin + performance.getEntriesByName("first-contentful-paint")[0].startTime - sessionStorage.getItem("at")`)))
	}
	print("review/{id}", "Enter in the list: the item is painted", took, goalPaint)
	return misses
}

func milliseconds(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

// painted waits for the first contentful paint of the page.
func (b *tab) painted() time.Duration {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		ms, err := chromedp.Run(b.ctx, chromedp.Evaluate[float64](`performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0`))
		if err == nil && ms > 0 {
			return milliseconds(ms)
		}
	}
	b.t.Fatal("the page was not painted")
	return 0
}

// frame presses a key, and returns the time to the frame after the next: what it changed is on the screen by then.
func (b *tab) frame(key string) time.Duration {
	b.t.Helper()
	eval[int](b, `window.after = 0, addEventListener("keydown", ev => requestAnimationFrame(() => requestAnimationFrame(() => { window.after = performance.now() - ev.timeStamp })), { once: true, capture: true }), 0`)
	b.do(chromedp.KeyEvent(key))
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if ms := eval[float64](b, `window.after`); ms > 0 {
			return milliseconds(ms)
		}
	}
	b.t.Fatal("no frame came")
	return 0
}
