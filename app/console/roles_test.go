// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/platform/signin"
	"github.com/pellucid-mcp/pellucid/record/captures"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// What only a reviewer of the server may read.
const (
	heldSecret     = "held-text-of-hr"
	callSecret     = "call-of-the-guard"
	capturedSecret = "captured-argument-of-hr"
)

// A rolesTest is a console in which each kind of thing is there of the server hr and of the desk of the guard.
type rolesTest struct {
	*reviewed
	held, kept, record, exception string
	digest                        surface.Digest // of a changed tool of hr
	plain                         string         // the plain digest of the record
}

func newRolesTest(t *testing.T) *rolesTest {
	r := &rolesTest{reviewed: &reviewed{}, kept: strings.Repeat("d", 32), record: testID(1).String()}
	r.testConsole = newTest(t, withGuard, withQueue(t, r.reviewed), func(_ *testConsole, o *Options) {
		o.Grants = []Grant{{"v", Viewer, nil}, {"r", Reviewer, nil}, {"a", Admin, nil}, {"v-hr", Viewer, []string{"hr", guard.DeskServer}},
			{"r-mail", Reviewer, []string{"mail"}}, {"a-mail", Admin, []string{"mail"}}}
		o.Case = func(_ context.Context, id ledger.ID, w io.Writer) error {
			_, err := io.WriteString(w, "the case of "+id.String())
			return err
		}
	})
	r.held = r.hold(0, func(it *hold.Item) {
		it.Server, it.Body = "hr", []byte(`{"content":[{"type":"text","text":"`+heldSecret+`"}]}`)
	})
	heldCall(t, r.testConsole, guardID, []byte(callSecret), hold.Options{Now: r.opt.Now})
	k := captures.New(captures.Options{Store: r.store, Sealer: r.opt.Sealer, Now: func() time.Time { return r.now }})
	if !k.Room(100) {
		t.Fatal("no room")
	}
	k.Keep(captures.Capture{ID: r.kept, Time: r.now, Server: "hr", Tool: "read", Verdict: "passed", Arguments: captures.NewPart([]byte(`{"x":"` + capturedSecret + `"}`))}, 100)
	k.Close()
	sum := sha256.Sum256([]byte(heldSecret))
	r.plain = hex.EncodeToString(sum[:])
	r.logged(t, &ledger.Event{ID: testID(1), Time: r.now, Kind: ledger.Message, Server: "hr", Tool: "read", Method: "tools/call", Shape: "result", Verdict: "changed",
		Findings: []ledger.Count{{Code: finding.HiddenTag, N: 1}}, Subjects: []ledger.Subject{{Role: ledger.Received, Digest: sum}}})
	pins := surface.NewPins(r.store, nil).Named("hr")
	if err := pins.Pin(t.Context(), "stdio:hr", "stdio:hr", saying(t, "read", "Reads.")); err != nil {
		t.Fatal(err)
	}
	if _, err := pins.Admit(t.Context(), "stdio:hr", "stdio:hr", saying(t, "read", "Reads more.")); err != nil {
		t.Fatal(err)
	}
	for _, it := range r.pin(t).Items {
		if it.Pending != "" {
			r.digest = it.PendingDigest()
		}
	}
	x, err := r.es.Grant(t.Context(), hold.Exception{Server: "hr", Tool: "read", Code: finding.HiddenTag, By: "ana", Why: "x"}, time.Hour, false)
	if err != nil {
		t.Fatal(err)
	}
	r.exception = x.ID
	return r
}

func (r *rolesTest) pin(t *testing.T) surface.Pin {
	t.Helper()
	p, err := r.opt.Pins[0].Get(context.Background(), "stdio:hr")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// standing is what requests could have changed, as text.
func (r *rolesTest) standing(t *testing.T) string {
	t.Helper()
	waits := 0
	for _, it := range r.pin(t).Items {
		if it.Pending != "" {
			waits++
		}
	}
	list, err := r.es.List(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join([]string{string(r.state(r.held)), string(r.state(guardID)), strings.Repeat("pin ", waits), strings.Repeat("exception ", len(list))}, " ")
}

// A roleRow is a request about hr or the desk, and the role on that server which it needs.
type roleRow struct {
	path  string
	form  url.Values
	needs Role // Public: it answers, and shows and does nothing of what needs a reviewer
	shows string
}

// rows has each route.
func (r *rolesTest) rows() map[string][]roleRow {
	asof := r.now.Add(time.Second).UTC().Format(time.RFC3339Nano)
	public := []roleRow{} // what has no person cannot ask for their role
	return map[string][]roleRow{
		"GET login": public, "GET link": public, "POST link": public, "POST login/token": public, "GET login/openid": public, "GET login/return": public,
		"POST logout": public, // the session of the person
		"GET ":        {{path: ""}}, "GET overview": {{path: "overview"}}, "GET xray": {{path: "xray"}}, "POST xray": {{path: "xray", form: url.Values{"text": {"x"}}}},
		"GET policy": {{path: "policy"}}, "GET servers": {{path: "servers"}}, "GET guard": {{path: "guard"}}, "GET journal": {{path: "journal"}}, "GET journal/{id}": {{path: "journal/" + r.record}},
		"GET records":                  {{path: "records"}, {path: "records?q=server:hr", needs: Viewer}},
		"GET records/{id}":             {{path: "records/" + r.record, needs: Viewer}, {path: "records/" + r.record, shows: r.plain}},
		"GET records/{id}/case":        {{path: "records/" + r.record + "/case", needs: Reviewer}, {path: "records/" + r.record + "/case", shows: "the case of " + r.record}},
		"GET records/{id}/proof":       {{path: "records/" + r.record + "/proof", needs: Viewer}},
		"GET servers/{server}":         {{path: "servers/stdio:hr", needs: Viewer}, {path: "servers/stdio:hr", shows: `value="approve"`}},
		"GET guard/{id}":               {{path: "guard/" + guardID, needs: Viewer}, {path: "guard/" + guardID, shows: callSecret}},
		"GET review":                   {{path: "review", shows: "2 items, in 2 groups"}, {path: "review?group=none", shows: "/console/review/" + r.held}, {path: "review?server=hr&group=server", shows: "1 item, in 1 group"}},
		"GET review/{id}":              {{path: "review/" + r.held, needs: Reviewer, shows: heldSecret}, {path: "review/" + r.kept, needs: Reviewer, shows: capturedSecret}},
		"POST exceptions":              {{path: "exceptions", form: url.Values{"id": {r.held}, "for": {"24h"}, "why": {"x"}}, needs: Admin}},
		"POST exceptions/{id}":         {{path: "exceptions/" + r.exception, form: url.Values{"do": {"end"}}, needs: Admin}},
		"POST servers/{server}/decide": {{path: "servers/stdio:hr/decide", form: url.Values{"verb": {"approve"}, "digest": {r.digest.String()}}, needs: Reviewer}},
		"POST guard/{id}/decide":       {{path: "guard/" + guardID + "/decide", form: url.Values{"verb": {"deny"}}, needs: Reviewer}},
		"POST review":                  {{path: "review", form: url.Values{"do": {"deny"}, "sel": {"code=hidden-tag"}, "n": {"1"}, "asof": {asof}}}},
		"POST review/{id}":             {{path: "review/" + r.held, form: url.Values{"do": {"deny"}}, needs: Reviewer}},
	}
}

// TestRoleOfServer: whatever grants a person has for other servers, each route answers about a server by the role
// that they have on that one.
func TestRoleOfServer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		scopes string
		on     Role // hr, and the desk of the guard
	}{
		{"r-mail", Public}, {"a-mail", Public}, {"v r-mail", Viewer}, {"v a-mail", Viewer}, {"v-hr r-mail", Viewer}, {"v-hr a-mail", Viewer}, {"v r-mail a-mail", Viewer},
		{"r a-mail", Reviewer}, {"v r", Reviewer}, {"a r-mail", Admin}, {"v a", Admin},
	} {
		r := newRolesTest(t)
		who := r.granted(signin.Session{Person: "p", Scopes: strings.Fields(tt.scopes), How: signin.ByToken})
		for _, server := range []string{"hr", guard.DeskServer} {
			if got := who.RoleOn(server); got != tt.on {
				t.Errorf("%s: the role on %s is %s, want %s", tt.scopes, server, got.Name(), tt.on.Name())
			}
		}
		r.as(who)
		rows := r.rows()
		for _, route := range routes() {
			list, ok := rows[route.pattern]
			if !ok {
				t.Fatalf("%s has no row here", route.pattern)
			}
			for _, row := range list {
				r.tryRow(t, tt.scopes+": "+route.pattern, tt.on, row)
			}
		}
	}
}

func (r *rolesTest) tryRow(t *testing.T, name string, on Role, row roleRow) {
	t.Helper()
	before := r.standing(t)
	if row.form != nil && on >= max(row.needs, Reviewer) && row.shows == "" {
		return // it would decide; the rows of the other persons show that it asks for the role
	}
	method := http.MethodGet
	if row.form != nil {
		method = http.MethodPost
	}
	res, page := r.do(method, row.path, row.form)
	if on < row.needs && res.StatusCode != http.StatusForbidden {
		t.Errorf("%s: %s answers %d to a %s", name, row.path, res.StatusCode, on.Name())
	}
	if row.form == nil && on >= row.needs && row.needs > Public && res.StatusCode != http.StatusOK {
		t.Errorf("%s: %s answers %d to a %s", name, row.path, res.StatusCode, on.Name())
	}
	if row.shows != "" && strings.Contains(page, row.shows) != (on >= Reviewer) {
		t.Errorf("%s: %s shows %q to a %s: %v", name, row.path, row.shows, on.Name(), on < Reviewer)
	}
	for _, secret := range []string{heldSecret, callSecret, capturedSecret, r.plain} {
		if on < Reviewer && strings.Contains(page, secret) {
			t.Errorf("%s: %s shows %q to a %s", name, row.path, secret, on.Name())
		}
	}
	if after := r.standing(t); after != before {
		t.Errorf("%s: %s changed %q to %q", name, row.path, before, after)
	}
}

// TestServersOfOneCommand: two names of one command have one pin, and a person sees the name of theirs and the way to its records.
func TestServersOfOneCommand(t *testing.T) {
	t.Parallel()
	r := newRolesTest(t)
	if _, err := surface.NewPins(r.store, nil).Named("zed").Admit(t.Context(), "stdio:hr", "stdio:hr", saying(t, "read", "Reads.")); err != nil {
		t.Fatal(err)
	}
	if names := r.pin(t).Names; len(names) != 2 {
		t.Fatalf("the names are %q", names)
	}
	r.as(Person{ID: "z", Role: Viewer, Servers: []string{"zed"}})
	for _, path := range []string{"servers", "servers/stdio:hr"} {
		if res, page := r.get(path); res.StatusCode != http.StatusOK || !strings.Contains(page, ">zed<") || strings.Contains(page, ">hr<") || strings.Contains(page, "server%3Ahr") {
			t.Errorf("%s: %d, or it shows the other server", path, res.StatusCode)
		}
	}
	// A decision counts for both, so it needs the right to both.
	decide := func(p Person) (int, bool) {
		r.as(p)
		_, page := r.get("servers/stdio:hr")
		res, _ := r.post("servers/stdio:hr/decide", url.Values{"verb": {"approve"}, "digest": {r.digest.String()}})
		return res.StatusCode, strings.Contains(page, `value="approve"`)
	}
	if _, err := surface.NewPins(r.store, nil).Admit(t.Context(), "stdio:hr", "stdio:hr", saying(t, "read", "Reads more.")); err != nil {
		t.Fatal(err)
	}
	before := r.standing(t)
	for _, servers := range [][]string{{"hr"}, {"zed"}, {"stdio:hr"}} {
		if status, offered := decide(Person{ID: "z", Role: Reviewer, Servers: servers}); status != http.StatusForbidden || offered || r.standing(t) != before {
			t.Errorf("a reviewer of %v alone: %d, offered %v", servers, status, offered)
		}
	}
	if status, offered := decide(Person{ID: "z", Role: Reviewer, Servers: []string{"hr", "zed"}}); status != http.StatusSeeOther || !offered || r.standing(t) == before {
		t.Errorf("a reviewer of both: %d, offered %v", status, offered)
	}
	r.as(admin)
	if res, page := r.get("servers/stdio:hr"); res.StatusCode != http.StatusOK || !strings.Contains(page, "server%3Ahr") {
		t.Errorf("%d, or an admin is not led to the records of hr", res.StatusCode)
	}
	if res, _ := r.get("servers/%FF"); res.StatusCode != http.StatusNotFound {
		t.Errorf("a path that is no UTF-8: %d", res.StatusCode)
	}
}

// TestRecordsOfferNothingOfOthers: which terms a page offers to drop says nothing of servers that the person may not see.
func TestRecordsOfferNothingOfOthers(t *testing.T) {
	t.Parallel()
	r := newRolesTest(t)
	there := "records?q=" + url.QueryEscape("server:mail digest:sha256:"+r.plain)
	if _, page := r.get(there); !strings.Contains(page, "server:mail</") {
		t.Fatalf("the page offers an admin no list without server:mail")
	}
	r.as(Person{ID: "m", Role: Viewer, Servers: []string{"mail"}})
	_, here := r.get(there)
	_, gone := r.get("records?q=" + url.QueryEscape("server:mail digest:sha256:"+strings.Repeat("1", 64)))
	if got := strings.ReplaceAll(here, r.plain, strings.Repeat("1", 64)); got != gone {
		n := 0
		for n < min(len(got), len(gone)) && got[n] == gone[n] {
			n++
		}
		t.Errorf("the page differs where another server has the digest: %q, %q", got[n:min(len(got), n+200)], gone[n:min(len(gone), n+200)])
	}
}

// TestRecordItem: the record of what was held leads a reviewer of the server to the item, and no one else.
func TestRecordItem(t *testing.T) {
	t.Parallel()
	r := &reviewed{}
	r.testConsole = newTest(t, withQueue(t, r), func(g *testConsole, o *Options) { o.Ledger = g.store.Ledger() })
	held := r.hold(0, func(it *hold.Item) { it.Server = "hr" })
	of, err := ledger.ParseID(held)
	if err != nil {
		t.Fatal(err)
	}
	r.logged(t, &ledger.Event{ID: testID(3), Time: time.Now(), Kind: ledger.Message, Server: "hr", Tool: "read", Method: "tools/call", Shape: "result", Verdict: "changed"},
		&ledger.Event{ID: testID(2), Time: time.Now(), Kind: ledger.ResultHeld, Server: "hr", Tool: "read", Of: of, Rule: "finding", Actor: "policy"})
	to := `href="/console/review/` + held + `"`
	if _, page := r.get("records/" + testID(2).String()); !strings.Contains(page, to) {
		t.Error("the record does not lead to the item")
	}
	if _, page := r.get("records/" + testID(3).String()); strings.Contains(page, "/console/review/") {
		t.Error("the record of what was not held leads to an item")
	}
	r.as(Person{ID: "v", Role: Viewer, AllServers: true})
	if res, page := r.get("records/" + testID(2).String()); res.StatusCode != http.StatusOK || strings.Contains(page, to) {
		t.Errorf("a viewer: %d", res.StatusCode)
	}
}
