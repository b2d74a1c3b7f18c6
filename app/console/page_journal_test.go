// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app/explain"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// journalOf is a journal that has rows; a text finds a row by its id.
func journalOf(rows *[]index.Row) func(string) iter.Seq2[index.Row, error] {
	return func(text string) iter.Seq2[index.Row, error] {
		return func(yield func(index.Row, error) bool) {
			for _, r := range *rows {
				if strings.Contains(r.ID.String(), text) && !yield(r, nil) {
					return
				}
			}
		}
	}
}

// withJournal gives a console a journal of 300 decisions of mail and one of each hostile name.
func withJournal(_ *testConsole, o *Options) {
	var rows []index.Row
	for i := range 300 {
		rows = append(rows, index.Row{ID: testID(i), Time: time.Now().Add(-time.Duration(i) * time.Minute), Kind: ledger.Message,
			Server: "mail", Tool: "read", Verdict: []string{"passed", "changed", "withheld"}[i%3], Codes: []ledger.Count{{Code: finding.HiddenTag, N: 2}}})
	}
	for i, s := range hostile {
		s = frame.Label(s) // as the journal is read
		rows = append(rows, index.Row{ID: testID(1000 + i), Time: time.Now(), Kind: ledger.Message, Server: s, Tool: s, Verdict: s, Codes: []ledger.Count{{Code: finding.Code(s), N: 1}}})
	}
	o.Journal = journalOf(&rows)
	o.Explain = func(context.Context, string) (*explain.Explanation, error) {
		return &explain.Explanation{Server: "mail", Happened: []string{"A result was changed."}, Do: []explain.Command{{Text: "See the text", Command: "pellucid scrub"}}}, nil
	}
}

func journalPages() []testPage {
	return []testPage{
		{name: "journal", path: "journal", change: withJournal},
		{name: "journal-filter", path: "journal?q=" + url.QueryEscape("server:mail code:hidden-tag"), change: withJournal},
		{name: "journal-wrong", path: "journal?q=" + url.QueryEscape("principal:ann"), change: withJournal},
		{name: "decision", path: "journal/" + testID(1).String(), change: withJournal},
		{name: "decision-hostile", path: "journal/" + testID(1003).String(), change: withJournal},
	}
}

// TestJournal: the newest decisions of this machine are listed by the same filter, told in plain words, and found from
// the pages of records. Who does not see every server sees none of them.
func TestJournal(t *testing.T) {
	t.Parallel()
	for _, log := range []bool{false, true} {
		g := newTest(t, withJournal, func(g *testConsole, o *Options) {
			if log {
				withLedger(g, o)
			}
		})
		r, body := g.get("records")
		if got, want := r.Header.Get("Location") == "/console/journal", !log; got != want {
			t.Errorf("log %t: records lead to %q", log, r.Header.Get("Location"))
		}
		if log && !strings.Contains(body, `href="/console/journal"`) {
			t.Error("the records do not name the journal")
		}
		if _, body := g.get("journal?q=server:mail+verdict:changed"); strings.Count(body, ">changed<") != 100 || strings.Contains(body, ">withheld<") {
			t.Errorf("%d of 100 changed results", strings.Count(body, ">changed<"))
		}
		if _, body := g.get("journal?q=server:mail"); !strings.Contains(body, "The newest 200 decisions") || !strings.Contains(body, testID(199).String()) || strings.Contains(body, testID(200).String()) {
			t.Error("the newest 200 are not those")
		}
		if _, body := g.get("journal/" + testID(1).String()); !strings.Contains(body, "A result was changed.") || !strings.Contains(body, "Nothing proves it") {
			t.Error("a decision is not told")
		}
		if log {
			if r, _ := g.get("records/" + testID(1).String()); r.Header.Get("Location") != "/console/journal/"+testID(1).String() {
				t.Errorf("a record that the journal has leads to %q", r.Header.Get("Location"))
			}
		}
		g.as(Person{ID: "eve", Role: Admin, Servers: []string{"mail"}})
		for _, path := range []string{"journal", "journal/" + testID(1).String()} {
			if r, _ := g.get(path); r.StatusCode != http.StatusNotFound {
				t.Errorf("%s: another person gets %d", path, r.StatusCode)
			}
		}
		g.as(admin)
		for _, path := range []string{"journal/x", "journal/" + testID(7777).String()} {
			if r, _ := g.get(path); r.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %d", path, r.StatusCode)
			}
		}
	}
	broken := newTest(t, func(_ *testConsole, o *Options) {
		o.Journal = func(string) iter.Seq2[index.Row, error] {
			return func(yield func(index.Row, error) bool) { yield(index.Row{}, errors.New("not readable")) }
		}
	})
	for _, path := range []string{"overview", "journal", "journal/" + testID(1).String()} {
		if r, _ := broken.get(path); r.StatusCode < 500 {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
	}
}
