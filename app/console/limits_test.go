// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// TestPagesHaveMemory: what pages cost counts for their person, a page that finds no memory says so, and nothing is
// left of it.
func TestPagesHaveMemory(t *testing.T) {
	t.Parallel()
	memory := intake.NewBudget(8 << 20)
	g := newTest(t, func(_ *testConsole, o *Options) { o.Memory = memory })
	taken := func(who string, n int64, want int, says string) {
		t.Helper()
		if err := memory.Take(who, n); err != nil {
			t.Fatal(err)
		}
		defer memory.Give(who, n)
		r, page := g.get("xray")
		if r.StatusCode != want || want != http.StatusOK && r.Header.Get("Retry-After") == "" || !strings.Contains(page, says) {
			t.Errorf("%s has %d: %d, %v", who, n, r.StatusCode, r.Header["Retry-After"])
		}
	}
	taken("another", 6<<20, http.StatusOK, "X-ray")
	taken("another", 7<<20, http.StatusServiceUnavailable, "Too much is under way")
	taken("ana", 4<<20, http.StatusTooManyRequests, "Too many pages of yours")
	if status, _ := g.look("f", strings.Repeat("x", 100<<10)); status != http.StatusOK {
		t.Errorf("a text that costs more than there is, alone: %d", status)
	}
	if n := memory.Used(); n != 0 {
		t.Errorf("%d bytes are taken", n)
	}
}

// TestLongTexts: one page at a time looks at a long text, and pages of short texts do not wait for it.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	g := newTest(t)
	g.work = intake.NewBudget(1)
	free, err := g.work.Wait(t.Context(), "", 1)
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := g.look("t", "short"); status != http.StatusOK {
		t.Errorf("a short text: %d", status)
	}
	if status, page := g.look("f", strings.Repeat("x", longText)); status != http.StatusServiceUnavailable || !strings.Contains(page, "Too much is under way") {
		t.Errorf("a long text: %d", status)
	}
	free()
	for range 3 {
		if status, _ := g.look("f", strings.Repeat("x", longText)); status != http.StatusOK {
			t.Errorf("then: %d", status)
		}
		waittest.Until(t, "the place is given back", func() bool { return g.work.Used() == 0 })
	}
}

// TestPeopleAreLimited: a person who asks too often is refused, and no other one.
func TestPeopleAreLimited(t *testing.T) {
	t.Parallel()
	g := newTest(t)
	var err error
	if g.people, err = (auth.Limits{Rate: 1e-9, Burst: 3, Concurrent: 2}).LimitNames(); err != nil {
		t.Fatal(err)
	}
	var got []int
	for range 4 {
		r, page := g.get("xray")
		if got = append(got, r.StatusCode); r.StatusCode != http.StatusOK && (r.Header.Get("Retry-After") == "" || !strings.Contains(page, "too many pages at once")) {
			t.Errorf("%v %s", r.Header, page)
		}
	}
	if got[2] != http.StatusOK || got[3] != http.StatusTooManyRequests {
		t.Error(got)
	}
	g.as(Person{ID: "ben", Role: Viewer, AllServers: true})
	if r, _ := g.get("xray"); r.StatusCode != http.StatusOK {
		t.Errorf("another person: %d", r.StatusCode)
	}
}
