// SPDX-License-Identifier: Apache-2.0

package guardreport

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/guard"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func call(tool string, v delegation.Verdict, r delegation.Response) (c guard.Call) {
	c.Tool, c.Verdict, c.Response = tool, v, r
	return c
}

// TestCount: what decisions come to, in figures and in words.
func TestCount(t *testing.T) {
	r := newReport(noon.Add(-time.Hour), noon, 2)
	decided := func(act guard.Act, audit bool, calls ...guard.Call) *guard.Evidence {
		return &guard.Evidence{Act: act, Audit: audit, Reason: "found-out", Calls: calls, ID: strings.Repeat("a", 32)}
	}
	asked := call("send_mail", delegation.NotAsked, delegation.Repair)
	asked.Plan = &delegation.PlanFacts{Exchange: delegation.Exchange{Request: "sha256:01"}}
	asked.Arguments = []delegation.Argument{{Label: "to", Form: "mail", Segments: counterfactual.SetOf(0, 2)}, {Label: "cc", Form: "mail", Trusted: true},
		{Label: "text", Form: "url", Segments: counterfactual.SetOf(0), Composed: true}, {Label: "bcc", Form: "mail"}}
	repaired := decided("repaired", true, asked, call("send_mail", delegation.Stated, delegation.Pass))
	repaired.Sources = []guard.SegmentSource{{Segment: 0, Source: "files/read"}, {Segment: 2, Source: "?/read_note"}}
	repaired.Repair = &guard.Repair{Exchange: delegation.Exchange{Request: "sha256:02"}}

	reader := call("fetch", delegation.Unsourced, delegation.Ask)
	reader.Reader = true
	reader.Plan = &delegation.PlanFacts{Exchange: delegation.Exchange{Request: "sha256:01", Cached: true}} // asked before
	ruled := call("pay", delegation.Delegated, delegation.Ask)
	ruled.Rulings = []delegation.Ruling{{Rule: "large", Says: delegation.Ask}, {Rule: "known", Says: delegation.Pass}}

	unread := decided("refused", true)
	unread.Reason = "unreadable-answer"
	released := decided("forwarded", false, call("pay", delegation.Unknown, delegation.Pass))
	released.Reason = "released"
	open := decided("forwarded", true, call("pay", delegation.Unknown, delegation.Pass))
	open.Reason = "context-not-seen"
	for i, e := range []*guard.Evidence{
		repaired,
		decided("refused", true, reader),
		decided("waiting", false, ruled),
		decided("forwarded", true, call("pay", delegation.Delegated, delegation.Mark)),
		unread, released, open,
	} {
		r.add(noon.Add(-time.Duration(i)*time.Minute), e)
	}
	r.finish()
	if r.Decisions != 6 || r.Audit != 5 || r.Calls.N != 7 || r.Open != 1 || r.Calls.Held != 5 || r.Readers != (Share{N: 1, Held: 1, Share: 1, Low: r.Readers.Low, High: 1}) ||
		r.Repaired != 2 || r.Beside != 1 || r.Marked != 1 || r.Released != 1 || r.Reasons["unreadable-answer"] != 1 || len(r.Reasons) != 1 ||
		r.Asked != (Questions{Total: 2, Mean: 2. / 6, P95: 2, Most: 2}) || len(r.Held) != 2 || r.More != 3 {
		t.Errorf("%+v", r)
	}
	if r.Calls.Low < 0.35 || r.Calls.Low > 0.36 || r.Calls.High < 0.91 || r.Calls.High > 0.92 {
		t.Errorf("interval of 5 in 7: %+v", r.Calls)
	}
	var b strings.Builder
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"from 2026-03-04 11:00Z to 2026-03-04 12:00Z: 6, of them 5 in audit mode.\n",
		"The guard has held, or would have held, 5 of 7 privileged calls: 71.4 % [35.9, 91.8]",
		"1 of the 5 are calls of read-only tools", "2 by repair", "3 by refusal", "1 would have passed alone",
		"1 could not be decided on: unreadable-answer.", "2 pass, 1 of them with a mark, 1 although they could not be decided on (fail: open).", "1 more answer passed because a reviewer had released",
		"Extra calls of the model: 2, which is 0.33 for each decision", "May you switch to enforce?", "go on in audit mode",
		"send_mail  not-asked-for: repair\n    to (mail): from s1 files/read, s3 ?/read_note\n    cc (mail): the user's or the operator's words\n" +
			"    text (url): adds to a host that stands in s1 files/read\n    bcc (mail): stands nowhere\n",
		"stated: pass, held for another call of the same answer", "3 held calls not listed: --limit",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing of\n%s", want, b.String())
		}
	}
	if len(r.Tools) != 4 || r.Tools[0].Name != "send_mail" || r.Tools[0].Held != 2 || r.Tools[1].Name != "pay" && r.Tools[1].Name != unreadTool && r.Tools[1].Name != "fetch" {
		t.Errorf("%+v", r.Tools)
	}
	later := newReport(noon, noon, 9)
	later.add(noon, decided("waiting", false, ruled))
	b.Reset()
	later.finish()
	if err := later.Print(&b); err != nil || !strings.Contains(b.String(), "delegated: ask, as the rule says: large") || strings.Contains(b.String(), "switch to enforce") ||
		!strings.Contains(b.String(), "The guard has held 1 of 1 privileged call:") {
		t.Errorf("%v: %s", err, b.String())
	}
}

// TestBounds: the size of a report does not grow with the decisions, and a figure counts all of them.
func TestBounds(t *testing.T) {
	r := newReport(noon, noon, 3)
	for i := range 5000 {
		e := &guard.Evidence{Act: "refused", Audit: true, Reason: guard.Reason(fmt.Sprint("reason-", i)),
			Calls: []guard.Call{call(fmt.Sprint("tool-\u202e", i), delegation.Verdict(fmt.Sprint("v", i)), delegation.Hold)}}
		r.add(noon, e)
	}
	r.finish()
	if len(r.Tools) != maxTools+1 || len(r.Verdicts) != maxTools+1 || len(r.Reasons) != maxReasons+1 || len(r.Held) != 3 || r.More != 4997 || r.Calls.Held != 5000 ||
		r.Tools[0].Name != otherTools || r.Tools[0].N != 5000-maxTools {
		t.Errorf("%d tools, %d verdicts, %d reasons, %d listed, %d more, %+v", len(r.Tools), len(r.Verdicts), len(r.Reasons), len(r.Held), r.More, r.Calls)
	}
	var b strings.Builder
	if err := r.Print(&b); err != nil || strings.Contains(b.String(), "\u202e") {
		t.Errorf("a hidden character is printed raw: %v", err)
	}
}
